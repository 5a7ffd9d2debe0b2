"""The draft of a twin: a scenario from operational estimates, and priors around them for the fit.

Models: the first sketch, before anything is simulated.
Linux counterpart: none.
Invariants: a prior is flat in the logarithm, from an estimate divided by a factor to its multiple:
it says how far the estimate's assumptions may carry, and uses the recording no second time. What
the recording cannot tell (how many requests a device serves side by side) has a prior as well, and
is seen in the report to be not identified.
Left out: parameters of disks with an arm: their profile is a data sheet's; only how far the arm
travels, by the size of the file that is read, is fitted.

CPU time is shared out over the transactions; that of niced tasks is a class of its own in the
background. If the CPUs are full, the time of the others is a closed class too: what arrives at full
CPUs cannot be told from the time that it takes.
"""

from dataclasses import dataclass, field
from typing import Final

from calibration.look import Look
from calibration.look.bottleneck import FULL
from calibration.twin.demands import LARGE_BYTES, READ, SYNC, WRITE, Class, Load
from calibration.twin.server import RECORDED, Server, disk_section, turns
from calibration.twin.sheet import Sheet, dotted
from sim.scenario.calibrate_spec import PriorSpec
from sim.units import format_quantity

MS: Final = 10**6
S: Final = 10**9
WORKERS: Final = 64  # of an open stream: more than are ever busy unless the device is full
SLOTS_ASSUMED: Final = 4
LATENCY_NS: Final = 110_000  # SSD without a recorded response time: as profiles/ssd-sata.toml
LARGE_LATENCY_NS: Final = 100_000  # of a large transfer, which the transfer makes long
SETTLE_S: Final = 5
EXPIRE_S: Final = 40  # buffered writes reach the device only after dirty_expire, 30 s
BACKGROUND_NS: Final = 10 * MS  # of computing at a time
REQUESTS_SIMULATED: Final = 4_000  # in one run of the fit: rates are then known to 2 %
INTERVAL_S: Final = 5
MEASURED_S: Final = (10, 40)
BURSTS_SIMULATED: Final = 150  # then their rate is known to 8 %
BURSTS_S_MAX: Final = 120
WHOLE: Final = 0.5  # of the longest request; recorded ones that are shorter did not adjoin
WORKING_SET_BYTES: Final = 8 * 2**30
WORKING_SET_MIN_BYTES: Final = 2**30
FILE_BYTES_MAX: Final = 2 * 10**12  # ext3's files end at 2 TiB
FILLED: Final = 0.9  # of a disk, at most: the rest is its file system's own
NICE: Final = 19
ESTIMATE: Final = "estimate: operational analysis of the recording"


@dataclass
class Draft:
    """A scenario that can be simulated, what is to be fitted in it, and what must be told."""

    sheet: Sheet
    loads: list[Load]
    server: Server
    priors: list[PriorSpec] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)  # processes that carry transactions
    closed: list[str] = field(default_factory=list)  # those with a fixed number of customers
    measured_s: int = MEASURED_S[1]
    settle_s: int = SETTLE_S

    @property
    def notes(self) -> list[str]:
        """Return what was assumed or replaced."""
        return self.server.notes

    def prior(self, path: str, dim: str, estimate: float, down: float, up: float) -> None:
        """Add a parameter to fit: flat in the logarithm from estimate / down to estimate * up."""
        low, high = estimate / down, estimate * up
        if dim == "count":
            low, high = max(1.0, low), max(2.0, high)
        self.prior_between(path, dim, low, high, f"{ESTIMATE}, from 1/{down:g} to {up:g} of it")

    def prior_between(self, path: str, dim: str, low: float, high: float, source: str) -> None:
        """Add a parameter to fit: flat in the logarithm."""
        self.priors.append(
            PriorSpec(
                path=path, dim=dim, distribution="log-uniform", low=low, high=high, source=source
            )
        )


def draw_classes(draft: Draft, seen: Look) -> None:
    """Put processes, device parameters, run and measure into the sheet."""
    requests = sum(load.device.rate_per_s for load in draft.loads)
    low, high = MEASURED_S
    wanted_s = min(max(REQUESTS_SIMULATED / requests, low), high)
    bursts = [one.rate_per_s for load in draft.loads for one in load.classes if one.at_once > 1]
    if bursts:
        wanted_s = max(wanted_s, min(BURSTS_SIMULATED / min(bursts), BURSTS_S_MAX))
    draft.measured_s = INTERVAL_S * round(wanted_s / INTERVAL_S)
    buffered = any(one.kind == WRITE for load in draft.loads for one in load.classes)
    draft.settle_s = EXPIRE_S if buffered else SETTLE_S
    for load in draft.loads:
        for one in load.classes:
            _process(draft, load, one)
        _device(draft, load)
    _cpu(draft, seen)
    _iowait(draft)
    _run(draft)


