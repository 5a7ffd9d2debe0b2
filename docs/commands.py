"""The commands that pages show: each is run, and what it prints is compared with what is shown.

Models: a reader who types everything, in the order of the pages, in one empty folder.
Invariants: a command that several pages show is run once; a page's commands are run in its order;
 files that a page shows are written before the command that follows them; nothing is written
 outside the scratch folder. `...` in shown output stands for any lines, or for the end of a line.
Left out: a shell's state (variables, `cd`) from one command to the next; the pages "add a ...",
 which tests/docs/test_add.py carries out in a copy of the project.

docs/commands.toml says what is run instead of a command that takes long, or needs a fresh machine:

    [command."iotwin calibrate sendmail"]
    run = "iotwin calibrate sendmail --simulations 24 --waves 1"
    status = 0                    the exit code
    why = "..."                   printed by the check
"""

import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import click

import sim
from docs.declared import TOP, DeclarationError, Output
from docs.pages import Page, Shown, ShownFile
from docs.runs import Tell
from sim.cli.main import COMMANDS, cli

INSTEAD: Final = TOP / "docs" / "commands.toml"
TIMEOUT_S: Final = 600
_SHOWN_LINES: Final = 12  # of an output that is not the one shown


@dataclass(frozen=True, kw_only=True)
class Instead:
    """What is run for a command, and how it ends."""

    run: str
    status: int = 0
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Done:
    """A command that was run."""

    command: str
    status: int
    stdout: str
    stderr: str
    wall_s: float


def read_instead(path: Path = INSTEAD) -> dict[str, Instead]:
    """Return what is run instead of which command; raise DeclarationError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise DeclarationError(f"{path.name}: not valid TOML: {error}") from None
    found = {}
    for command, given in content.get("command", {}).items():
        unknown = sorted(set(given) - {"run", "status", "why"})
        if unknown:
            raise DeclarationError(f"{path.name}: '{command}': not known: {', '.join(unknown)}")
        found[command] = Instead(
            run=str(given.get("run", command)),
            status=int(given.get("status", 0)),
            why=str(given.get("why", "")),
        )
    return found


class Shell:
    """A folder with `iotwin` on the path, in which commands are run.

    `place` is where the twin's sources lie, if it is not the one that runs here.
    """

    def __init__(self, folder: Path, place: Path | None = None) -> None:
        self.folder = folder
        place = place or Path(sim.__file__).resolve().parents[1]
        programs = folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name, options in (("iotwin", " -P -m sim"), ("python", "")):
            script = programs / name
            script.write_text(f'#!/bin/sh\nexec {sys.executable}{options} "$@"\n')
            script.chmod(0o755)
        path = [str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        self.environment = {
            "PATH": os.pathsep.join(path),
            "PYTHONPATH": f"{place}{os.pathsep}{TOP}",
            "HOME": str(folder),
            "TOP": str(TOP),
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
            "MPLCONFIGDIR": str(folder / ".venv"),
        }

    def run(self, command: str) -> Done:
        """Run a command line to its end."""
        begin_s = time.monotonic()
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Done(
            command=command,
            status=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
            wall_s=time.monotonic() - begin_s,
        )


class Typist:
    """Types what pages show; each command once."""

    def __init__(self, shell: Shell, instead: Mapping[str, Instead], tell: Tell) -> None:
        self.shell = shell
        self.instead = instead
        self.tell = tell
        self._lock = Lock()
        self._done: dict[str, Future[Done]] = {}

    def check_all(self, pages: Iterable[Page], jobs: int) -> list[str]:
        """Type every page, but those that change the project; return what is wrong."""
        typed = [page for page in pages if not page.changes_project]
        with ThreadPoolExecutor(jobs) as pool:
            complaints = list(pool.map(self.check_page, typed))
        return [one for found in complaints for one in found]

    def check_page(self, page: Page) -> list[str]:
        """Type one page; return what is wrong."""
        complaints = []
        for one in page.commands_and_files():
            if isinstance(one, ShownFile):
                (self.shell.folder / one.name).write_text(one.content, encoding="utf-8")
            else:
                complaints += self._check(one)
        return complaints

    def _check(self, shown: Shown) -> list[str]:
        known = self.instead.get(shown.command, Instead(run=shown.command))
        done = self.run(known.run)
        where = f"{shown.page}:{shown.line}"
        if done.status != known.status:
            return [
                f"{where}: `{known.run}` ended with {done.status}, not {known.status}:\n"
                + _first_lines(done.stderr or done.stdout)
            ]
        if known.run == shown.command and shown.output and not is_shown(shown.output, done):
            return [
                f"{where}: `{shown.command}` prints something else than is shown:\n"
                + _first_lines(done.stdout or done.stderr)
            ]
        return []

    def run(self, command: str) -> Done:
        """Run a command, or wait for and return what it gave when it was run before."""
        with self._lock:
            future = self._done.get(command)
            is_new = future is None
            if future is None:
                future = self._done[command] = Future()
        if is_new:
            try:
                future.set_result(self.shell.run(command))
            except BaseException as error:
                future.set_exception(error)
            else:
                self.tell(f"{future.result().wall_s:6.1f} s  {command}")
        return future.result()


def is_shown(shown: str, done: Done) -> bool:
    """Return whether what is shown is what was printed: `...` stands for lines, or a line's end."""
    pattern = "".join(_pattern(line) for line in _trimmed(shown).splitlines())
    texts = (done.stdout, done.stderr, done.stdout + done.stderr)
    return any(re.fullmatch(pattern, _trimmed(text)) for text in texts)


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    if line.endswith(" ..."):
        return re.escape(line.removesuffix(" ...")) + r".*\n"
    return re.escape(line) + r"\n"


def _trimmed(text: str) -> str:
    return "".join(line.rstrip() + "\n" for line in text.strip("\n").splitlines())


def _first_lines(text: str) -> str:
    lines = text.splitlines()
    more = [f"    ... ({len(lines) - _SHOWN_LINES} more)"] if len(lines) > _SHOWN_LINES else []
    return "\n".join([f"    {line}" for line in lines[:_SHOWN_LINES]] + more)


def wrong_examples() -> list[str]:
    """Return the examples of the commands' own help that the command line does not understand."""
    complaints = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for line in (command.help or "").splitlines():
            for example in line.strip().split(" && "):
                complaint = _parsed(example)
                if complaint:
                    complaints.append(f"iotwin {name} --help: `{example}`: {complaint}")
    return complaints


def _parsed(example: str) -> str:
    """Parse an example as the command line would; return what is wrong with it."""
    if not example.startswith("iotwin "):
        return ""
    words = shlex.split(example.split(" > ")[0].split(";")[0])[1:]
    try:
        name, command, rest = cli.resolve_command(click.Context(cli), words)
        assert command is not None
        command.make_parser(
            click.Context(command, info_name=name, **cli.context_settings)
        ).parse_args(list(rest))
    except click.ClickException as error:
        return error.format_message()
    return ""


def rendered(output: Output, done: Done) -> str:
    """Return a command and the lines of its output that are kept, as a fence."""
    lines: list[str] = []
    for line in done.stdout.rstrip("\n").splitlines():
        if output.keep and not any(re.search(one, line) for one in output.keep):
            line = "..."
            if lines[-1:] == ["..."]:
                continue
        elif len(line) > output.width:
            line = line[: output.width].rstrip() + " ..."
        lines.append(line)
    return "```console\n" + "\n".join([f"$ {output.shown}", *lines]) + "\n```\n"
