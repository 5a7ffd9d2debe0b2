"""Rules about how files and classes hang together, which no single file shows.

An import circle makes one room of many: nobody can read or test one of its files alone. Imports
that only a type checker sees (`if TYPE_CHECKING`) count, since a reader follows them as well. An
abstract class with one heir is a detour, unless a lower layer declares with it what it calls above.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from tests.house.rules import Source

FORMATTER_OFF = re.compile(r"#\s*fmt:\s*(skip|off)")


def module_of(source: Source) -> str:
    """Return the name under which a file is imported."""
    return ".".join(source.path.with_suffix("").parts).removesuffix(".__init__")


def imports(sources: Sequence[Source]) -> dict[str, set[str]]:
    """Return which modules of the tree each module imports, at run time or for its types."""
    known = {module_of(source) for source in sources}
    found: dict[str, set[str]] = {}
    for source in sources:
        own = module_of(source)
        names = found[own] = set()
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                parts = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= (parts & known) or {node.module}
        found[own] = (names & known) - {own}
    return found


def import_circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one import circle; nothing if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def abstract_with_one_heir(sources: Sequence[Source]) -> Iterator[str]:
    """Yield `path:line class` of every abstract class that a single class of the tree extends.

    A class is abstract if it says so (ABC) or if a method of it is not implemented.
    """
    heirs: defaultdict[str, set[str]] = defaultdict(set)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    heirs[_last_name(base)].add(node.name)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and is_abstract(node) and len(heirs[node.name]) == 1:
                yield f"{source.path}:{node.lineno} {node.name}"


def is_abstract(node: ast.ClassDef) -> bool:
    """Return whether a class cannot be used without an heir."""
    if any(_last_name(base) == "ABC" for base in node.bases):
        return True
    raised = (inner for inner in ast.walk(node) if isinstance(inner, ast.Raise) and inner.exc)
    return any(_last_name(one.exc) == "NotImplementedError" for one in raised if one.exc)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=inner):
            return _last_name(inner)
    return ""


def formatter_off(source: Source) -> Iterator[str]:
    """Yield the lines that keep the formatter away."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if FORMATTER_OFF.search(line):
            yield f"{number}: the formatter is switched off"
