"""Emulated IDE: the disk of a guest without paravirtual drivers.

Models: figures for frontend.py. One command at a time. The guest writes about nine registers of the
channel and of its bus master for a command with LBA48, reads a few for its end, and each is an exit
to the emulator in user space: CPU time that the guest sees as its own.
Hand estimate: 9 exits of 8 us = 72 us of CPU a command; over a device of 0.1 ms some 4000 commands
a second, whatever the queue above it holds.
Linux counterpart: drivers/ata/ata_piix.c, libata-sff.c (ata_sff_tf_load, ata_bmdma_setup); in the
emulator hw/ide/core.c. ATA_MAX_SECTORS 256 in include/linux/ata.h.
Invariants: as frontend.py.
Left out: PIO transfers (every sector an exit for each word), two drives on a channel that wait for
each other.
"""

from dataclasses import dataclass

from sim.drivers.frontend import Frontend, FrontendParams
from sim.param import param
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class IdeEmulatedParams(FrontendParams):
    """The controller's figures."""

    slots: int = param(
        1,
        dim="count",
        source="ATA: one command at a time without queueing",
        doc="requests at a time",
        minimum=1,
    )
    segments: int = param(
        128,
        dim="count",
        source="include/linux/libata.h: LIBATA_MAX_PRD 128 (ATA_MAX_PRD / 2)",
        doc="memory segments of a request",
        minimum=1,
    )
    longest_bytes: int = param(
        "128 KiB",
        dim="bytes",
        source="include/linux/ata.h: ATA_MAX_SECTORS 256",
        minimum=4096,
        doc="longest request",
        key="longest",
    )
    bell_ns: int = param(
        "72 us",
        dim="time_ns",
        minimum=0,
        doc="CPU time of the guest to hand a request over",
        source="assumed: 9 register accesses, each an exit to user space of 8 us",
    )
    backend_ns: int = param(
        "80 us",
        dim="time_ns",
        minimum=0,
        source="assumed: the exits, during which the command is not complete, and its submission",
        doc="processing of a request in the host, one at a time",
    )
    notify_ns: int = param(
        "30 us",
        dim="time_ns",
        minimum=0,
        doc="from an answer in the ring to the interrupt",
        source="assumed: an interrupt, then status registers read by exits",
    )


register("frontend", "ide-emulated", params=IdeEmulatedParams, doc="one command at a time, exits")(
    Frontend
)
