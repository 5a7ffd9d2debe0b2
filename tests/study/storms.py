"""Results of storms that never ran: /proc texts with known counters, for tests of what reads them.

The base is a storm from 30 s to 217 s on a disk, with the port closed from 100 s to 160 s; the
variant is over at 64 s and touches no disk. Seeds shift the figures by known amounts.
"""

from sim.results import ProcSample, Record, RunResult

NS_PER_S = 1_000_000_000
INTERVAL_S = 5


def sample(t_s: int, storm: tuple[int, int], rates: tuple[int, int], load1: float) -> ProcSample:
    """Return /proc at t_s; `rates` are disk writes per second and user ticks per second."""
    inside = max(0, min(t_s, storm[1]) - storm[0])
    writes, user = rates[0] * inside, rates[1] * inside
    iowait = 87 * inside if writes else 0
    idle = 400 * t_s - user - iowait
    cpu = f"{user} 0 0 {idle} {iowait} 0 0 0"
    busy_ms = 950 * inside if writes else 0
    queue = f"0 0 0 0 {writes} {4 * writes} {44 * writes} {23 * writes} 0 {busy_ms} {4 * busy_ms}"
    cpus = "".join(f"cpu{n} 0 0 0 0 0 0 0 0\n" for n in range(4))
    blocked = 1 if writes and storm[0] <= t_s <= storm[1] else 0
    return ProcSample(
        t_s * NS_PER_S,
        {
            "uptime": f"{t_s}.00 0.00\n",
            "loadavg": f"{load1:.2f} 0.00 0.00 1/99 1000\n",
            "stat": f"cpu  {cpu}\n{cpus}intr 0\nctxt 0\nbtime 1136073600\nprocesses 1\n"
            f"procs_running 1\nprocs_blocked {blocked}\n",
            "diskstats": f"   8   16 sdb {queue}\n 253    6 dm-6 {queue}\n",
            "meminfo": "MemTotal: 8 kB\n",
            "vmstat": "nr_dirty 0\n",
        },
    )


def storm(what_if: str | None, seed: int) -> RunResult:
    """Return a result; the seed adds a millisecond to the end of the storm for each unit."""
    begin_s, end_s, messages = (30, 217, 2030) if what_if is None else (30, 64, 2000)
    rates = (173, 24) if what_if is None else (0, 272)
    peak = 37.0 if what_if is None else 3.1
    samples = tuple(
        sample(t_s, (begin_s, end_s), rates, peak * max(0, min(t_s, end_s) - begin_s) / 187)
        for t_s in range(0, 281, INTERVAL_S)
    )
    end_ns = end_s * NS_PER_S + seed * 1_000_000
    step_ns = (end_ns - begin_s * NS_PER_S) // messages
    accepted = [
        Record(begin_s * NS_PER_S + (n + 1) * step_ns, "message_accepted", "sendmail", 8192)
        for n in range(messages)
    ]
    port = [Record(1, "port_open", "sendmail", 1)]
    if what_if is None:
        port.append(Record(100 * NS_PER_S, "port_open", "sendmail", 0))
        port.append(Record(160 * NS_PER_S, "port_open", "sendmail", 1))
    marks = [
        Record(begin_s * NS_PER_S, "storm_begin", "blast", 1),
        Record(end_ns, "storm_end", "blast", 1),
    ]
    records = tuple(sorted([*accepted, *port, *marks], key=lambda record: record.t_ns))
    return RunResult(
        scenario="sendmail",
        title="A storm",
        what_if=what_if,
        seed=seed,
        version="0.0",
        samples=samples,
        records=records,
    )
