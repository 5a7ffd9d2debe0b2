"""Two threads of a core: CPUs that share what computes: [machine.smt].

Theory of operation. CPU i and CPU i + n/2 are threads of core i, as x86 firmware numbers them. One
thread alone has the whole core; while both have a task each works at half of `pair_throughput`. To
the kernel both are CPUs, busy all the time: its times and shares say nothing of the lost speed. So
it helps to put tasks on cores first: a waking task that finds its CPU taken goes to a core that is
idle as a whole, a new one to the core with the fewest tasks.

Estimate: two hogs on one core of 1.25 take 1.6 times as long as one alone; on two cores, as long.

Linux counterpart: arch/x86/kernel/smpboot.c (set_cpu_sibling_map); kernel/sched/fair.c
 select_idle_core, select_idle_sibling (4.8: 9b65b1f94ee9; before, groups that are idle as a whole).
Invariants: a thread's share of its core changes only when its sibling's current task comes or goes.
Left out: more than two threads; interrupts on an idle sibling. A running task that shares a core
 while another core is idle is balance.py's.
"""

from dataclasses import dataclass
from typing import Final

from sim.component import Component, Described
from sim.param import param
from sim.registry import register
from sim.sched.runqueue import RunQueue

THREADS: Final = 2
PERMILLE: Final = 1000


@dataclass(frozen=True, kw_only=True)
class SmtParams:
    """[machine.smt]"""

    pair_throughput: float = param(
        1.25,
        dim="number",
        minimum=0.5,
        maximum=2.0,
        source="manual: Marr et al., Intel Technology Journal 6(1), 2002: OLTP 1.21, web 1.16"
        " .. 1.28",
        doc="what two busy threads of a core do together, of what one does alone",
    )

    @property
    def share_permille(self) -> int:
        """What is left to a thread beside a busy one, in thousandths of the core."""
        return round(self.pair_throughput * PERMILLE / THREADS)


@register("component", "smt", params=SmtParams, doc="two threads of each core")
class SmtTable(Component[SmtParams]):
    """[machine.smt]"""

    @classmethod
    def examine(cls, described: Described, name: str, params: SmtParams) -> None:
        """Note an odd number of CPUs where each core has two."""
        if described.cpus is not None and described.cpus % THREADS:
            leaf = described.machine.leaf("cpus")
            described.reading.error(
                leaf.at if leaf else described.given("smt").place,
                "machine.cpus: with [machine.smt] each core has two of them",
                given=str(described.cpus),
                allowed="an even number",
            )


def sibling_of(cpu: int, nr_cpus: int) -> int:
    """Return the other thread of a CPU's core."""
    return (cpu + nr_cpus // THREADS) % nr_cpus


def idle_core(rqs: list[RunQueue], others: list[RunQueue]) -> RunQueue | None:
    """Return an idle CPU of a core that is idle as a whole, or else an idle CPU, or None.

    `others` has each CPU's sibling.
    """
    found: RunQueue | None = None
    for rq in rqs:
        if rq.curr is None:
            if others[rq.cpu].curr is None:
                return rq
            if found is None:
                found = rq
    return found


def idlest_core(parent: RunQueue, rqs: list[RunQueue], others: list[RunQueue]) -> RunQueue:
    """Return the CPU with the fewest tasks of the core with the fewest, the parent's if equal."""
    best = parent if parent in rqs else rqs[0]
    fewest = _tasks(best, others)
    for rq in rqs:
        tasks = _tasks(rq, others)
        if tasks < fewest:
            best = rq
            fewest = tasks
    return best


def _tasks(rq: RunQueue, others: list[RunQueue]) -> tuple[int, int]:
    own = rq.nr_running()
    return own + others[rq.cpu].nr_running(), own
