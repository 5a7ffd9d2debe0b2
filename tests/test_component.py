"""Components: their order, what is told of their tables, and the example of the page about them."""

import contextlib
import io
import re
from dataclasses import dataclass
from graphlib import CycleError
from pathlib import Path

import pytest

from sim.component import Component, in_order
from sim.machine import Machine
from sim.param import param
from sim.registry import lookup, names, provisional, register
from sim.scenario import Layer, ScenarioError, load_text

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "component.md"
EXAMPLE, SHOWN = (
    re.search(pattern, PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    for pattern in (r"```python brd.py\n(.*?)```", r"```console\n\$ [^\n]*\n(.*?)```")
)
SERVER = """
title = "A server"
[machine]
kernel = "5.10"
memory = "256 MiB"
mount."/".type = "tmpfs"
{}
[process.p]
program = "cpuburn"
runtime = "1 s"
[run]
duration = "1 s"
"""


@dataclass(frozen=True, kw_only=True)
class FanParams:
    """How a fan turns."""

    speed: float = param(
        "1200 rpm", dim="rpm", source="data sheet: none", doc="how fast", minimum=1
    )


def add_fan(**more):
    """Register a component of its own, and return what machines did with it."""
    done = []

    @register("component", "fan", params=FanParams, doc="a fan", **more)
    class Fan(Component):
        """[machine.fan]"""

        def init(self, machine):
            done.append(("init", self.params.speed, bool(machine.vfs.mounts)))

        def start(self, machine):
            done.append(("start", self.params.speed, bool(machine.vfs.mounts)))

        def files(self):
            return {"fan/speed": f"{self.params.speed:g}\n"}

        def check(self):
            done.append("check")

    return done


def load(more, sets=()):
    return load_text(SERVER.format(more), Path("fan.toml"), seed=1, sets=sets)


def test_a_component_is_read_built_shown_and_checked():
    with provisional():
        done = add_fan()
        machine = Machine(load('fan.speed = "900 rpm"', sets=["machine.fan.speed=800 rpm"]), 1)
        machine.check()
        assert done == [("init", 800.0, False), ("start", 800.0, True), "check"]
        assert machine.proc.snapshot()["fan/speed"] == "800\n"


def test_its_values_are_listed_with_source_and_layer():
    with provisional():
        add_fan()
        [one] = [p for p in load("fan = {}").parameters if p.path == "machine.fan.speed"]
        assert (one.value, one.source, one.layer) == (1200.0, "data sheet: none", Layer.DEFAULT)


def test_a_machine_without_its_table_has_none():
    with provisional():
        done = add_fan()
        Machine(load(""), 1).check()
        assert done == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('fan.sped = "900 rpm"', "unknown key 'sped' in [machine.fan] - did you mean 'speed'?"),
        ('fan.speed = "900 s"', "machine.fan.speed"),
        ('fan.speed = "0 rpm"', "must be at least 1 rpm"),
        ("fan = 3", "[machine.fan] must be a table of keys and values"),
        ("fann = {}", "unknown key 'fann' in [machine] - did you mean 'fan'?"),
    ],
)
def test_mistakes_in_its_table_are_told_with_their_place(more, said):
    with provisional():
        add_fan()
        with pytest.raises(ScenarioError) as told:
            load(more)
    assert said in str(told.value)
    assert "fan.toml:7:" in str(told.value)


def test_releases_without_it_are_told():
    with provisional():
        add_fan(since=(6, 1), until=(6, 5))
        with pytest.raises(
            ScenarioError, match=r"5.10 has no fan \(accepted: 6.1 and later, up to"
        ):
            load("fan = {}")


def test_block_devices_come_before_mounts_and_mounts_before_swap():
    order = [entry.name for entry in in_order(names("component"))]
    for low, high in (
        ("disk", "array"),
        ("array", "volume"),
        ("volume", "delay"),
        ("disk", "mount"),
        ("delay", "mount"),
        ("loop", "mount"),
        ("zram", "mount"),
        ("mount", "swap"),
    ):
        assert order.index(low) < order.index(high)


def test_an_order_with_a_circle_is_an_error():
    with provisional():
        for name, other in (("one", "two"), ("two", "one")):
            made = type(name, (Component,), {"after": (other,), "__doc__": "A table."})
            register("component", name, params=FanParams, doc="one of two")(made)
        with pytest.raises(CycleError):
            in_order(["one", "two"])


@pytest.mark.parametrize("name", names("component"))
def test_it_knows_names_of_components_only(name):
    cls = lookup("component", name).cls
    assert set(cls.after + cls.before) <= set(names("component"))


@pytest.mark.parametrize(("name", "shown"), [("__main__", SHOWN), ("brd", "")])
def test_the_example_of_the_page_says_what_the_page_says_and_nothing_if_imported(name, shown):
    told = io.StringIO()
    with provisional(), contextlib.redirect_stdout(told):
        exec(compile(EXAMPLE, "brd.py", "exec"), {"__name__": name})
    assert told.getvalue() == shown
