"""The source keeps its rules, and each rule is shown to be able to fail."""

import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house import rules
from tests.house.rules import Source, parse

TOP = Path(__file__).resolve().parents[1]
FOLDERS = ("sim", "calibration", "benchmarks", "scenarios")

# Where a rule does not hold, each with its reason.
EXEMPT: dict[tuple[str, str], str] = {
    ("wall_clock", "sim/cli"): "progress is shown to a person, in that person's time",
    ("wall_clock", "benchmarks"): "they measure time",
    ("wall_clock", "sim/study/executors.py"): "a worker that is refused is named by its process",
    ("wall_clock", "sim/study/laboratory.py"): "what a run cost is told beside its outcome",
    ("wall_clock", "sim/study/store.py"): "a row says when it was put, for whoever cleans",
    ("wall_clock", "calibration/record.py"): "records a live host, at that host's times",
    ("wall_clock", "calibration/follow/feeds.py"): "reads live hosts, at their times",
    ("wall_clock", "calibration/follow/bench.py"): "rests as long as it worked",
    ("wall_clock", "calibration/follow/own_time.py"): "finds its own process on a live host",
    ("unnamed_chance", "sim/engine"): "makes the streams",
    ("unnamed_chance", "benchmarks"): "the naive models beside ours are standard Python",
    ("foreign_simpy", "sim/engine"): "is the one that imports simpy",
    ("foreign_simpy", "benchmarks"): "compare with SimPy itself",
    ("module_state", "sim/registry.py"): "the registry: filled at import, read-only afterwards",
}
Rule = Callable[[Source], Iterator[str]]
RULES: tuple[Rule, ...] = (
    rules.module_state,
    rules.wall_clock,
    rules.unnamed_chance,
    rules.order_of_a_set,
    rules.foreign_simpy,
    rules.import_in_function,
    rules.no_docstring,
    rules.empty_name,
)


@cache
def tree() -> tuple[Source, ...]:
    """Return the parsed files of the packages."""
    found = (path for folder in FOLDERS for path in sorted((TOP / folder).rglob("*.py")))
    paths = [path for path in found if not path.name.startswith("test_")]
    return tuple(parse(path.relative_to(TOP).as_posix(), path.read_text()) for path in paths)


def is_exempt(rule: str, source: Source) -> bool:
    return any(name == rule and source.inside(folder) for name, folder in EXEMPT)


