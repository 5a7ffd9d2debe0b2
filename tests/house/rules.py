"""Rules about the source that neither the linter nor the type checker knows, one function each.

Each takes a parsed file (`Source`) and yields `line: what is wrong`. tests/test_tidy.py runs all of
them over the tree, and shows of each that it can fail.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A file of the tree: its path from the top, its text, its syntax tree."""

    path: PurePosixPath
    text: str
    tree: ast.Module

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Return what each node of the tree stands in."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def inside(self, folder: str) -> bool:
        """Return whether the file is in `folder`, or is that file."""
        return self.path.is_relative_to(folder)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what the node stands in, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node


def parse(path: str, text: str) -> Source:
    """Parse a file's text."""
    return Source(PurePosixPath(path), text, ast.parse(text))


# -- State, time and chance.

MUTABLE_CALLS = {"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "count"}
MUTATORS = {
    "append",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "clear",
    "sort",
    "reverse",
    "add",
    "discard",
    "update",
    "setdefault",
    "popleft",
    "appendleft",
}
WALL_CLOCK = {
    "time": {
        "time",
        "time_ns",
        "monotonic",
        "monotonic_ns",
        "perf_counter",
        "perf_counter_ns",
        "process_time",
        "sleep",
        "localtime",
        "gmtime",
        "ctime",
    },
    "datetime": {"now", "today", "utcnow"},
    "date": {"today"},
    "os": {"urandom", "getpid"},
    "uuid": {"uuid1", "uuid4"},
}


def _is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in MUTABLE_CALLS
    )


def _module_variables(source: Source) -> Iterator[tuple[str, ast.stmt]]:
    for node in source.tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if targets and _is_mutable(getattr(node, "value", None)):
            yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))


def module_state(source: Source) -> Iterator[str]:
    """A module has no variables: a table in CAPITALS that nothing changes is no variable."""
    variables = dict(_module_variables(source))
    for name, node in variables.items():
        if name != "__all__" and name != name.upper():
            yield f"{node.lineno}: module-level mutable {name}"
    for inner in ast.walk(source.tree):
        match inner:
            case ast.Global():
                yield f"{inner.lineno}: global {', '.join(inner.names)}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)):
                if name in variables and name == name.upper() and attr in MUTATORS:
                    yield f"{inner.lineno}: {name}.{attr}() changes a module's table"
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                if name in variables and name == name.upper():
                    yield f"{inner.lineno}: a module's table {name} is changed"


def wall_clock(source: Source) -> Iterator[str]:
    """Only the command line looks at the clock on the wall; nothing at what else differs."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=attr):
                if attr in WALL_CLOCK.get(module, ()):
                    yield f"{node.lineno}: {module}.{attr}: a run depends on its seed alone"
            case ast.Attribute(value=ast.Attribute(attr="datetime"), attr="now" | "today"):
                yield f"{node.lineno}: datetime: a run depends on its seed alone"
            case ast.ImportFrom(module=str(module)) if module in WALL_CLOCK:
                bad = {alias.name for alias in node.names} & WALL_CLOCK[module]
                if bad:
                    yield f"{node.lineno}: {module}.{', '.join(sorted(bad))}"
            case ast.Call(func=ast.Name(id="hash" | "id" as name)):
                yield f"{node.lineno}: {name}() differs from run to run"


def unnamed_chance(source: Source) -> Iterator[str]:
    """Chance comes from a named stream; `random.Random` elsewhere is for annotations only."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="random"), attr=attr)):
                yield f"{node.lineno}: random.{attr}(): ask a stream (sim/engine/rng.py)"
            case ast.Call(func=ast.Name(id="Random")):
                yield f"{node.lineno}: Random(): ask a stream (sim/engine/rng.py)"
            case ast.ImportFrom(module="random"):
                bad = [alias.name for alias in node.names if alias.name != "Random"]
                if bad:
                    yield f"{node.lineno}: random.{', '.join(bad)}: ask a stream"


def order_of_a_set(source: Source) -> Iterator[str]:
    """Nobody walks over a set made on the spot: its order may differ from run to run."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For | ast.comprehension):
            walked = node.iter
            is_set = isinstance(walked, ast.Set | ast.SetComp) or (
                isinstance(walked, ast.Call)
                and isinstance(walked.func, ast.Name)
                and walked.func.id in ("set", "frozenset")
            )
            if is_set:
                yield f"{walked.lineno}: the order of a set: use sorted()"


# -- Imports.


def imported(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the modules that are imported, with the statement."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, node.module or ""


def foreign_simpy(source: Source) -> Iterator[str]:
    """Only sim/engine imports simpy."""
    for node, module in imported(source):
        if module.split(".")[0] == "simpy":
            yield f"{node.lineno}: imports simpy"


def tools_read_text(source: Source) -> Iterator[str]:
    """sim/tools imports nothing else of sim."""
    for node, module in imported(source):
        if module.split(".")[0] == "sim" and not module.startswith("sim.tools"):
            yield f"{node.lineno}: imports {module}"


def import_in_function(source: Source) -> Iterator[str]:
    """Imports stand at the top: what a file needs is seen at once, and cycles are not hidden."""
    for node, module in imported(source):
        if any(isinstance(outer, Function) for outer in source.ancestors(node)):
            yield f"{node.lineno}: imports {module} inside a function"


# -- Text.

LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
SOMEBODYS_PLACE = re.compile(r"(?<![\w.])/(work|root|home/\w+)/|pythonhosted|pypi\.org")
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "misc", "stuff"}


def no_docstring(source: Source) -> Iterator[str]:
    """A file opens with a docstring."""
    if not ast.get_docstring(source.tree):
        yield "1: no docstring"


def empty_name(source: Source) -> Iterator[str]:
    """A file's name says what is in it."""
    if source.path.stem in EMPTY_NAMES:
        yield f"1: {source.path.name} says nothing"


def leftovers(text: str) -> Iterator[str]:
    """No notes to oneself, no path or host of somebody's machine."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in (LEFTOVER, SOMEBODYS_PLACE):
            found = pattern.search(line)
            if found:
                yield f"{number}: {found.group()}"


def changelog(text: str) -> Iterator[str]:
    """CHANGELOG.md begins with what is not released yet, and says something there."""
    sections = re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", text, re.MULTILINE)
    if not sections or sections[0][0] != "Unreleased":
        yield "the first section is not Unreleased"
    elif not sections[0][1].strip():
        yield "Unreleased says nothing"
