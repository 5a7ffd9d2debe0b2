"""Marks: every record that a program leaves is one that it names."""

import re
import sys
from pathlib import Path

import pytest

import sim.user
from sim.registry import lookup, names
from sim.scenario.cases import HOME, use_all

LEFT = re.compile(r'trace_marker\(\s*"(\w+)"')
OF_STUDIES = {"fio_end"}  # of FioSession, which no scenario names
OF_THE_KERNEL = {"oom_kill", "programs_exited"}
ROUTES = {"message_delivered", "message_filtered"}  # scenarios.amavisd.postfix: Route.mark

use_all()


def named(program: str) -> tuple[str, ...]:
    """Return the marks of a program, fail if it has none."""
    marks: tuple[str, ...] | None = vars(lookup("program", program).cls).get("marks")
    assert marks is not None, f"program {program}: its class says no marks (sim/user/program.py)"
    return marks


@pytest.mark.parametrize("program", [p for p in names("program")])
def test_a_program_names_every_mark_of_its_file(program: str) -> None:
    module = lookup("program", program).cls.__module__
    if not module.startswith(("sim.user.", "scenarios.")):
        pytest.skip("registered by a test")
    together = {
        mark
        for other in names("program")
        for mark in named(other)
        if lookup("program", other).cls.__module__ == module
    }
    # A compiled module's file is NAME.cpython-311-x86_64-linux-gnu.so; its source lies beside it.
    file = Path(str(sys.modules[module].__file__))
    path = file.with_name(f"{file.name.partition('.')[0]}.py")
    assert set(LEFT.findall(path.read_text(encoding="utf-8"))) <= (
        together | OF_THE_KERNEL | OF_STUDIES
    )


def test_marks_are_those_that_are_left() -> None:
    left = {
        mark
        for folder in (Path(sim.user.__path__[0]), HOME)
        for path in folder.rglob("*.py")
        if not path.name.startswith("test_")
        for mark in LEFT.findall(path.read_text(encoding="utf-8"))
    }
    assert {mark for program in names("program") for mark in named(program)} == (
        (left | ROUTES) - OF_STUDIES
    )