def findings(rule: Rule) -> list[str]:
    return [
        f"{source.path}:{finding}"
        for source in tree()
        if not is_exempt(rule.__name__, source)
        for finding in rule(source)
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rule(rule: Rule) -> None:
    assert findings(rule) == []


def test_no_yield_from_is_lost() -> None:
    lost_yield_from = pytest.importorskip("tests.house.lost_yield_from", exc_type=ImportError)
    sim = [source for source in tree() if source.inside("sim") or source.inside("scenarios")]
    assert list(lost_yield_from.lost_calls(sim)) == []


def test_the_tools_import_nothing_else_of_the_twin() -> None:
    tools = [source for source in tree() if source.inside("sim/tools")]
    assert [finding for source in tools for finding in rules.tools_read_text(source)] == []


def test_nothing_is_left_over() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    endings = (".py", ".md", ".toml", ".cfg", "Makefile", "run")
    names = [name for name in listed.stdout.split("\0") if name.endswith(endings)]
    found = [
        f"{name}:{finding}"
        for name in names
        if (TOP / name).is_file() and not name.startswith(("tests/house/", "tests/test_tidy"))
        for finding in rules.leftovers((TOP / name).read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_changelog_tells_what_is_new() -> None:
    assert list(rules.changelog((TOP / "CHANGELOG.md").read_text(encoding="utf-8"))) == []


def test_every_exemption_is_needed() -> None:
    by_name = {rule.__name__: rule for rule in RULES}
    idle = [
        (name, folder)
        for name, folder in EXEMPT
        if not any(list(by_name[name](source)) for source in tree() if source.inside(folder))
    ]
    assert idle == []


# -- Each rule finds what it is for, and lets go what it should.

BAD: dict[str, tuple[str, str]] = {
    "module_state": ("cache = {}\n", "TABLE = {}\nTABLE['a'] = 1\n"),
    "wall_clock": ("import time\nt = time.time()\n", "from time import monotonic\n"),
    "unnamed_chance": ("import random\nx = random.random()\n", "from random import choice\n"),
    "order_of_a_set": ("for x in {'a', 'b'}:\n    pass\n", "y = [x for x in set('ab')]\n"),
    "foreign_simpy": ("import simpy\n", "from simpy.core import Environment\n"),
    "import_in_function": ("def f():\n    import os\n", "def f():\n    from os import path\n"),
    "no_docstring": ("x = 1\n", ""),
    "tools_read_text": ("from sim.units import DIMS\n", "import sim.block\n"),
}
GOOD = '''"""A file as it should be."""

import random

TABLE = {"a": 1}
NAMES = ("a", "b")


def draw(stream: random.Random) -> float:
    """Draw from a named stream."""
    for name in sorted({"a", "b"}):
        print(name, TABLE[name])
    return stream.random()
'''


@pytest.mark.parametrize("rule", [*RULES, rules.tools_read_text], ids=lambda rule: rule.__name__)
def test_a_rule_finds_what_it_is_for(rule: Rule) -> None:
    if rule is rules.empty_name:
        assert list(rule(parse("sim/utils.py", GOOD)))
    else:
        assert all(list(rule(parse("sim/x.py", bad))) for bad in BAD[rule.__name__])


@pytest.mark.parametrize("rule", [*RULES, rules.tools_read_text], ids=lambda rule: rule.__name__)
def test_a_rule_lets_good_code_go(rule: Rule) -> None:
    assert list(rule(parse("sim/x.py", GOOD))) == []


SLEEPER = """
from collections.abc import Generator
from typing import Any

def nap(ns: int) -> Generator[Any, Any, int]:
    yield
    return ns

class Cat:
    gen: Generator[Any, Any, int]

    def sleep(self, ns: int) -> Generator[Any, Any, int]:
        return nap(ns)

    def live(self, run: Any) -> Generator[Any, Any, None]:
        self.gen = nap(1)
        run(nap(1))
        ns = yield from (nap(1) if self.gen else self.sleep(2))
"""


@pytest.mark.parametrize(
    ("line", "is_lost"),
    [
        ("self.sleep(1)", True),
        ("nap(1)", True),
        ("ns = nap(1)", True),
        ("yield nap(1)", True),
        ("if nap(1): pass", True),
        ("naps = [nap(ns) for ns in (1, 2)]", True),
        ("yield from nap(1)", False),
        ("print((yield from self.sleep(1)))", False),
        ("for _ in nap(1): pass", False),
    ],
)
def test_a_lost_yield_from_is_found(line: str, is_lost: bool) -> None:
    lost_yield_from = pytest.importorskip("tests.house.lost_yield_from", exc_type=ImportError)
    text = f"{SLEEPER}        {line}\n"
    expected = [f"cat.py:{text.count(chr(10))}"] if is_lost else []
    assert list(lost_yield_from.lost_calls([parse("cat.py", text)])) == expected


@pytest.mark.parametrize("text", ["# TO" + "DO: later", "open('/ro" + "ot/x')", "XX" + "X"])
def test_a_leftover_is_found(text: str) -> None:
    assert list(rules.leftovers(f"x = 1\n{text}\n"))


@pytest.mark.parametrize("text", ["", "# Changelog\n\n## 1.0\n- x\n", "## Unreleased\n\n## 1.0\n"])
def test_a_silent_changelog_is_found(text: str) -> None:
    assert list(rules.changelog(text))
