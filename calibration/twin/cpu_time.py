"""Whose CPU time it is: of the transactions, of the pages they write, or of somebody else.

Models: what `%user`, `%nice` and `%system` say about a server whose programs are not known.
Linux counterpart: /proc/stat; kernel/sched/cputime.c.
Invariants: every share of CPU time of a recording is given to one class, none to two.
Left out: time stolen by the hypervisor, interrupts apart from kernel time.

Theory. With X transactions per second on c CPUs, a transaction computes c %user / X. That holds as
long as CPUs are idle now and then; at full CPUs what arrives cannot be told from the time it takes,
and user and kernel time are a closed class, beside which the transactions run. If only niced tasks
fill the CPUs, user time alone is such a class, which pauses between its turns: W workers that
compute for S at a time keep b CPUs busy if they pause for S (W / b - 1).
Niced time is a class in the background. Kernel time of a server that writes in bulk is paid by the
page (calibration/twin/page_costs.py) and fitted as the price of copying one.
By hand: 18 % of two CPUs beside niced tasks are 0.36 CPUs: one worker that computes for 10 ms and
pauses for 18.
"""

from typing import Final

from calibration.look import Look
from calibration.look.bottleneck import FULL
from calibration.twin.demands import PAGE, WRITE
from calibration.twin.draft import ESTIMATE, MS, Draft, S, process_name
from calibration.twin.load_average import recorded_tasks
from calibration.twin.page_costs import COPY
from calibration.twin.server import RECORDED
from calibration.twin.sheet import dotted
from sim.units import format_quantity, parse_quantity

BACKGROUND_NS: Final = 10 * MS  # of computing at a time
NICE: Final = 19


def draw_cpu(draft: Draft, seen: Look) -> None:
    """Share CPU time out; niced time, and the time of full CPUs, in classes of their own."""
    _iowait(draft)
    shares = seen.cpu.shares_pct
    cpus = draft.server.cpus
    user = shares.get("user_pct", 0.0)
    system = sum(shares.get(name, 0.0) for name in ("system_pct", "irq_pct", "soft_pct"))
    nice = shares.get("nice_pct", 0.0)
    if "idle_pct" not in shares and not user:
        draft.notes.append("CPU: not recorded; the transactions compute nothing")
        return
    if shares.get("steal_pct", 0.0) >= 1:
        draft.notes.append(f"CPU: {shares['steal_pct']:.1f} % stolen by the hypervisor is left out")
    full = user + system + nice >= 100 * FULL
    if nice >= 1:
        _background(draft, "niced", nice * cpus / 100, full=full)
        draft.sheet.put(
            ("process", "niced"),
            "nice",
            NICE,
            f"{RECORDED}: nice time; the value itself is assumed",
        )
    if user + system >= 100 * FULL:
        draft.notes.append("CPU: full: user and system time are a class of their own")
        _background(draft, "computing", cpus, full=True)
        _runnable(draft, "computing", seen, besides=0)
        _system_share(draft, "computing", system / (user + system))
        return
    if full and user >= 1:
        draft.notes.append("CPU: full with niced tasks: user time is a class of its own")
        _background(draft, "computing", user * cpus / 100, full=False)
        user = 0.0
    if full and nice >= 1:
        _runnable(draft, "niced", seen, besides=(100 - nice) * cpus / 100)
    rate = sum(one.rate_per_s for load in draft.loads for one in load.classes)
    _share(draft, "user", user * cpus / 100 / rate, 3.0)
    if _pays_by_page(draft):
        _page_cost(draft, system * cpus / 100)
    else:
        _share(draft, "system", system * cpus / 100 / rate, 10.0)


def _runnable(draft: Draft, name: str, seen: Look, *, besides: float) -> None:
    """Let as many tasks compute as wait for full CPUs, if that was recorded; `besides` others."""
    tasks = recorded_tasks(seen)
    number = round(tasks.running - besides) if tasks is not None else 0
    if tasks is not None and number > draft.server.cpus:
        why = f"{RECORDED}: {tasks.running:.1f} tasks run or wait for a CPU"
        draft.sheet.put(("process", name), "concurrency", number, why)


