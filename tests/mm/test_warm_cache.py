"""A warm page cache: what fits is there at the start, and its share is the share of the hits."""

from pathlib import Path

import pytest

from sim.machine import Machine, simulate
from sim.observation import Observation
from sim.scenario import Scenario
from sim.scenario.load import load_text
from sim.study.metrics import metrics_seen
from sim.toml.errors import ScenarioError
from sim.tools.parse import parse_meminfo

TABLE = """\
title = "A table that is read here and there"
seed = 5
[machine]
kernel = "6.1"
cpus = 4
memory = "MEMORY"
disk.sda = { device = "multiserver", capacity = "200 GiB", servers = 64, read = "1 ms" }
mount."/" = { type = "ext4", device = "sda" }
[process.db]
program = "transactions"
arrivals = "open"
rate = "400 /s"
concurrency = 64
reads = 1
read_size = "4 KiB"
working_set = "8 GiB"
warm = WARM
[run]
duration = "10 s"
[measure]
interval = "1 s"
devices = ["sda"]
families = ["transactions", "disk"]
"""


def table(memory: str, warm: str = "true", more: str = "") -> Scenario:
    """Return the server with so much memory."""
    text = TABLE.replace("MEMORY", memory).replace("WARM", warm) + more
    return load_text(text, Path("table.toml"))


def reads_per_s(scenario: Scenario) -> float:
    """Return the reads of the disk a second."""
    seen = Observation(simulate(scenario, scenario.seed), scenario.measure)
    return metrics_seen(seen)["disk.sda.r_per_s"]


def test_a_cold_cache_misses_and_a_warm_one_that_holds_the_table_does_not() -> None:
    assert reads_per_s(table("12 GiB", "false")) == pytest.approx(400, rel=0.05)
    assert reads_per_s(table("12 GiB")) == pytest.approx(0, abs=1)


@pytest.mark.parametrize("memory_gib", [2, 4, 6])
def test_of_a_table_that_does_not_fit_so_many_reads_miss_as_pages_are_not_there(
    memory_gib: int,
) -> None:
    """By hand: of 8 GiB some M less what the kernel keeps are there: 400 (1 - h) a second."""
    scenario = table(f"{memory_gib} GiB")
    before = parse_meminfo(Machine(scenario, 5).read_proc().text("meminfo"))
    share = before["Cached"] / (8 * 2**20)
    assert share == pytest.approx(memory_gib / 8, abs=0.05)
    assert reads_per_s(scenario) == pytest.approx(400 * (1 - share), rel=0.08)


def test_filling_takes_no_memory_below_the_watermarks() -> None:
    machine = Machine(table("2 GiB"), 5)
    machine.check()
    for node in machine.vm.nodes:
        assert node.nr_free >= node.watermarks.low
    assert machine.vm.events.pgscan_direct == 0


def test_a_group_that_limits_memory_has_no_warm_cache() -> None:
    more = '[machine.cgroup.box]\nmemory = "1 GiB"\n'
    text = TABLE.replace("MEMORY", "4 GiB").replace("WARM", 'true\ncgroup = "box"') + more
    with pytest.raises(ScenarioError, match="no warm cache in 'box', which limits memory"):
        load_text(text, Path("table.toml"))