def process_name(device: str, kind: str) -> str:
    """Return the name of a class."""
    plain = "".join(x if x.isalnum() and x.isascii() else "_" for x in device)
    return f"{plain}-{kind}"


def _process(draft: Draft, load: Load, one: Class) -> None:
    name = process_name(load.name, one.kind)
    section = ("process", name)
    put = draft.sheet.put
    put(section, "program", "transactions", "")
    draft.streams.append(name)
    _arrivals(draft, section, one)
    if one.kind == READ:
        _reads(draft, load, one, section)
    else:
        _writes(draft, load, one, section)
    put(section, "variation", "exponential", "assumed: spread of CPU times and sizes not recorded")


def _arrivals(draft: Draft, section: tuple[str, ...], one: Class) -> None:
    put = draft.sheet.put
    if one.customers is not None:
        put(section, "arrivals", "closed", f"{RECORDED}: the device is full: customers wait for it")
        put(section, "concurrency", one.customers, f"{ESTIMATE}: N = X R")
        draft.prior(dotted(*section, "concurrency"), "count", one.customers, 2, 2)
        draft.closed.append(section[-1])
        return
    put(section, "arrivals", "open", f"{RECORDED}: the device is not full: load does not wait")
    put(section, "rate", f"{one.rate_per_s:.4g} /s", f"{ESTIMATE}; {one.reason}")
    put(section, "concurrency", WORKERS, "assumed: more than are ever busy")
    factor = 3.0 if one.kind == SYNC else 1.5
    draft.prior(dotted(*section, "rate"), "rate_per_s", one.rate_per_s, factor, factor)


def _reads(draft: Draft, load: Load, one: Class, section: tuple[str, ...]) -> None:
    put = draft.sheet.put
    put(section, "reads", 1, f"{ESTIMATE}: a transaction is one read")
    put(section, "read_size", format_quantity(one.size_bytes, "bytes"), RECORDED)
    pattern = "sequential" if one.is_large else "random"
    put(section, "read_pattern", pattern, f"assumed: {one.size_bytes // 1024} KiB a read")
    put(section, "direct", True, "recording: reads of a device are those that missed the cache")
    put(section, "read_file", draft.server.places[load.name].file("twin-reads"))
    put(section, "working_set", format_quantity(_area(draft, load), "bytes"),
        "assumed: not recorded")  # fmt: skip
    if turns(load.device) and not one.is_large:
        size = draft.server.places[load.name].size_bytes
        high = min(FILLED * size - _area(draft, load), FILE_BYTES_MAX)
        draft.prior_between(
            dotted(*section, "working_set"), "bytes", min(WORKING_SET_MIN_BYTES, high / 8), high,
            "assumed: not recorded; from a corner of the disk to all of it",
        )  # fmt: skip


