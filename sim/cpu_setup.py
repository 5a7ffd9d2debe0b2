"""Sets up a booted machine's CPU limits: groups that compete for time, and each program's terms.

Models: what systemd, docker or a boot script write into the cpu and cpuset controllers' files, and
what taskset and chrt do before a program starts.
Linux counterpart: the files of kernel/sched/core.c (cpu_files, cpu_legacy_files).
Invariants: if one group says anything to the cpu controller it is on for all: each competes with
 its siblings as one. Groups that do not leave CPUs and tasks as they are.
Left out: changes in a run; nice levels of autogroups (/proc/PID/autogroup).

Autogroups (sched.autogroup): each session is a group of its own, here each process of the scenario
with its children: a daemon calls setsid(). So nice counts among the processes of a session alone,
and a session of many tasks has no more than one of one.
"""

from typing import Final

from sim.fs.proc.cgroup import render_cgroups
from sim.fs.proc.memcg import render_memcgs
from sim.fs.proc.sys_block import render_bdis, render_zrams, render_zswap
from sim.fs.proc.sys_cpu import render_cpu_files
from sim.mm.vmstat import Vm
from sim.mm.zram import Zram
from sim.scenario import Scenario
from sim.scenario.cgroups import allowed_cpus, parent_of
from sim.scenario.spec import CgroupSpec, ServerSpec
from sim.sched.bandwidth import Bandwidth
from sim.sched.core import Sched
from sim.sched.task_group import TaskGroup, weight_to_shares
from sim.sched.terms import POLICIES, Terms

AUTOGROUP: Final = "/autogroup-"  # no cgroup's name begins so
AUTOGROUP_SINCE: Final = (2, 6, 38)  # 5091faa449ee


def add_groups(scenario: Scenario, sched: Sched) -> dict[str, TaskGroup]:
    """Have the scheduler know the groups; return them by name, {} if nothing asks for any."""
    found = _control_groups(scenario.server, sched)
    if sched.params.autogroup and sched.kernel >= AUTOGROUP_SINCE:
        for process in scenario.processes.values():
            if process.runs == "server" and process.cgroup not in found:
                names = [AUTOGROUP + own for own in process.instances()]
                found |= {name: TaskGroup(name) for name in names}
    if found:
        sched.add_groups(list(found.values()))
    return found


def _control_groups(server: ServerSpec, sched: Sched) -> dict[str, TaskGroup]:
    """Return the control groups, none if the cpu controller is off."""
    found: dict[str, TaskGroup] = {}
    if not any(spec.has_cpu_limits for spec in server.cgroups.values()):
        return found
    for name, spec in server.cgroups.items():
        shares = spec.cpu_shares if spec.version == 1 else weight_to_shares(spec.cpu_weight)
        parent = found.get(parent_of(name))
        found[name] = TaskGroup(name, shares, parent, _bandwidth(spec, sched))
    return found


def _bandwidth(spec: CgroupSpec, sched: Sched) -> Bandwidth | None:
    if spec.cpu_quota_ns is None:
        return None
    return Bandwidth(
        sched.calendar, sched.kernel, quota_ns=spec.cpu_quota_ns, period_ns=spec.cpu_period_ns,
        burst_ns=spec.cpu_burst_ns,
    )  # fmt: skip


def terms_of(scenario: Scenario, groups: dict[str, TaskGroup]) -> dict[str, Terms]:
    """Return on what terms each process competes, by the name it runs under; not the usual ones."""
    found: dict[str, Terms] = {}
    usual = Terms()
    for process in scenario.processes.values():
        if process.runs != "server":
            continue
        allowed = allowed_cpus(process, scenario.server.cgroups)
        for own in process.instances():
            group = groups.get(process.cgroup or "", groups.get(AUTOGROUP + own))
            terms = Terms(
                policy=POLICIES[process.policy], slice_ns=process.slice_ns or 0, allowed=allowed,
                group=group,
            )  # fmt: skip
            if terms != usual:
                found[own] = terms
    return found


def sys_files(
    server: ServerSpec, sched: Sched, groups: dict[str, TaskGroup], vm: Vm
) -> dict[str, str]:
    """Return what tools read of /sys: clocks, idle states, control groups."""
    files = render_cpu_files(sched)
    if groups:
        sched.update()
        versions = {name: spec.version for name, spec in server.cgroups.items()}
        control = {name: group for name, group in groups.items() if name in versions}
        files |= render_cgroups(control, versions)
    zrams = [one.device for one in vm.swap.by_number if isinstance(one.device, Zram)]
    files |= render_bdis(bdi for bdi in vm.bdis if bdi.name in server.bdis)
    return files | render_memcgs(vm.memcgs) | render_zrams(zrams) | render_zswap(vm.swap.zswap)
