"""Device mapper, delay: a device whose requests arrive late: [machine.delay.NAME].

Models: each bio waits on a list until its time has come; then the worker of kdelayd submits it to
the device below. Reads and writes have a delay each. A tick of the timer is what time is counted
in: to 4.1 a delay is cut to whole ticks, from 4.2 on it is rounded up. The first tick comes
sooner than a whole one: a delay of n ticks takes n - 1 to n of them. Without a delay a bio is
passed on at once, as by a linear volume.
Theory: a reader that waits for each of its reads is slowed by the delay; requests wait side by
side, so that a device with N of them in flight does N / (delay + its own time) a second: the delay
costs no throughput where there are enough of them. That is a link, or a storage box far away.
Estimate: HZ 250, 10 ms: 3 ticks from 4.2 on, 8 to 12 ms; 2 ticks before, 4 to 8 ms.
Linux counterpart: drivers/md/dm-delay.c (2.6.22): delay_bio, queue_timeout, flush_delayed_bios.
Invariants: what waits has a timer or a worker; a bio goes down once, none before its tick.
Left out: other devices for writes, offsets, a delay of flushes alone (4.18); the thread that short
delays have from 6.7 on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sim.block.bio import Bio, end_bios
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.component import Component, Described
from sim.drivers.md.dm import IoAcct
from sim.drivers.md.dm_linear import DmLinear
from sim.drivers.md.features import DELAY_SINCE, features
from sim.drivers.md.lvm import minor_of
from sim.drivers.md.volumes import DM_MAJOR
from sim.engine.calendar import Timer
from sim.param import param
from sim.registry import register
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.workqueue import Workqueue
from sim.toml.errors import unknown


@dataclass(frozen=True, kw_only=True)
class DelayParams:
    """A table of dmsetup: what is delayed, and by how much."""

    on: str = param(dim="text", source="scenario", doc="the device whose requests arrive late")
    read_ns: int = param(dim="time_ns", minimum=0, source="scenario", doc="delay of a read")
    write_ns: int | None = param(
        None,
        dim="time_ns",
        minimum=0,
        source="drivers/md/dm-delay.c: delay_ctr, a table of three arguments",
        doc="delay of a write; left away: as of a read",
    )


class Machine(Protocol):
    """What delays ask of a machine."""

    sched: Sched
    devices: dict[str, BlockDevice]


@register("component", "delay", params=DelayParams, since=DELAY_SINCE, doc="a device that is late")
class Delays(Component[DelayParams]):
    """[machine.delay.NAME]; it may be mounted, or be a swap area, like what it lies on."""

    named = True
    after = ("disk", "array", "volume")
    before = ("mount",)

    def __init__(self, tables: Mapping[str, DelayParams]) -> None:
        super().__init__(tables)
        self.devices: list[DmDelay] = []

    @classmethod
    def sizes(
        cls, described: Described, name: str, params: DelayParams | None
    ) -> Mapping[str, int | None]:
        return {name: described.sizes.get(params.on) if params else None}

    @classmethod
    def examine(cls, described: Described, name: str, params: DelayParams) -> None:
        place = described.given("delay", name).place_of("on")
        delays = described.tables["delay"]
        if params.on in delays or params.on not in described.sizes:
            known = [device for device in described.sizes if device not in delays]
            described.reading.problems.append(unknown(place, "device", params.on, known))
        for where, mount in described.mounts.items():
            if mount is not None and mount.device == params.on:
                described.reading.error(place, f"{params.on} is mounted on {where} already")
        described.is_free(place, params.on)

    def init(self, machine: Machine) -> None:
        rows = [device.stats for device in machine.devices.values()]
        free = max([-1, *(row.minor for row in rows if row.major == DM_MAJOR)]) + 1
        for number, (name, params) in enumerate(self.tables.items(), start=free):
            stats = DiskStats(name, DM_MAJOR, minor_of(name, number))
            device = DmDelay(stats, machine.sched, machine.devices[params.on], params)
            self.devices.append(device)
            machine.devices[name] = device

    def check(self) -> None:
        for device in self.devices:
            device.check()


class Late:
    """A run of bios that waits: when it may go, and of what its clone is."""

    def __init__(self, expires: int, bio: Bio, start_ns: int) -> None:
        self.expires = expires  # jiffies
        self.bio = bio
        self.start_ns = start_ns


class DmDelay(BlockDevice):
    """The whole of a device, later."""

    def __init__(
        self, stats: DiskStats, sched: Sched, below: BlockDevice, params: DelayParams
    ) -> None:
        super().__init__(stats, below.capacity_sectors)
        kernel = sched.kernel
        changes = features(kernel)
        self.supports_barriers = changes.dm_barriers and below.supports_barriers
        self.takes_fua = below.takes_fua
        self.rotational = below.rotational
        self.max_sectors = below.max_sectors
        self.max_discard_sectors = below.max_discard_sectors
        self.discard_sectors = below.discard_sectors
        self._below = below
        self._calendar = sched.calendar
        self._tick_ns = sched.tick_ns
        self._at_once = DmLinear(stats, sched.calendar, below, 0, below.capacity_sectors, kernel)
        write_ns = params.read_ns if params.write_ns is None else params.write_ns
        delays_ns = (params.read_ns, write_ns)
        self._delays = tuple(_ticks(ns, sched.tick_ns, changes.delay_rounds_up) for ns in delays_ns)
        self._is_late = tuple(ns > 0 for ns in delays_ns)
        self._acct = IoAcct(stats)
        self._waiting: list[Bio] = []  # clones, in the order in which they came
        self._timer: Timer | None = None
        self._timer_expires: int = 0
        self._working: bool = False
        self._workqueue = Workqueue(sched, "kdelayd", 1)

    def submit_bio(self, bio: Bio) -> bool:
        """Put the run on the list, or pass it on if it has no delay (delay_map)."""
        direction = bio.op & 1
        if not self._is_late[direction]:
            return self._at_once.submit_bio(bio)
        now_ns = self._calendar.now
        expires = now_ns // self._tick_ns + self._delays[direction]
        late = Late(expires, bio, now_ns)
        clone = Bio(
            bio.op, bio.sector, bio.nr_sectors, _ended, late, bio.count, bio.flags, bio.task_id
        )
        clone.end_part = self._end_part
        self._acct.begin(bio.op, bio.count, bio.nr_sectors, now_ns)
        bio.submitted = bio.count
        self._waiting.append(clone)
        self._queue_timeout(expires)
        return True

    def _queue_timeout(self, expires: int) -> None:
        """Have the timer expire by then; one that has expired is seen at the next tick."""
        now_ns = self._calendar.now
        expires = max(expires, now_ns // self._tick_ns + 1)
        if self._timer is not None:
            if self._timer_expires <= expires:
                return
            self._timer.cancel()
        self._timer_expires = expires
        due_ns = expires * self._tick_ns
        self._timer = self._calendar.call_after(due_ns - now_ns, self._handle_timer, None)

    def _handle_timer(self, _: object) -> None:
        self._timer = None
        if not self._working:
            self._working = True
            self._workqueue.queue(self._flush_expired)

    def _flush_expired(self, task: Task) -> Blocking[None]:
        """Submit what has expired, in the order in which it came (flush_expired_bios)."""
        self._working = False
        jiffies = self._calendar.now // self._tick_ns
        expired = [clone for clone in self._waiting if _late(clone).expires <= jiffies]
        self._waiting = [clone for clone in self._waiting if _late(clone).expires > jiffies]
        if self._waiting:
            self._queue_timeout(min(_late(clone).expires for clone in self._waiting))
        for clone in expired:
            while not self._below.submit_bio(clone):
                yield from self._below.get_request_wait(task, clone)

    def _end_part(self, clone: Bio, sector: int, count: int) -> None:
        late = _late(clone)
        bio = late.bio
        if clone.error:
            bio.error = clone.error
        self._acct.end(bio.op, count, count * bio.size, late.start_ns, self._calendar.now)
        end_bios(bio, sector, count)

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        yield from self._at_once.get_request_wait(task, bio)

    def unplug(self) -> None:
        self._below.unplug()

    def congested(self, op: int) -> bool:
        return self._below.congested(op)

    def check(self) -> None:
        """Assert that nothing waits for nobody."""
        assert not self._waiting or self._timer is not None or self._working


def _ticks(delay_ns: int, tick_ns: int, rounds_up: bool) -> int:
    """Return a delay in ticks of the timer."""
    return -(-delay_ns // tick_ns) if rounds_up else delay_ns // tick_ns


def _late(clone: Bio) -> Late:
    assert isinstance(clone.private, Late)
    return clone.private


def _ended(clone: Bio) -> None:
    """Its parts have ended the bio that it is of."""
