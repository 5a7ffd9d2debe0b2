"""What a scenario may say of clocks and idle states, and what it is told when it is wrong."""

from pathlib import Path

import pytest

from sim.scenario import load
from sim.scenario.load import load_text
from sim.toml.errors import ScenarioError

OPTIONAL = ("cpufreq", "cpuidle", "guest", "nic", "smt", "zswap")


SERVER = """\
title = "Clocks"
seed = 1
[machine]
kernel = "{kernel}"
cpus = 2
memory = "1 GiB"
[machine.mount."/"]
type = "tmpfs"
{tables}
[process.log]
program = "syslogd"
[run]
duration = "1 min"
"""


def read(tables: str, kernel: str = "3.16") -> object:
    """Read a server with these tables."""
    return load_text(SERVER.format(tables=tables, kernel=kernel), Path("clocks.toml"))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ('[machine.cpufreq]\ngovernor = "ondemand"', "intel_pstate has no such governor"),
        ('[machine.cpufreq]\ngovernor = "turbo"', "not one of the choices"),
        ('[machine.cpufreq]\nbase = "1 GHz"', "clocks out of order"),
        ('[machine.cpufreq]\nturbo = "2 GHz"', "from the base, 2.4 GHz, on"),
        ("[machine.cpufreq]\nbase = 2400", "needs a unit"),
        ("[machine.cpuidle]", "lacks 'table'"),
        ('[machine.cpuidle]\ntable = "haswel"', '"nehalem", "sandy-bridge"'),
        ('[machine.nic]\nmodel = "e100"', '"physical", "virtio-net", "e1000"'),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_is_allowed(tables: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(tables)
    assert message in str(caught.value)
    assert "clocks.toml:" in str(caught.value)


@pytest.mark.parametrize(
    ("kernel", "driver"), [("2.6.32", "acpi-cpufreq"), ("3.16", "intel_pstate")]
)
def test_the_driver_is_that_of_the_kernels_days(kernel: str, driver: str) -> None:
    scenario = read("[machine.cpufreq]", kernel)
    assert scenario.server.one("cpufreq").driver == driver  # type: ignore[attr-defined]


def test_a_machine_without_these_tables_has_none_of_their_parameters() -> None:
    paths = [one.path for one in load("sendmail").parameters]
    assert not [path for path in paths if path.split(".")[1] in OPTIONAL]