def _pays_by_page(draft: Draft) -> bool:
    """Return whether bulk is written through the page cache of a machine whose costs are known."""
    bulk = any(one.kind == WRITE and one.is_large for load in draft.loads for one in load.classes)
    return bulk and "page_copy" in draft.sheet.sections.get(("machine", "vfs"), {})


def _page_cost(draft: Draft, busy_cpus: float) -> None:
    """Fit what copying a page costs: kernel time, if it is all paid by the page, or far less."""
    pages_per_s = (
        sum(load.writes.rate_per_s * load.writes.size_bytes for load in draft.loads) / PAGE
    )
    entry = draft.sheet.sections["machine", "vfs"]["page_copy"]
    copy_ns = float(parse_quantity(str(entry.value), "time_ns"))
    all_ns = max(copy_ns, S * busy_cpus / pages_per_s)
    draft.prior_between(
        COPY,
        "time_ns",
        copy_ns / 2,
        2 * all_ns,
        f"{ESTIMATE}: up to twice kernel time / pages written; from half of what was measured",
    )


def _iowait(draft: Draft) -> None:
    """Leave iowait out of the fit where it is chance: of several waiters on several CPUs."""
    waiters = sum(one.customers or 0 for load in draft.loads for one in load.classes)
    if waiters > 1 and draft.server.cpus > 1:
        draft.server.left_out["cpu iowait_pct"] = (
            f"{waiters} waiters: whether they sleep on one of {draft.server.cpus} CPUs or on all"
            " of them is chance, and stays so"
        )


def _share(draft: Draft, key: str, seconds: float, down: float) -> None:
    """Give every transaction the same CPU time; fit that of the class with most of them."""
    demand_ns = max(1000, round(seconds * S))
    for name in draft.streams:
        section = ("process", name)
        draft.sheet.put(
            section,
            key,
            format_quantity(demand_ns, "time_ns"),
            f"{ESTIMATE}: CPU time / transactions",
        )
    if demand_ns > 10_000:
        rates = {
            process_name(load.name, one.kind): one.rate_per_s
            for load in draft.loads
            for one in load.classes
        }
        most = max(rates, key=lambda name: rates[name])
        draft.prior(dotted("process", most, key), "time_ns", demand_ns, down, 2)


def _system_share(draft: Draft, name: str, share: float) -> None:
    """Divide the time of a class in the background into user and system time."""
    parts = (
        ("user", max(1000, round((1 - share) * BACKGROUND_NS))),
        ("system", round(share * BACKGROUND_NS)),
    )
    for key, part_ns in parts:
        draft.sheet.put(
            ("process", name),
            key,
            format_quantity(part_ns, "time_ns"),
            f"{RECORDED}: {100 * share:.0f} % of CPU time is the kernel's",
        )


def _background(draft: Draft, name: str, cpus: float, *, full: bool) -> None:
    """Add computing that keeps so many CPUs busy: all that is left over, if they are full."""
    section = ("process", name)
    put = draft.sheet.put
    workers = draft.server.cpus if full else max(1, -(-round(100 * cpus) // 100))
    put(section, "program", "transactions")
    put(section, "arrivals", "closed", "assumed: computing has no arrivals of its own")
    put(section, "concurrency", workers, f"{ESTIMATE}: {cpus:.2f} CPUs busy")
    put(section, "counted", False)
    put(section, "user", format_quantity(BACKGROUND_NS, "time_ns"), "assumed: at a time")
    think_ns = 0 if full else round(BACKGROUND_NS * max(0.0, workers / cpus - 1))
    put(
        section,
        "think_time",
        format_quantity(think_ns, "time_ns"),
        f"{ESTIMATE}: {cpus:.2f} CPUs busy",
    )
    if think_ns:
        draft.prior(dotted(*section, "think_time"), "time_ns", think_ns, 3, 3)
