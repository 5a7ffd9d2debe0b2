"""Blocks of Python, TOML and commands in docstrings: each is run, or this file says why not.

A block is what a docstring indents by four more than its text, and what Python, TOML or a shell
would take as it stands. Other things that are indented (tables, formulas, the form of a file with
remarks behind its keys) are neither, and nobody can type them. No docstring has a `>>>` of a Python
at work; one that comes is found here, too.
"""

import ast
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import sim.lab.labs
import sim.lesson
from bootstrap import COMMANDS
from docs.command import docs
from docs.declared import TOP
from sim.component import Component
from sim.engine.trace import Tracer
from sim.lab.labs import open_lab
from sim.net.network import LOCALHOST
from sim.observation import Family, Metric, mean_within
from sim.param import param, params_of
from sim.registry import lookup, provisional, register
from sim.scenario import load
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.syscall import Sys
from sim.units import NS_PER_MS
from sim.user.mysql.client import PORT, UPDATE, Statement, query
from sim.user.program import ServerProgram
from tests.net.conftest import Server
from tests.sched.rig import MS, Rig
from tests.user.mysql import TOKENS, database, run_clients

FOLDERS = ("sim", "calibration", "docs", "scenarios", "benchmarks")
SHELL = re.compile(r"^(?:\$ |iotwin |make |python3? |\.venv/)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of a docstring: the file, and how a reader would take it."""

    path: str
    language: str
    text: str


def indented(text: str) -> Iterator[str]:
    """Yield what a docstring indents by four, a block after the other."""
    block: list[str] = []
    for line in [*text.split("\n"), "the end"]:
        if line.startswith("    ") or (block and not line.strip()):
            block.append(line)
        elif block:
            yield textwrap.dedent("\n".join(block)).strip("\n") + "\n"
            block = []


def language_of(text: str) -> str:
    """Return what would take a block as it stands; "" if it is no code."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        pass
    else:
        return "toml"
    try:
        ast.parse(text)
    except SyntaxError:
        return "console" if SHELL.search(text) else ""
    return "python"


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a source file."""
    has_one = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, has_one):
            yield ast.get_docstring(node) or ""


def sources() -> Iterator[Path]:
    """Yield the source files of the project, without its tests."""
    yield TOP / "bootstrap.py"
    for folder in FOLDERS:
        paths = sorted((TOP / folder).rglob("*.py"))
        yield from (path for path in paths if not path.name.startswith("test_"))


def blocks() -> Iterator[Block]:
    """Yield every block of code in a docstring."""
    for path in sources():
        for text in docstrings(path):
            for block in indented(text):
                if language := language_of(block):
                    yield Block(path.relative_to(TOP).as_posix(), language, block)


# -- What a reader has before the block, and what must come of it.


def run(text: str, **before: Any) -> dict[str, Any]:
    """Run a block with these names; return all names that there are then."""
    # A class of dataclasses is looked for under the name of its module.
    names = {"__name__": __name__, **before}
    exec(compile(text, "<docstring>", "exec"), names)
    return names


def called(text: str, arguments: str, answer: str, **before: Any) -> Callable[..., Any]:
    """Return a block as the body of a function that returns one of its names."""
    body = textwrap.indent(text, "    ")
    return run(f"def block({arguments}):\n{body}    return {answer}\n", **before)["block"]


def a_component(text: str, _folder: Path) -> None:
    with provisional():
        run(text, dataclass=dataclass, param=param, register=register, Component=Component)
        assert lookup("component", "brd").params.__name__ == "BrdParams"


def a_tracepoint(text: str, _folder: Path) -> None:
    tracer = Tracer(Rig().calendar)
    tracer.start("block_rq_*")
    request = SimpleNamespace(sector=8, nr_sectors=16)
    run(text, tracer=tracer, disk=SimpleNamespace(name="sda"), request=request)
    [record] = tracer.records()
    assert record.args == ("sda", 8, 16)


def a_lab(text: str, folder: Path) -> None:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sim.lab.labs, "lab_files", lambda: {"mine": path})
        lab = open_lab.__wrapped__("mine").drawn(1)
    assert lab.read(1).name == "generic"
    assert lab.commands[0].startswith("iotwin run ")


def service_levels(text: str, folder: Path) -> None:
    path = folder / "mine.toml"
    path.write_text(f'extends = "sendmail"\n{text}', encoding="utf-8")
    assert len(load(str(path)).slo) == 3


def an_option(text: str, folder: Path) -> None:
    path = folder / "mine.toml"
    other = '[option.disk_15k]\ntitle = "A disk"\nprice = "200 EUR"\n'
    path.write_text(f'extends = "generic"\n{text}{other}', encoding="utf-8")
    found = {one.name: one for one in load(str(path)).options}
    assert found["ssd"].excludes == ("disk_15k",)


def a_lesson(text: str, _folder: Path) -> None:
    imported = run(text).keys() - {"__name__", "__builtins__"}
    assert imported and imported <= set(sim.lesson.__all__)


def a_client_outside(text: str, _folder: Path) -> None:
    server = Server()
    listener = server.network.listen(25, backlog=5)

    def daemon(task: Task) -> Blocking[None]:
        connection = yield from listener.accept(task)
        server.note((yield from connection.recv(task)))
        yield from connection.send(task, 10, "250 ok")

    server.sched.spawn("daemon", daemon)
    client = called(text, "network, link, command", "reply")

    def process() -> Any:
        server.note((yield from client(server.network, server.link, "MAIL")))

    server.env.process(process())
    server.run()
    assert [what for _when, what in server.log] == ["MAIL", "250 ok"]


