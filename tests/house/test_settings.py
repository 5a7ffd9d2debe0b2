"""The lists in setup.cfg are complete: what is compiled together, and a layer for every part."""

import ast
import configparser
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pytest

TOP = Path(__file__).resolve().parents[2]
# Parts of sim that no layer names.
OUTSIDE = {"tools", "__init__", "__main__"}


@pytest.fixture(scope="module")
def settings() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(TOP / "setup.cfg", encoding="utf-8")
    return config


def test_what_is_compiled_is_there_once(settings: configparser.ConfigParser) -> None:
    modules = settings["iotwin:compile"]["modules"].split()
    assert [name for name in modules if not (TOP / name).is_file()] == []
    assert len(modules) == len(set(modules))


@dataclass(frozen=True)
class Class:
    """A class of the twin: its file, its name, its parents, who may inherit from it compiled."""

    file: str
    name: str
    parents: tuple[tuple[str, str], ...]
    takes_interpreted: bool


def classes() -> dict[tuple[str, str], Class]:
    """Return all classes of sim and of the cases, by file and name; parents are those in them."""
    trees = {
        path.relative_to(TOP).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for folder in ("sim", "scenarios")
        for path in (TOP / folder).rglob("*.py")
    }
    found = {}
    for file, tree in trees.items():
        places = {node.name: (file, node.name) for node in tree.body if is_class(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                home = f"{node.module.replace('.', '/')}.py"
                places |= {one.asname or one.name: (home, one.name) for one in node.names}
        for node in tree.body:
            if is_class(node):
                names = (ast.unparse(base).partition("[")[0] for base in node.bases)
                parents = tuple(places[name] for name in names if name in places)
                attributes = " ".join(ast.unparse(one) for one in node.decorator_list)
                takes = "allow_interpreted_subclasses=True" in attributes
                found[file, node.name] = Class(file, node.name, parents, takes)
    return found


def is_class(node: ast.stmt) -> TypeGuard[ast.ClassDef]:
    """Return whether a statement defines a class."""
    return isinstance(node, ast.ClassDef)


def test_no_class_is_compiled_apart_from_its_parents_and_heirs(
    settings: configparser.ConfigParser,
) -> None:
    """What is interpreted cannot inherit from what is compiled, and the other way it is slow."""
    compiled = set(settings["iotwin:compile"]["modules"].split())
    known = classes()
    apart = []
    for heir in known.values():
        # program.py stays interpreted: a class that people's own programs inherit from.
        for parent in (known[place] for place in heir.parents if place in known):
            if heir.file in compiled and parent.file not in compiled | {"sim/user/program.py"}:
                apart.append(f"{heir.file} is compiled and {parent.file}, its parent, is not")
            if parent.file in compiled - {heir.file} and not (
                heir.file in compiled or parent.takes_interpreted
            ):
                apart.append(f"{parent.file} is compiled and {heir.file}, its heir, is not")
    assert apart == []


def test_every_part_of_the_twin_has_its_layer(settings: configparser.ConfigParser) -> None:
    layers = settings["importlinter:contract:layers"]["layers"]
    named = set(layers.replace("|", " ").replace(":", " ").split())
    parts = {path.stem for path in (TOP / "sim").glob("*.py")} | {
        path.name for path in (TOP / "sim").iterdir() if (path / "__init__.py").exists()
    }
    assert {f"sim.{part}" for part in parts - OUTSIDE} - named == set()
