#!/usr/bin/env python3
"""Set iotwin up in a checkout and run it, with nothing installed beforehand but Python 3.11.

    python3 bootstrap.py sendmail          the mail storm, queue on disk against queue on tmpfs
    python3 bootstrap.py test [ARGS]       the tests (ARGS go to pytest)
    python3 bootstrap.py iotwin ARGS       any command of iotwin
    python3 bootstrap.py python ARGS       Python with the twin and everything for tests
    python3 bootstrap.py install           only set up; `check` as well with what CI's checks need
    python3 bootstrap.py dev               set up for changing things: sources used in place
    python3 bootstrap.py clean             remove what builds left (not .venv)

Everything goes into .venv beside this file. A second call costs a fraction of a second: a stamp in
.venv tells what was installed from which sources. Whatever pip is configured to use, is used.
The standard library is all this file needs; `make sendmail` and so on are short for the above.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

PYTHON_MIN = (3, 11)
TOP = Path(__file__).resolve().parent
VENV = Path(os.environ.get("IOTWIN_VENV") or TOP / ".venv").absolute()
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "iotwin-stamp.json"

# command -> extras that it needs (setup.cfg), and what it runs; None: nothing after the set-up
COMMANDS: dict[str, tuple[list[str], list[str] | None]] = {
    "sendmail": ([], ["iotwin", "compare", "sendmail", "tmpfs"]),
    "iotwin": ([], ["iotwin"]),
    "test": (["test"], ["python", "-m", "tests"]),
    "python": (["test"], ["python"]),
    "install": ([], None),
    "check": (["dev", "oracle", "test"], None),
    "dev": (["compile", "dev", "oracle", "test"], None),
}
SOURCES = ("sim", "calibration", "scenarios")
SETTINGS = ("setup.cfg", "setup.py", "pyproject.toml")


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
    if VENV.exists():
        if not (VENV / "pyvenv.cfg").exists():
            raise SetupError(f"{VENV} is in the way: not a virtual environment. Move it away.")
        say(f"{VENV.name} does not work (any more): making a new one")
        shutil.rmtree(VENV)
    say(f"making a virtual environment in {VENV}")
    reasons = []
    for way in (venv_with_pip, venv_then_pip, by_virtualenv, after_apt_get):
        reason = way()
        if reason is None and is_usable(BIN / "python"):
            return
        reasons.append(f"  {way.__name__}: {reason or 'no working pip in it'}")
        shutil.rmtree(VENV, ignore_errors=True)
    raise SetupError(
        "cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv, "
        "then run this again. What was tried:\n" + "\n".join(reasons)
    )


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


def after_apt_get() -> str | None:
    """Install Debian's python3-venv, where we may, and try venv again."""
    if shutil.which("apt-get") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "not root on a system with apt-get"
    package = f"python3.{sys.version_info[1]}-venv"
    say(f"installing Debian's {package}")
    get = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=120"]
    failed = attempt([*get, "install", package])
    if failed:
        failed = attempt([*get, "update"]) or attempt([*get, "install", package])
    return failed or venv_with_pip()


def attempt(command: list[str]) -> str | None:
    """Run a command in silence; return the last it said if it failed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command,
        env=environment,
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
        if path.suffix not in (".pyc", ".so", ".pyd") and not set(left_out) & set(path.parts)
    )


def read_stamp() -> dict[str, object]:
    """Return what the last set-up wrote; nothing if there was none, or not for this place."""
    try:
        stamp: dict[str, object] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if stamp.get("top") == str(TOP) else {}


def set_up(command: str, extras: list[str]) -> None:
    """Bring .venv to what the command needs; return at once when it is there already."""
    stamp = read_stamp()
    before = stamp.get("extras", [])
    assert isinstance(before, list)
    editable = command == "dev" or (bool(stamp.get("editable")) and command != "install")
    wanted: dict[str, object] = {
        "top": str(TOP),
        "editable": editable,
        "extras": sorted({*before, *extras}),
        "settings": digest_of([TOP / name for name in SETTINGS]),
        "sources": "in place" if editable else digest_of(source_files()),
        "compile": os.environ.get("IOTWIN_COMPILE", "auto"),
        "profile": os.environ.get("IOTWIN_PROFILE", "1"),
    }
    if stamp == wanted and (BIN / "python").exists():
        return
    started = time.monotonic()
    make_venv()
    STAMP.unlink(missing_ok=True)
    if stamp.get("settings") != wanted["settings"]:
        say("installing what builds the twin (setuptools, mypy with mypyc)")
        pip(build_requirements())
    names = ",".join(sorted({*before, *extras}))
    target = f".[{names}]" if names else "."
    if editable:
        say("installing the twin's requirements, its sources used in place")
        pip(["--no-build-isolation", "--editable", target])
    else:
        say("compiling and installing the twin (a few minutes, once)")
        pip(["--no-build-isolation", target])
    STAMP.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    say(f"ready after {time.monotonic() - started:.0f} s, {how_it_runs()}")


def build_requirements() -> list[str]:
    """Return what pyproject.toml says a build needs."""
    import tomllib  # here, so that an older Python gets as far as find_python()

    table = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    requires: list[str] = table["build-system"]["requires"]
    return requires


def pip(arguments: list[str]) -> None:
    """Run pip install; its complaints are shown."""
    command = [str(BIN / "python"), "-m", "pip", "--no-input", "--disable-pip-version-check"]
    command += ["install", "--quiet", *arguments]
    done = subprocess.run(
        command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
    )
    if done.returncode != 0:
        raise SetupError(
            "pip failed, see above. Without a network, point pip at a folder of wheels "
            "(PIP_FIND_LINKS and PIP_NO_INDEX=1); behind a proxy, set HTTPS_PROXY. To see all it "
            f"does: {' '.join(command).replace(' --quiet', ' -v')}"
        )


def how_it_runs() -> str:
    """Return whether the installed twin is compiled, and if not, why."""
    code = "from sim.compiled import status as s; b = s(); print(len(b.digests)); print(b.note)"
    done = subprocess.run(
        [str(BIN / "python"), "-P", "-c", code],
        cwd=VENV,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SetupError(f"the installed twin does not start:\n{done.stderr.strip()}")
    count, note = done.stdout.splitlines()
    return f"{count} modules compiled" if int(count) else f"interpreted: {note}"


# -- Commands.


def clean() -> None:
    """Remove what builds and runs left in the checkout."""
    caches = (".mypy_cache", ".pytest_cache", ".ruff_cache", ".import_linter_cache")
    for name in ("build", "dist", "iotwin.egg-info", *caches):
        shutil.rmtree(TOP / name, ignore_errors=True)
    for path in [*TOP.glob("*.so"), *(TOP / "sim").rglob("*.so"), TOP / "sim" / "_compiled.json"]:
        path.unlink(missing_ok=True)


def run(words: list[str]) -> int:
    """Run a program of the environment in the checkout, and return its exit code."""
    program = [str(BIN / words[0]), *words[1:]]
    return subprocess.run(program, cwd=TOP, check=False).returncode


def main(arguments: list[str]) -> int:
    """Set up what the command needs and run it; return its exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__)
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command == "clean":
        clean()
        return 0
    if command not in COMMANDS:
        say(f"no command '{command}'; known: {', '.join([*COMMANDS, 'clean'])}")
        return 2
    try:
        python = find_python()
        if python != sys.executable:
            return subprocess.run([python, str(TOP / "bootstrap.py"), *arguments]).returncode
        extras, words = COMMANDS[command]
        set_up(command, extras)
    except SetupError as error:
        say(f"error: {error}")
        return 1
    return 0 if words is None else run([*words, *rest])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