def _area(draft: Draft, load: Load) -> int:
    """Return the size of a file that is there beforehand, of which a disk holds two."""
    return min(WORKING_SET_BYTES, draft.server.places[load.name].size_bytes // 4)


def _writes(draft: Draft, load: Load, one: Class, section: tuple[str, ...]) -> None:
    put = draft.sheet.put
    if one.at_once > 1:
        _burst(draft, one, section)
    else:
        put(section, "writes", 1, f"{ESTIMATE}: a transaction is one write")
    put(section, "write_size", format_quantity(one.size_bytes, "bytes"), ESTIMATE)
    apart, why = _lie_apart(draft, load, one)
    put(section, "write_pattern", "random" if apart else "append", f"assumed: {why}")
    place = draft.server.places[load.name]
    put(section, "write_file", place.file(f"twin-{one.kind}"))
    if one.kind == SYNC and one.customers is not None and one.customers > 1:
        put(section, "write_files", 2 * one.customers, "assumed: each customer has a file")
    if apart:
        put(section, "write_area", format_quantity(_area(draft, load), "bytes"),
            "assumed: not recorded")  # fmt: skip
    put(section, "fsyncs", 1 if one.kind == SYNC else 0, one.reason)
    if one.kind == SYNC and one.flushes == 1:
        draft.server.single_flushes.add(load.name)
        why = "one flush for three writes, and nobody to share a commit with: no journal, or FUA"
        draft.server.left_out[f"{load.name} f_per_s"] = why
        draft.notes.append(f"{load.name}: {why}; the twin's file system has a journal")
    factor = 4.0 if one.kind == SYNC else 2.0
    draft.prior(dotted(*section, "write_size"), "bytes", one.size_bytes, factor, factor)


def _burst(draft: Draft, one: Class, section: tuple[str, ...]) -> None:
    """Put what is written back at a time, and how many writes that are."""
    at_once = float(f"{one.at_once:.3g}")
    law = f"{ESTIMATE}: n = 2 await / S - 1"
    draft.sheet.put(section, "writes", at_once, law)
    draft.sheet.put(section, "writeback", 1, f"{law}: they reach the device together")
    draft.prior(dotted(*section, "writes"), "number", at_once, 2, 2)


def _lie_apart(draft: Draft, load: Load, one: Class) -> tuple[bool, str]:
    """Return whether writes do not adjoin, and why that is assumed."""
    longest = draft.server.requests_max.get(load.name, 0)
    size = f"{one.size_bytes / 1024:.3g} KiB a write"
    if one.kind == SYNC:
        return False, size
    if one.is_large and one.size_bytes < WHOLE * longest:
        return True, f"{size}, where a request may have {longest // 1024} KiB"
    return not one.is_large, size


def _device(draft: Draft, load: Load) -> None:
    """Latency and transfer of a device without an arm, by the size of what it serves."""
    if turns(load.device):
        return
    section = disk_section(load.name)
    put = draft.sheet.put
    put(section, "slots", SLOTS_ASSUMED, "assumed: not recorded")
    draft.prior(dotted(*section, "slots"), "count", SLOTS_ASSUMED, 4, 8)
    bursts = any(one.at_once > 1 for one in load.classes)
    for word, direction in (("read", load.reads), ("write", load.writes)):
        if word == "write" and bursts:
            _transfer(draft, section, word, direction.size_bytes, load.device.service_ms, (8, 4))
        else:
            _direction(draft, section, word, direction.size_bytes, direction.await_ms)
    flush_ms = load.device.row.get("f_await_ms")
    if flush_ms and load.device.row.get("f_per_s"):
        put(section, "flush", format_quantity(max(1000, round(flush_ms * MS)), "time_ns"),
            f"{RECORDED}: f_await")  # fmt: skip


def _direction(
    draft: Draft, section: tuple[str, ...], word: str, size: int, await_ms: float | None
) -> None:
    put = draft.sheet.put
    if not await_ms:
        put(section, word, format_quantity(LATENCY_NS, "time_ns"), "assumed: as profile ssd-sata")
        put(section, f"{word}_rate", "0 B/s", "assumed: latency alone")
        return
    if size >= LARGE_BYTES:
        _transfer(draft, section, word, size, await_ms, (4, 8))
        return
    latency = max(10_000, round(await_ms * MS))
    put(section, word, format_quantity(latency, "time_ns"), ESTIMATE)
    put(section, f"{word}_rate", "0 B/s", "assumed: latency alone, transfer included")
    draft.prior(dotted(*section, word), "time_ns", latency, 8, 2)


def _transfer(
    draft: Draft, section: tuple[str, ...], word: str, size: int, time_ms: float | None,
    factors: tuple[float, float],
) -> None:  # fmt: skip
    """Put latency and rate of a direction that transfer makes long; `time_ms` for one request."""
    assert time_ms
    rate = size / (time_ms / 1000)
    put = draft.sheet.put
    put(section, word, format_quantity(LARGE_LATENCY_NS, "time_ns"), "assumed: of an SSD")
    put(section, f"{word}_rate", format_quantity(float(f"{rate:.4g}"), "bytes_per_s"), ESTIMATE)
    draft.prior(dotted(*section, f"{word}_rate"), "bytes_per_s", rate, *factors)


def _cpu(draft: Draft, seen: Look) -> None:
    """Share CPU time out; niced time, and all time of full CPUs, in classes of their own."""
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
        draft.sheet.put(("process", "niced"), "nice", NICE,
                        f"{RECORDED}: nice time; the value itself is assumed")  # fmt: skip
    if user + system >= 100 * FULL:
        draft.notes.append("CPU: full: user and system time are a class of their own")
        _background(draft, "computing", cpus, full=True)
        _system_share(draft, "computing", system / (user + system))
        return
    rate = sum(one.rate_per_s for load in draft.loads for one in load.classes)
    for key, percent, down in (("user", user, 3.0), ("system", system, 10.0)):
        _share(draft, key, percent * cpus / 100 / rate, down)


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
        draft.sheet.put(section, key, format_quantity(demand_ns, "time_ns"),
                        f"{ESTIMATE}: CPU time / transactions")  # fmt: skip
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
    parts = (("user", max(1000, round((1 - share) * BACKGROUND_NS))),
             ("system", round(share * BACKGROUND_NS)))  # fmt: skip
    for key, part_ns in parts:
        draft.sheet.put(("process", name), key, format_quantity(part_ns, "time_ns"),
                        f"{RECORDED}: {100 * share:.0f} % of CPU time is the kernel's")  # fmt: skip


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
    put(section, "think_time", format_quantity(think_ns, "time_ns"),
        f"{ESTIMATE}: {cpus:.2f} CPUs busy")  # fmt: skip


def _run(draft: Draft) -> None:
    put = draft.sheet.put
    first = draft.streams[0]
    put(("process", first), "warm_up", f"{draft.settle_s} s")
    put(("run",), "duration", f"{draft.settle_s + draft.measured_s} s")
    put(("measure",), "interval", f"{INTERVAL_S} s")
    put(("measure",), "begin", "warmed_up")
    put(("measure",), "families", ("transactions", "load", "cpu", "disk"))
