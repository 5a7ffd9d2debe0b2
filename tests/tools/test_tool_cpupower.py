"""cpupower: texts of /sys in, its own text out."""

import pytest

from sim.tools.cpupower import parse_options, run_cpupower
from sim.tools.snapshot import Snapshot
from sim.tools.usage import ToolUsageError
from tests.user.servers import boot, run_for

FILES = {
    "cpu0/cpufreq/scaling_driver": "intel_pstate\n",
    "cpu0/cpufreq/scaling_governor": "powersave\n",
    "cpu0/cpufreq/scaling_available_governors": "performance powersave\n",
    "cpu0/cpufreq/scaling_cur_freq": "1200000\n",
    "cpu0/cpufreq/cpuinfo_min_freq": "800000\n",
    "cpu0/cpufreq/cpuinfo_max_freq": "3000000\n",
    "cpu0/cpufreq/cpuinfo_transition_latency": "10000\n",
    "cpu0/cpuidle/state0/name": "POLL\n",
    "cpu0/cpuidle/state0/latency": "0\n",
    "cpu0/cpuidle/state0/usage": "3\n",
    "cpu0/cpuidle/state0/time": "17\n",
    "cpu0/cpuidle/state1/name": "C1\n",
    "cpu0/cpuidle/state1/latency": "2\n",
    "cpu0/cpuidle/state1/usage": "40\n",
    "cpu0/cpuidle/state1/time": "5000\n",
}
FREQUENCY = """\
analyzing CPU 0:
  driver: intel_pstate
  CPUs which run at the same hardware frequency: 0
  maximum transition latency: 10.0 us.
  hardware limits: 800 MHz - 3.00 GHz
  available cpufreq governors: performance, powersave
  current policy: frequency should be within 800 MHz and 3.00 GHz.
                  The governor "powersave" may decide which speed to use
                  within this range.
  current CPU frequency is 1.20 GHz.
"""
IDLE = """\
analyzing CPU 0:
Number of idle states: 2
Available idle states: POLL C1
POLL:
Latency: 0
Usage: 3
Duration: 17
C1:
Latency: 2
Usage: 40
Duration: 5000
"""


def typed(*arguments: str, files: dict[str, str] = FILES) -> str:
    """Return what cpupower prints."""
    return "".join(run_cpupower(parse_options(arguments), [Snapshot(0, files)]))


@pytest.mark.parametrize(("subject", "text"), [("frequency-info", FREQUENCY), ("idle-info", IDLE)])
def test_it_says_what_the_files_say(subject: str, text: str) -> None:
    assert typed(subject) == text


def test_a_cpu_that_is_not_there_has_neither() -> None:
    assert typed("-c", "7", "idle-info") == "analyzing CPU 7:\nCPU 7: No idle states\n"
    assert "no or unknown cpufreq driver" in typed("-c", "7", "frequency-info")


@pytest.mark.parametrize("arguments", [(), ("frequency-set",), ("-c",), ("-c", "x", "idle-info")])
def test_what_it_does_not_know_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ToolUsageError, match="frequency-info"):
        parse_options(arguments)


def test_a_booted_server_has_these_files() -> None:
    tables = '[machine.cpufreq]\ndriver = "acpi-cpufreq"\n[machine.cpuidle]\ntable = "haswell"\n'
    machine = run_for(boot(machine='[machine.mount."/"]\ntype = "tmpfs"\n' + tables), 3)
    files = machine.read_proc().files
    text = typed("-c", "1", "idle-info", files=dict(files))
    assert "Available idle states: POLL C1 C1E C3 C6" in text
    assert 'The governor "ondemand"' in typed("frequency-info", files=dict(files))
    times = [
        int(value) for name, value in files.items() if name.startswith("cpu1/") and "time" in name
    ]
    assert sum(times) == pytest.approx(3_000_000, abs=5_000)


def test_a_server_with_one_clock_that_never_sleeps_has_none() -> None:
    machine = run_for(boot(machine='[machine.mount."/"]\ntype = "tmpfs"\n'), 1)
    assert not [name for name in machine.read_proc().files if name.startswith("cpu0")]
