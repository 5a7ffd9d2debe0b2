"""/sys/devices/system/cpu/cpu*/cpufreq, cpuidle and topology, as text.

Models: the files' texts, of the CPUs' clocks, idle states and cores.
Linux counterpart: drivers/cpufreq/cpufreq.c (show_scaling_governor and its like),
 drivers/cpuidle/sysfs.c (show_state_name, _latency, _usage, _time); drivers/base/topology.c.
Invariants: clocks in kHz, latencies and times in us; a CPU without idle states has the polling loop
 alone; names are paths below /sys/devices/system/cpu.
Left out: stats/trans_table, policies of several CPUs, writing.
"""

from sim.sched.capacity import ClockedRunQueue, ClockedSched
from sim.sched.core import Sched
from sim.sched.cpufreq import GOVERNORS, Cpufreq
from sim.units import NS_PER_US


def render_cpu_files(sched: Sched) -> dict[str, str]:
    """Return the texts by path; none for CPUs with one clock that never sleep."""
    if not isinstance(sched, ClockedSched):
        return {}
    sched.update()
    files: dict[str, str] = {}
    for number in range(sched.nr_cpus):
        if sched.cpufreq is not None:
            files |= _cpufreq_files(sched.cpufreq, number)
        if sched.siblings:
            files |= _topology_files(sched, number)
        files |= _cpuidle_files(sched.cpu_at(number), number)
    return files


def _cpufreq_files(cpufreq: Cpufreq, number: int) -> dict[str, str]:
    params = cpufreq.params
    table = params.table_khz()
    files = {
        "cpuinfo_max_freq": table[-1],
        "cpuinfo_min_freq": table[0],
        "cpuinfo_transition_latency": params.transition_latency_ns,
        "scaling_available_governors": " ".join(GOVERNORS[params.driver]),
        "scaling_cur_freq": cpufreq.clocks_khz[number],
        "scaling_driver": params.driver,
        "scaling_governor": params.chosen_governor,
    }
    return {f"cpu{number}/cpufreq/{name}": f"{value}\n" for name, value in files.items()}


def _topology_files(sched: Sched, number: int) -> dict[str, str]:
    """Return which core a CPU is a thread of, and with whom."""
    pair = sorted((number, sched.siblings[number].cpu))
    threads = ",".join(map(str, pair))
    return {
        f"cpu{number}/topology/core_id": f"{pair[0]}\n",
        f"cpu{number}/topology/thread_siblings_list": f"{threads}\n",
    }


def _cpuidle_files(cpu: ClockedRunQueue, number: int) -> dict[str, str]:
    files: dict[str, str] = {}
    for state, row in enumerate(cpu.states):
        below = f"cpu{number}/cpuidle/state{state}"
        files[f"{below}/name"] = f"{row.name}\n"
        files[f"{below}/latency"] = f"{row.exit_latency_ns // NS_PER_US}\n"
        files[f"{below}/usage"] = f"{cpu.usage[state]}\n"
        files[f"{below}/time"] = f"{cpu.residency_ns[state] // NS_PER_US}\n"
    return files
