"""Every scenario that comes along, and each of its what-ifs, lists its parameters and runs."""

from dataclasses import replace

import pytest

from sim.machine import Machine
from sim.scenario import load
from sim.scenario.load import headlines
from sim.units import DIMS, NS_PER_S

SECONDS = 3  # of simulated time, after the last program has started
SECONDS_MAX = 40  # of all
VARIANTS = [(one.name, what_if) for one in headlines() for what_if in (None, *one.what_ifs)]


@pytest.mark.parametrize(("name", "what_if"), VARIANTS)
def test_a_scenario_lists_all_its_parameters_and_runs(name: str, what_if: str | None) -> None:
    scenario = load(name, what_if=what_if)
    bad = [p.path for p in scenario.parameters if not (p.source and p.doc and p.dim in DIMS)]
    assert bad == []
    paths = [p.path for p in scenario.parameters]
    assert len(paths) == len(set(paths))
    machine = Machine(replace(scenario), scenario.seed)
    started_ns = max(getattr(one.params, "start_ns", 0) for one in scenario.processes.values())
    until_ns = min(started_ns + SECONDS * NS_PER_S, SECONDS_MAX * NS_PER_S)
    machine.run_until(min(machine.end_ns, until_ns))
    machine.check()
