"""Scenarios are read completely: values, layers, overlays, sources."""

import pickle
from pathlib import Path

import pytest

from sim.drivers.disk import profile_names
from sim.scenario import (
    Layer,
    Parameter,
    Scenario,
    ScenarioError,
    UnknownScenario,
    load,
    load_text,
    scenario_files,
)
from tests.scenario.things import EXAMPLE, AirParams, ChipParams, OrderedParams, PlateParams

FILE = Path("two-disks.toml")


def read(text: str = EXAMPLE, what_if: str | None = None, *sets: str) -> Scenario:
    """Return the scenario of a text."""
    return load_text(text, FILE, what_if=what_if, sets=sets)


def parameter(scenario: Scenario, path: str) -> Parameter:
    """Return one parameter by path."""
    return next(p for p in scenario.parameters if p.path == path)


def test_the_example_is_read_into_canonical_values() -> None:
    scenario = read()
    server = scenario.server
    assert (scenario.name, scenario.title, scenario.seed) == ("two-disks", "Two disks", 7)
    assert (server.kernel, server.cpus, server.memory_bytes) == ("2.6.16", 4, 8 * 2**30)
    assert server.all("disk")["sda"].params == PlateParams(rpm=10000.0)
    assert server.all("disk")["sda"].partitions[0].size_bytes == 20 * 2**30
    assert server.all("volume")["dm-6"].offset_bytes == 2**30
    assert server.all("mount")["/spool"].params == OrderedParams(data="journal")
    assert scenario.links["lan"].latency_ns == 100_000
    assert (scenario.processes["client"].runs, scenario.processes["client"].via) == (
        "outside",
        "lan",
    )
    assert scenario.run.duration_ns == 600 * 10**9
    assert scenario.measure.devices == ("sdb", "dm-6")


def test_a_value_remembers_who_set_it_and_why() -> None:
    scenario = read(EXAMPLE, None, "machine.disk.sdb.rpm=7200")
    found = {
        path: (p.layer, p.source)
        for path in (
            "machine.disk.sda.capacity",
            "machine.disk.sda.rpm",
            "machine.disk.sdb.rpm",
            "process.writer.size",
        )
        for p in [parameter(scenario, path)]
    }
    assert found == {
        "machine.disk.sda.capacity": (Layer.DEFAULT, "data sheet"),
        "machine.disk.sda.rpm": (Layer.SCENARIO, "two-disks.toml:8"),
        "machine.disk.sdb.rpm": (Layer.SET, "command line"),
        "process.writer.size": (Layer.SCENARIO, "assumed: a picture"),
    }


def test_a_default_may_depend_on_the_kernel() -> None:
    scenario = read(EXAMPLE.replace('"2.6.16"', '"3.2"'))
    barrier = parameter(scenario, "machine.mount./.barrier".replace("/", '"/"'))
    assert (barrier.value, barrier.layer, barrier.source) == (
        True,
        Layer.KERNEL,
        "include/linux/fs.h 3.1",
    )
    assert scenario.server.all("mount")["/"].params == OrderedParams(barrier=True)


def test_a_what_if_replaces_one_value_and_what_only_suited_the_old_one() -> None:
    scenario = read(EXAMPLE, "air")
    mount = scenario.server.all("mount")["/spool"]
    assert (mount.type, mount.device, mount.params) == ("test_air", None, AirParams())
    assert scenario.what_if is not None
    assert scenario.what_if.title == "Spool in memory"
    assert scenario.server.all("disk") == read().server.all("disk")


def test_a_what_if_may_put_in_another_device() -> None:
    assert read(EXAMPLE, "chip").server.all("disk")["sdb"].params == ChipParams(channels=8)


def test_set_wins_over_the_what_if() -> None:
    scenario = read(EXAMPLE, "chip", "machine.disk.sdb.channels=16", "machine.memory=4 GiB")
    assert scenario.server.all("disk")["sdb"].params == ChipParams(channels=16)
    assert scenario.server.memory_bytes == 4 * 2**30


def test_set_reaches_quoted_names() -> None:
    scenario = read(EXAMPLE, None, 'machine.mount."/spool".type=test_air')
    assert scenario.server.all("mount")["/spool"].type == "test_air"


def test_recorded_figures_belong_to_the_variant_that_names_them() -> None:
    text = EXAMPLE + 'recorded.after = "sendmail"\n\n[recorded]\nbefore = "sendmail"\n'
    assert [r.figures for r in read(text).recorded] == ["before"]
    assert [r.figures for r in read(text, "chip").recorded] == ["after"]
    assert read(text, "air").recorded == ()


def test_a_profile_lies_under_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text(
        'doc = "an old disk"\nsource = "data sheet: its label"\n'
        'device = "test_plate"\nrpm = "5400 rpm"\n'
        'capacity = { value = "9 GB", source = "recording: weighed" }\n'
    )
    text = EXAMPLE.replace('device = "test_plate", rpm = "10000 rpm"', 'profile = "old.toml"')
    scenario = load_text(text.replace("20 GiB", "2 GiB"), tmp_path / "x.toml")
    disk = scenario.server.all("disk")["sda"]
    assert disk.params == PlateParams(rpm=5400.0, capacity_bytes=9 * 10**9)
    rpm = parameter(scenario, "machine.disk.sda.rpm")
    assert (rpm.layer, rpm.source) == (Layer.PROFILE, "data sheet: its label")
    assert parameter(scenario, "machine.disk.sda.capacity").source == "recording: weighed"


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_that_comes_along_can_be_used(name: str) -> None:
    text = EXAMPLE.replace(
        'sda = { device = "test_plate", rpm = "10000 rpm"', f'sda = {{ profile = "{name}"'
    )
    scenario = read(text.replace("20 GiB", "1 GiB"))
    assert scenario.server.all("disk")["sda"].profile == name
    unsourced = [
        p for p in scenario.parameters if p.layer == Layer.PROFILE and ":" in p.source[-5:]
    ]
    assert not unsourced, "a profile states the data sheet it was read from"


def test_a_scenario_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(read(EXAMPLE, "air"))) == read(EXAMPLE, "air")


def test_a_scenario_is_found_by_path(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(EXAMPLE)
    assert load(str(tmp_path / "mine.toml"), seed=3).seed == 3


def test_an_unknown_scenario_names_the_nearest() -> None:
    with pytest.raises(UnknownScenario, match="did you mean 'sendmail'"):
        load("sendmial")
    with pytest.raises(
        UnknownScenario, match="'two-disks' has no what-if 'airr' - did you mean 'air'"
    ):
        read(EXAMPLE, "airr")


def test_the_scenarios_that_come_along_are_listed() -> None:
    assert "sendmail" in scenario_files()


@pytest.mark.parametrize("kernel", ["6.5", "3.10", "6.50", "2.6.16"])
def test_a_set_text_may_read_as_a_number(kernel: str) -> None:
    scenario = read(EXAMPLE, None, f"machine.kernel={kernel}", "machine.hostname=7.0")
    assert (scenario.server.kernel, scenario.server.hostname) == (kernel, "7.0")


def test_a_number_in_the_file_is_still_no_text() -> None:
    with pytest.raises(ScenarioError, match=r"expected a text, in quotes, got 6\.5"):
        read(EXAMPLE.replace('"2.6.16"', "6.5"))
