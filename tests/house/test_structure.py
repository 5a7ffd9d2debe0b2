"""The tree hangs together as it should, and each rule about that is shown to be able to fail."""

from functools import cache
from pathlib import Path

from tests.house.rules import Source, parse
from tests.house.structure import (
    abstract_with_one_heir,
    formatter_off,
    import_circle,
    imports,
)

TOP = Path(__file__).resolve().parents[2]
FOLDERS = ("sim", "calibration", "scenarios", "benchmarks", "docs")

# Classes by which a lower layer says what it calls above, each with its reason.
CALLED_ABOVE = {
    "Scheduler": "tasks and run queues ask the machine's scheduler to wake, pull and end tasks",
    "BackingFile": "a loop device writes to a file of any file system",
    "PageTree": "reclaim takes clean pages of a file away, wherever they are on the lists",
    "MmStruct": "the OOM killer gives a program's memory back, region by region",
    "Shrinker": "reclaim asks a cache of a file system to give memory back",
}


@cache
def tree(folders: tuple[str, ...] = FOLDERS) -> tuple[Source, ...]:
    """Return the parsed files of the packages."""
    paths = [path for folder in folders for path in sorted((TOP / folder).rglob("*.py"))]
    return tuple(parse(path.relative_to(TOP).as_posix(), path.read_text()) for path in paths)


def test_no_module_imports_itself_by_others() -> None:
    assert import_circle(imports(tree())) == []


def test_an_abstract_class_has_two_heirs_or_is_a_call_upwards() -> None:
    lonely = {found.split()[-1]: found for found in abstract_with_one_heir(tree())}
    assert set(CALLED_ABOVE) == set(lonely), sorted(lonely.values())


def test_the_formatter_is_switched_off_nowhere() -> None:
    everywhere = (*tree(), *tree(("tests",)))
    found = [f"{one.path}:{finding}" for one in everywhere for finding in formatter_off(one)]
    assert found == []


# -- Each rule finds what it is for.


def test_a_circle_is_found_though_a_type_checker_alone_sees_it() -> None:
    one = parse("sim/a.py", "from sim.b import B\n")
    hidden = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sim import a\n"
    assert import_circle(imports([one, parse("sim/b.py", hidden)]))
    assert import_circle(imports([one, parse("sim/b.py", "import sim.c\n")])) == []


def test_a_lonely_heir_is_found() -> None:
    base = "class Base:\n    def do(self) -> None:\n        raise NotImplementedError\n"
    heir = "class {}(Base):\n    pass\n"
    lonely = [parse("sim/a.py", base), parse("sim/b.py", heir.format("One"))]
    assert list(abstract_with_one_heir(lonely)) == ["sim/a.py:1 Base"]
    assert not list(abstract_with_one_heir([*lonely, parse("sim/c.py", heir.format("Two"))]))


def test_a_switched_off_formatter_is_found() -> None:
    assert list(formatter_off(parse("sim/a.py", "x = ( 1 )  # fmt: " + "skip\n")))
    assert not list(formatter_off(parse("sim/a.py", "x = 1  # a format to skip\n")))
