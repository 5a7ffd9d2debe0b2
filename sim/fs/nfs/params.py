"""Mount options of NFS, and what the client's code costs.

Linux counterpart: fs/nfs/super.c, fs/nfs/client.c; include/linux/nfs_fs.h.
"""

from dataclasses import dataclass

from sim.param import param


@dataclass(frozen=True, kw_only=True)
class NfsParams:
    """mount -t nfs -o hard,tcp,vers=3."""

    server: str = param(
        dim="text",
        source="scenario",
        names_host=True,
        doc="the host that exports it: an outside process that runs nfsd",
    )
    rsize_bytes: int = param(
        "32 KiB",
        dim="bytes",
        minimum=4096,
        maximum=2**20,
        doc="bytes of a READ",
        source="fs/nfsd/nfs3xdr.c to 2.6.19: NFSSVC_MAXBLKSIZE 32 KiB; up to 1 MiB later",
    )
    wsize_bytes: int = param(
        "32 KiB",
        dim="bytes",
        minimum=4096,
        maximum=2**20,
        doc="bytes of a WRITE",
        source="fs/nfsd/nfs3xdr.c to 2.6.19: NFSSVC_MAXBLKSIZE 32 KiB; up to 1 MiB later",
    )
    congestion_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="fs/nfs/write.c: nfs_congestion_kb, from memory, at most 256 MiB; none to 2.6.23",
        doc="pages under writeback above which the server counts as congested; 0 = by memory",
    )
    sync: bool = param(
        False, dim="bool", source="mount(8)", doc="every write waits for the server's disk"
    )
    capacity_bytes: int = param(
        "1 TiB", dim="bytes", minimum=1, source="assumed: room enough", doc="what statfs shows"
    )
    call_ns: int = param(
        "25 us",
        dim="time_ns",
        minimum=0,
        source="assumed: XDR, RPC and TCP of a call and its reply on a CPU of 2006",
        doc="system CPU of a call",
    )
    page_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: a copy at 4 GB/s, either way",
        doc="system CPU of each page in a READ or WRITE",
    )
