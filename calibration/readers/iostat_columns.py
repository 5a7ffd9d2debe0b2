"""What iostat's titles mean, of every version and unit option.

Models: iostat's manual pages.
Linux counterpart: sysstat iostat.c 4.0 to 12.7, write_disk_stat_header and write_plain_cpu_stat.
Invariants: a title has one meaning in all versions but for the JSON of 11.5.1 to 11.5.6, which has
a table of its own; amounts become bytes.
Left out: the NFS tables of 7.1 to 9.1.2 (-n).

Where the titles changed: %sys became %system and %steal came in 6.1; r_await and w_await in 9.1.2;
in 11.5.7 avgrq-sz (sectors) became areq-sz (KiB), avgqu-sz aqu-sz, "Device:" "Device", and -s came;
discards came and svctm went in 12.1.2; flushes came in 12.3.1.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Meaning(NamedTuple):
    """The column of the samples table, and what one unit of the printed number is there."""

    column: str
    factor: float = 1.0


SECTOR: Final = 512
KIB: Final = 1024
# A block is a sector since Linux 2.4 (iostat(1)); kB and MB are powers of 1024.
UNIT_BYTES: Final[Mapping[str, int]] = {"sec": SECTOR, "Blk": SECTOR, "kB": KIB, "MB": KIB * KIB}
# What --human and -h put behind a number (sysstat common.c:cprintf_unit, from 11.5.3 on).
SUFFIX_BYTES: Final[Mapping[str, int]] = {
    "s": SECTOR,
    "B": 1,
    "k": KIB,
    "M": KIB**2,
    "G": KIB**3,
    "T": KIB**4,
    "P": KIB**5,
}

_RATES: Final[Mapping[str, Meaning]] = {
    "tps": Meaning("io_per_s"),
    "rqm/s": Meaning("rqm_per_s"),
    "f/s": Meaning("f_per_s"),
    **{f"{d}/s": Meaning(f"{d}_per_s") for d in "rwd"},
    **{f"{d}rqm/s": Meaning(f"{d}rqm_per_s") for d in "rwd"},
}
_QUEUE: Final[Mapping[str, Meaning]] = {
    "await": Meaning("await_ms"),
    **{f"{d}_await": Meaning(f"{d}_await_ms") for d in "rwdf"},
    "svctm": Meaning("svctm_ms"),
    "avgqu-sz": Meaning("aqu_sz"),
    "aqu-sz": Meaning("aqu_sz"),
}
_SIZES: Final[Mapping[str, Meaning]] = {
    "avgrq-sz": Meaning("areq_bytes", SECTOR),
    "areq-sz": Meaning("areq_bytes", KIB),
    **{f"{d}areq-sz": Meaning(f"{d}areq_bytes", KIB) for d in "rwd"},
}
_SHARES: Final[Mapping[str, Meaning]] = {
    "util": Meaning("util_pct"),
    **{f"{d}rqm": Meaning(f"{d}rqm_pct") for d in "rwd"},
}
_AMOUNTS: Final[Mapping[str, str]] = {
    "r{}/s": "read_bytes_per_s",
    "w{}/s": "write_bytes_per_s",
    "d{}/s": "discard_bytes_per_s",
    "{}/s": "bytes_per_s",
    "{}_read/s": "read_bytes_per_s",
    "{}_wrtn/s": "write_bytes_per_s",
    "{}_dscd/s": "discard_bytes_per_s",
    "{}_w+d/s": "write_discard_bytes_per_s",
}
_TOTALS: Final[Mapping[str, str]] = {
    "{}_read": "read_bytes",
    "{}_wrtn": "write_bytes",
    "{}_dscd": "discard_bytes",
    "{}_w+d": "write_discard_bytes",
}


def _in_units(templates: Mapping[str, str]) -> dict[str, Meaning]:
    return {
        template.format(unit): Meaning(column, factor)
        for template, column in templates.items()
        for unit, factor in UNIT_BYTES.items()
    }


TOTALS: Final[Mapping[str, Meaning]] = _in_units(_TOTALS)  # printed as whole numbers
BYTES: Final[Mapping[str, Meaning]] = {**_in_units(_AMOUNTS), **TOTALS, **_SIZES}
DEVICE: Final[Mapping[str, Meaning]] = {
    **_RATES,
    **_QUEUE,
    **BYTES,
    **{f"%{title}": meaning for title, meaning in _SHARES.items()},
}
CPU: Final[Mapping[str, Meaning]] = {
    "%user": Meaning("user_pct"),
    "%nice": Meaning("nice_pct"),
    "%system": Meaning("system_pct"),
    "%sys": Meaning("system_pct"),
    "%iowait": Meaning("iowait_pct"),
    "%steal": Meaning("steal_pct"),
    "%idle": Meaning("idle_pct"),
}
JSON_CPU: Final[Mapping[str, Meaning]] = {title[1:]: meaning for title, meaning in CPU.items()}
JSON_DEVICE: Final[Mapping[str, Meaning]] = {**_RATES, **_QUEUE, **BYTES, **_SHARES}
# 11.5.1 to 11.5.6: "rrqm" is a rate. Amounts are called kB even with -m (fixed in 11.5.7).
JSON_DEVICE_BEFORE_11_5_7: Final[Mapping[str, Meaning]] = {
    **{title: meaning for title, meaning in JSON_DEVICE.items() if title not in TOTALS},
    **{f"{d}rqm": Meaning(f"{d}rqm_per_s") for d in "rw"},
    **{d: Meaning(f"{d}_per_s") for d in "rw"},
    "rkB": Meaning("read_bytes_per_s", KIB),
    "wkB": Meaning("write_bytes_per_s", KIB),
    "kB_read_per_sec": Meaning("read_bytes_per_s", KIB),
    "kB_wrtn_per_sec": Meaning("write_bytes_per_s", KIB),
    "kB_read": TOTALS["kB_read"],
    "kB_wrtn": TOTALS["kB_wrtn"],
}
ONLY_BEFORE_11_5_7: Final = frozenset({"r", "kB_read_per_sec"})

# The first title that a report has tells the generation.
GENERATIONS: Final[Mapping[str, str]] = {
    "f/s": "sysstat 12.3.1 or later",
    "d/s": "sysstat 12.1.2 to 12.2",
    "{}_dscd/s": "sysstat 12.1.2 or later",
    "{}_w+d/s": "sysstat 12.1.2 or later",
    "aqu-sz": "sysstat 11.5.7 or later",
    "rareq-sz": "sysstat 11.5.7 or later",  # --pretty: a table for reads
    "r_await": "sysstat 9.1.2 to 11.5.6, or RHEL 6's 9.0.4",
    "avgqu-sz": "sysstat 9.1.1 or earlier",
}


def generation(titles: frozenset[str]) -> str:
    """Return what a table's titles say of the version of sysstat; "" if nothing."""
    units = {title.format(unit): told for title, told in GENERATIONS.items() for unit in UNIT_BYTES}
    return next((told for title, told in units.items() if title in titles), "")
