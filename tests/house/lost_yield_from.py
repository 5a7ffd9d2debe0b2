"""A lost `yield from`, found with mypy's types.

A call of a function typed `Blocking[...]` (any generator) only makes a generator: nothing happens
until `yield from` drives it. mypy accepts `task.sleep(1)` as a statement all the same. Here every
call whose type is a generator must be driven, returned, or handed on as an argument. Names alone
do not tell: `read` of a file may sleep, `read` of a parser does not.
"""

import ast
import os
from collections.abc import Iterator, Mapping

from mypy import build
from mypy.modulefinder import BuildSource
from mypy.nodes import CallExpr, Expression, MemberExpr, NameExpr
from mypy.options import Options
from mypy.types import Instance, Type, get_proper_type

from tests.house.rules import Source

GENERATORS = ("typing.Generator", "collections.abc.Generator")
# name, first line and column, last line and column
Call = tuple[str, int, int, int | None, int | None]


def is_generator(found: Type) -> bool:
    """Return whether a type is a generator's."""
    proper = get_proper_type(found)
    return isinstance(proper, Instance) and proper.type.fullname in GENERATORS


def generator_calls(types: Mapping[Expression, Type]) -> set[Call]:
    """Return the calls that make a generator; mypy does not tell of which file they are."""
    return {
        (call.callee.name, call.line, call.column, call.end_line, call.end_column)
        for call, found in types.items()
        if isinstance(call, CallExpr) and is_generator(found)
        if isinstance(call.callee, NameExpr | MemberExpr)
    }


def lost_calls(sources: list[Source]) -> Iterator[str]:
    """Yield `path:line` of every call that should have been driven and is not."""
    options = Options()
    options.export_types = True
    options.preserve_asts = True
    options.incremental = False
    options.ignore_missing_imports = True
    options.cache_dir = os.devnull
    texts = [BuildSource(str(one.path), module_name(one), one.text) for one in sources]
    made = generator_calls(build.build(texts, options).types)
    for source in sources:
        yield from (f"{source.path}:{line}" for line in undriven(source, made))


def module_name(source: Source) -> str:
    """Return the name under which a file is imported."""
    return ".".join(source.path.with_suffix("").parts).removesuffix(".__init__")


def undriven(source: Source, made: set[Call]) -> Iterator[int]:
    """Yield the lines of those of the calls that nothing drives."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                if (name, *place) in made and not is_driven(source, node):
                    yield node.lineno


def is_driven(source: Source, node: ast.AST) -> bool:
    """Return whether what stands around a generator takes care of it."""
    parent = source.parents[node]
    if isinstance(parent, ast.IfExp):
        return is_driven(source, parent)
    if isinstance(parent, ast.AnnAssign):
        return True  # a variable declared to hold one
    if isinstance(parent, ast.Assign):
        return isinstance(parent.targets[0], ast.Attribute)  # a field is declared in its class
    if isinstance(parent, ast.For | ast.comprehension):
        return parent.iter is node  # an ordinary iterator, such as of files
    return isinstance(parent, ast.YieldFrom | ast.Return | ast.Call | ast.keyword | ast.Lambda)
