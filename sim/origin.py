"""Where a value comes from: the kinds of sources, and how a source says which it is.

Models: nothing; it is what makes "assumed" and "fitted" countable.
Linux counterpart: none.
Invariants: the list of beginnings is closed: a source that begins with none of them is an error,
 never silently of some kind.
Left out: whether a source is right. A beginning says what its author claims.

A source is a text such as "kernel/sched/core.c 2.6.16: DEF_TIMESLICE", "assumed: one switch" or
"fit: sendmail.both: 12 .. 18". Its first words tell its origin: one of the words of WORDS, a file
of the kernel's tree, or the name of a document of DOCUMENTS.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Final


class Origin(Enum):
    """What stands behind a value; the words are those that users read."""

    KERNEL = "kernel"  # a file of the kernel, or its documentation
    DATA_SHEET = "data sheet"
    MANUAL = "manual"  # of a program, a protocol, a distribution; a published measurement
    RECORDING = "recorded"  # written down by those who had the server; no result was fitted with it
    FIT = "fitted"  # chosen so that simulated results agree with recorded ones
    DERIVED = "derived"  # it follows from other values of the scenario
    CHOSEN = "chosen"  # what the scenario asks about: its author or --set says so, and no more
    ASSUMED = "assumed"  # a guess

    @property
    def key(self) -> str:
        """Return the word as a key of JSON."""
        return self.value.replace(" ", "_")


# The words that a source may begin with.
WORDS: Final[Mapping[str, Origin]] = {
    "assumed": Origin.ASSUMED,
    "fit": Origin.FIT,
    "estimate": Origin.FIT,  # computed from the recording's own figures (iotwin twin)
    # A result of a recording that was entered as a condition of the run: as good as fitted.
    "result": Origin.FIT,
    "condition of the recording": Origin.FIT,
    "recording": Origin.RECORDING,
    "recorded": Origin.RECORDING,
    "data sheet": Origin.DATA_SHEET,
    "manual": Origin.MANUAL,
    "published": Origin.MANUAL,  # measured by others on a machine like it
    "kernel": Origin.KERNEL,
    "derived": Origin.DERIVED,
    "scenario": Origin.CHOSEN,
    "scenario's choice": Origin.CHOSEN,
    "command line": Origin.CHOSEN,
}

_KERNEL_FILE: Final = re.compile(
    r"(arch|block|drivers|fs|include/(linux|net|xen|uapi)|kernel|mm|net|Documentation)/\S"
)

# Documents that sources name without one of the words, by what they are.
DOCUMENTS: Final[Mapping[Origin, tuple[str, ...]]] = {
    Origin.KERNEL: (
        "CONFIG_",
        "__setparam_fair",
        "cpu.max",
        "cpu.shares",
        "cpu.weight",
        "cpufreq_ondemand.c",
        "cpuset.cpus",
        "fs.xfs.",
        "intel_idle.max_cstate",
        "memory.max",
        "memory.swap.max",
    ),
    Origin.DATA_SHEET: (
        "Hitachi",
        "Intel Solid-State Drive",
        "SAS 3 Gbit/s",
        "SATA 1.5 Gbit/s",
        "Seagate",
        "Western Digital",
        "product specification",
        "specification",
    ),
    Origin.MANUAL: (
        "/etc/syslog.conf",
        "ATA:",
        "Amazon EC2 User Guide",
        "Debian",
        "LVM2",
        "MySQL 5.0 manual",
        "QEMU",
        "RFC ",
        "clamd.conf",
        "coreutils",
        "dd:",
        "e2fsprogs",
        "fdisk",
        "fio:",
        "fstrim",
        "haproxy",
        "iperf 2",
        "mdadm",
        "memcached",
        "mke2fs",
        "mkfs.xfs",
        "mount(8)",
        "my.cnf",
        "mysqld",
        "nfs-utils",
        "ping(8)",
        "pv -L",
        "sched(7)",
        "storage/innobase/",
        "swapon",
        "systemd",
        "xfsprogs",
        "zram-generator",
    ),
}

ALLOWED: Final = (
    "; ".join(f"{word}: ..." for word in WORDS if word not in ("scenario", "command line"))
    + "; a file of the kernel, such as block/blk-core.c 2.6.39"
)

_WORD: Final = re.compile(rf"({'|'.join(sorted(WORDS, key=len, reverse=True))})(?![\w-])")


@cache
def origin_of(source: str) -> Origin | None:
    """Return the origin that a source's first words tell, None if they tell none."""
    if word := _WORD.match(source):
        return WORDS[word[1]]
    for origin, names in DOCUMENTS.items():
        if source.startswith(names):
            return origin
    return Origin.KERNEL if _KERNEL_FILE.match(source) else None