def figures_of_a_program(text: str, _folder: Path) -> None:
    names = {"ClassVar": ClassVar, "Family": Family, "Metric": Metric, "NS_PER_MS": NS_PER_MS}
    [family] = run(text, mean_within=mean_within, **names)["figures"]
    assert family.name == "hello"


def parameters(text: str, _folder: Path) -> None:
    made = run(text, dataclass=dataclass, param=param)["HddParams"]
    assert [one.key for one in params_of(made)] == ["rpm", "settle"]
    assert made().settle_ns == 200_000


def a_program(text: str, _folder: Path) -> None:
    names = {"register": register, "ServerProgram": ServerProgram, "Sys": Sys, "Blocking": Blocking}
    with provisional():
        run(text, HelloParams=type("HelloParams", (), {}), **names)
        assert lookup("program", "hello").cls.__name__ == "Hello"


def slept_ms(text: str, arguments: str, *given: Any) -> float:
    """Run a block as a task that is woken after 3 ms; return when it goes on."""
    rig, queue = Rig(), WaitQueue()
    before = {"TASK_UNINTERRUPTIBLE": TASK_UNINTERRUPTIBLE}
    body = called(text, f"task, queue, {arguments}", "None", **before)

    def main(task: Task) -> Blocking[None]:
        yield from body(task, queue, *given)
        rig.note("awake")

    task = rig.sched.spawn("sleeper", main)
    rig.at(2 * MS, lambda _: given and given[0].append(True))
    rig.at(3 * MS, lambda _: rig.sched.wake_up(task) if not given else queue.wake_one())
    [(when_ns, _what)] = rig.run(1).log
    return when_ns / MS


def a_sleep(text: str, _folder: Path) -> None:
    assert slept_ms(text, "*_none") == 3


def a_wait(text: str, _folder: Path) -> None:
    assert slept_ms(text, "condition", []) == 3


def a_statement(text: str, _folder: Path) -> None:
    machine, _server = database()
    answers: list[bool] = []
    client = called(
        text,
        "sys, tokens, rows",
        "ok",
        LOCALHOST=LOCALHOST,
        PORT=PORT,
        query=query,
        Statement=Statement,
        UPDATE=UPDATE,
    )

    def body(sys: Sys) -> Blocking[None]:
        yield from sys.sleep(NS_PER_MS)  # the server listens by then
        answers.append((yield from client(sys, TOKENS, (1, 2))))

    run_clients(machine, body)
    assert answers == [True]


def commands_of_the_documents(text: str, _folder: Path) -> None:
    assert {line.split()[3] for line in text.splitlines()} <= docs.commands.keys()


def commands_of_the_bootstrap(text: str, _folder: Path) -> None:
    named = {line.split()[2].rstrip(",") for line in text.splitlines()}
    assert named | {"check"} == COMMANDS.keys() | {"wheels", "clean"}


RUN: Mapping[tuple[str, str], Callable[[str, Path], None]] = {
    ("sim/component.py", "python"): a_component,
    ("sim/engine/trace.py", "python"): a_tracepoint,
    ("sim/lab/labs.py", "toml"): a_lab,
    ("sim/lesson/__init__.py", "python"): a_lesson,
    ("sim/net/remote.py", "python"): a_client_outside,
    ("sim/observation.py", "python"): figures_of_a_program,
    ("sim/param.py", "python"): parameters,
    ("sim/scenario/levels.py", "toml"): service_levels,
    ("sim/scenario/options.py", "toml"): an_option,
    ("sim/sched/task.py", "python"): a_sleep,
    ("sim/sched/wait.py", "python"): a_wait,
    ("sim/user/mysql/client.py", "python"): a_statement,
    ("sim/user/program.py", "python"): a_program,
    ("docs/__main__.py", "console"): commands_of_the_documents,
    ("bootstrap.py", "console"): commands_of_the_bootstrap,
}
# Why not.
NOT_RUN: Mapping[tuple[str, str], str] = {
    ("sim/lesson/__main__.py", "console"): "tests/lesson/test_lessons.py runs every lesson",
    ("benchmarks/digests.py", "console"): "it takes minutes, and the reader edits in between",
    ("benchmarks/worker.py", "console"): "benchmarks/measure.py fills the words in and runs it",
}

ALL = list(blocks())


def identity(block: Block) -> str:
    return f"{block.path}-{block.language}"


@pytest.mark.parametrize("block", ALL, ids=identity)
def test_what_a_docstring_shows_runs(block: Block, tmp_path: Path) -> None:
    key = (block.path, block.language)
    if key in NOT_RUN:
        pytest.skip(NOT_RUN[key])
    assert key in RUN, f"say here how this is run, or why it is not:\n{block.text}"
    RUN[key](block.text, tmp_path)


def test_every_block_that_is_named_here_is_there() -> None:
    found = [(block.path, block.language) for block in ALL]
    assert sorted(found) == sorted({**RUN, **NOT_RUN})


def test_no_docstring_shows_a_python_at_work() -> None:
    assert [path for path in sources() for text in docstrings(path) if ">>> " in text] == []


def test_what_is_a_block_and_what_is_none() -> None:
    text = "A thing.\n\n    a = 1\n    [b]\n\nand\n\n    X = N / (R + Z)  a law\n    iotwin run x\n"
    assert [language_of(block) for block in indented(text)] == ["toml", "console"]
    assert language_of("a = f(1)\n") == "python"
    assert language_of("here    in this process\n") == ""
