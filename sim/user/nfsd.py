"""An NFS server on another host: memory that writes go into, and a disk that empties it.

Models: the threads of nfsd (version 3). WRITEs that need not be stable go into memory while
there is room, and from there to the disk at its rate; when memory is full, a WRITE waits for as
much room as it needs: the server's own dirty limit. COMMIT waits until all is on the disk that
was in memory when it came. Calls that change names wait for the file system's journal.
Counterpart: fs/nfsd/{nfs3proc,vfs,nfssvc}.c on another machine.
Invariants: a call has one reply; the disk does one thing at a time, in the order in which it
 came; as many calls are served at a time as there are threads.
Left out: the server's page cache for reads (each READ goes to the disk), its CPU, other clients.

By hand: memory m, disk rate r: WRITEs come in at the link's rate until m is full, at r from then
on; a COMMIT then takes m / r.
"""

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

from sim.net.nfs3 import LOOKUP, NFS_PORT, READ, WRITE, NfsCall
from sim.param import param
from sim.registry import register
from sim.units import NS_PER_S
from sim.world import World


@dataclass(frozen=True, kw_only=True)
class NfsdParams:
    """The server."""

    threads: int = param(
        8,
        dim="count",
        minimum=1,
        maximum=1024,
        source="nfs-utils: RPCNFSDCOUNT=8",
        doc="calls served at a time",
    )
    memory_bytes: int = param(
        "200 MiB",
        dim="bytes",
        minimum=2**20,
        source="assumed: 40 % (dirty_ratio) of what 512 MiB leave to the cache",
        doc="written data that it keeps before writers wait",
    )
    rate_bytes_per_s: float = param(
        "20 MB/s",
        dim="bytes_per_s",
        minimum=1,
        source="assumed: RAID 5 of slow disks",
        doc="rate of its disk",
    )
    operation_ns: int = param(
        "0.1 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: CPU and cached metadata",
        doc="any call",
    )
    stable_ns: int = param(
        "12 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: a seek, half a revolution and a revolution of 7200 rpm",
        doc="making a name, a COMMIT or a stable WRITE durable, the data apart",
    )
    read_ns: int = param(
        "10 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: a seek and half a revolution",
        doc="a READ, the data apart; 0: what is read is in its memory",
    )


@register("program", "nfsd", params=NfsdParams, doc="an NFS server elsewhere")
class Nfsd:
    """Threads that take calls in the order in which they come."""

    runs = "outside"
    marks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: NfsdParams) -> None:
        self.params = params
        self._calls: deque[tuple[Any, int, NfsCall]] = deque()
        self._idle: deque[Any] = deque()  # events of threads that have nothing to do
        self._disk_free_ns = 0  # when the disk will have done all that it has been given

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Start the threads, then take connections for ever."""
        for _ in range(self.params.threads):
            world.process(self._thread(world))
        listener = world.listen(NFS_PORT)
        while True:
            connection = yield listener.accept()
            world.process(self._receive(world, connection))

    def _receive(self, world: World, connection: Any) -> Generator[Any, Any, None]:
        """Hand the calls of a connection to the threads (svc_recv)."""
        while True:
            message = yield connection.recv()
            if message is None:
                return
            self._calls.append((connection, *message))
            if self._idle:
                self._idle.popleft().succeed()

    def _thread(self, world: World) -> Generator[Any, Any, None]:
        """Serve one call after the other (nfsd)."""
        while True:
            while not self._calls:
                event = world.event()
                self._idle.append(event)
                yield event
            connection, xid, call = self._calls.popleft()
            delay_ns = self.params.operation_ns + self._wait_ns(world.clock_ns(), call)
            if delay_ns:
                yield world.timeout(delay_ns)
            connection.send(call.reply_bytes, (xid, call))

    def _wait_ns(self, now_ns: int, call: NfsCall) -> int:
        """Return how long the call waits for memory or the disk, whose work it adds to."""
        params = self.params
        if call.procedure == LOOKUP:
            return 0
        free_ns = max(self._disk_free_ns, now_ns)
        free_ns += round(call.nbytes * NS_PER_S / params.rate_bytes_per_s)
        if call.procedure == WRITE:
            self._disk_free_ns = free_ns
            memory_ns = round(params.memory_bytes * NS_PER_S / params.rate_bytes_per_s)
            return max(free_ns - now_ns - memory_ns, 0)
        self._disk_free_ns = free_ns + (
            params.read_ns if call.procedure == READ else params.stable_ns
        )
        return self._disk_free_ns - now_ns
