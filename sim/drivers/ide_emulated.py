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

from sim.drivers.frontend import Frontend, FrontendParams, figure
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class IdeEmulatedParams(FrontendParams):
    """The controller's figures."""

    slots: int = figure("slots", 1, "ATA: one command at a time without queueing")
    segments: int = figure(
        "segments", 128, "include/linux/libata.h: LIBATA_MAX_PRD 128 (ATA_MAX_PRD / 2)"
    )
    longest_bytes: int = figure(
        "longest_bytes", "128 KiB", "include/linux/ata.h: ATA_MAX_SECTORS 256"
    )
    bell_ns: int = figure(
        "bell_ns", "72 us", "assumed: 9 register accesses, each an exit to user space of 8 us"
    )
    backend_ns: int = figure(
        "backend_ns",
        "80 us",
        "assumed: the exits, during which the command is not complete, and its submission",
    )
    notify_ns: int = figure(
        "notify_ns", "30 us", "assumed: an interrupt, then status registers read by exits"
    )


register("frontend", "ide-emulated", params=IdeEmulatedParams, doc="one command at a time, exits")(
    Frontend
)
