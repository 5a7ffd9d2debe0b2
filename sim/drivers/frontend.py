"""Front ends: how a guest reaches a disk of its host.

Models: a paravirtual driver puts requests into the slots of a ring and rings a bell (a hypercall or
an exit, CPU time of the guest). The back end in the host takes them in turn, each for its
processing time, and gives the device behind it as many as that takes. What is done goes back into
the ring; one interrupt, after the time that a notification takes, brings all that is done by then.
An emulated controller is the same with one slot and a bell that costs an exit for every register
written.

Hand estimate, xen-blkfront before 3.11 over a device of 0.1 ms: 32 slots of 44 KiB; 64 KiB are two
requests. A batch of k completions costs 1/k interrupt each.

Linux counterpart: drivers/block/xen-blkfront.c, virtio_blk.c, drivers/ata/ata_piix.c under an
emulator. Three files beside this one have their figures and sources; raid_controller.py puts a
cache between the back end and the device.
Invariants: at most ``slots`` requests are in the front end and behind it, at most the device's own
depth in the device; each comes back once; at most one notification is on its way.
Left out: several rings, grant table exhaustion, polling, the host's own page cache and elevator.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sim.block.bio import Request
from sim.block.driver import Complete, Driver
from sim.block.features import SCSI, DriverKind
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.param import param, redeclare
from sim.sched.core import Sched
from sim.sched.irq import InterruptLine

_EACH: Final = "derived: each front end has its own"


@dataclass(frozen=True, kw_only=True)
class FrontendParams:
    """What all front ends have; a subclass says what they are for one of them."""

    kind: ClassVar[DriverKind] = SCSI  # the guest's driver
    slots: int = param(dim="count", source=_EACH, doc="requests at a time", minimum=1)
    segments: int = param(dim="count", source=_EACH, doc="memory segments of a request", minimum=1)
    longest_bytes: int = param(
        dim="bytes", source=_EACH, doc="longest request", key="longest", minimum=4096
    )
    bell_ns: int = param(
        dim="time_ns",
        source=_EACH,
        doc="CPU time of the machine to hand a request over",
        minimum=0,
    )
    backend_ns: int = param(
        dim="time_ns",
        source=_EACH,
        doc="processing of a request in the host or the controller, one at a time",
        minimum=0,
    )
    notify_ns: int = param(
        dim="time_ns",
        source=_EACH,
        doc="from an answer in the ring to the interrupt",
        minimum=0,
    )

    discard: bool = param(
        False, dim="bool", source=_EACH, doc="it passes discards on, if the device knows them"
    )

    def queue_limits(self) -> Mapping[str, int]:
        """Return what it allows of a request queue at most, by the queue's parameters' names."""
        return {"max_segments": self.segments, "max_bytes": self.longest_bytes}

    def refusal(self, device: object) -> str:
        """Return why it cannot stand before a device of these parameters; "" if it can."""
        return ""


def figure(name: str, default: Any, source: str) -> Any:
    """Return one of these fields as a front end has it."""
    return redeclare(FrontendParams, name, default, source=source)


class Frontend(Driver):
    """A ring, and the device behind it."""

    def __init__(self, params: FrontendParams, device: Driver) -> None:
        self.queue_depth = params.slots
        self.write_cache = device.write_cache
        self.rotational = device.rotational
        self.coalesces = True
        self.capacity_sectors = device.capacity_sectors
        if params.discard:
            self.max_discard_sectors = device.max_discard_sectors
            self.discard_sectors = device.discard_sectors
        self._device = device
        self._bell_ns = params.bell_ns
        self._backend_ns = params.backend_ns
        self._notify_ns = params.notify_ns
        self._bell: InterruptLine | None = None
        self._backend_free_ns: int = 0
        self._waiting: deque[Request] = deque()  # processed, while the device is full
        self._in_device: int = 0
        self._answers: list[Request] = []  # in the ring, for the next interrupt

    def share(self, shared: dict[str, object]) -> None:
        self._device.share(shared)

    def watch(self, tracer: Tracer) -> None:
        self._device.watch(tracer)

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete
        self._device.attach(name, calendar, streams, self._answer)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return self._device.unsafe_runs()

    def start(self, scheduler: Sched) -> None:
        # The CPU that rings is the one that serves the disk: most requests follow a completion.
        self._bell = InterruptLine(scheduler, 0, self._bell_ns)
        self._device.start(scheduler)

    def submit(self, request: Request) -> None:
        if self._bell is not None:
            self._bell.serve()
        now_ns = self._calendar.now
        self._backend_free_ns = max(now_ns, self._backend_free_ns) + self._backend_ns
        self._calendar.post(self._backend_free_ns - now_ns, self._process, request)

    def _process(self, request: Request) -> None:
        """The back end has the request: pass it to the device, when that takes it."""
        self._waiting.append(request)
        self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting and self._in_device < self._device.queue_depth:
            self._in_device += 1
            self._device.submit(self._waiting.popleft())

    def _answer(self, request: Request) -> None:
        """The device has done it."""
        self._in_device -= 1
        self._reply(request)
        self._pass_on()

    def _reply(self, request: Request) -> None:
        """Put an answer into the ring; notify unless a notification is on its way."""
        if not self._answers:
            self._calendar.post(self._notify_ns, self._interrupt, None)
        self._answers.append(request)

    def _interrupt(self, _: object) -> None:
        """Bring the guest all answers that are in the ring."""
        answers = self._answers
        self._answers = []
        for request in answers:
            self._complete(request)
