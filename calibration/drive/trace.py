"""Traces of a drive's requests with their measured access times.

Models: a text of one request a line, compressed by gzip: R or W; what the drive's cache did (a
 word that is not used); first block of 512 bytes; number of blocks; measured access time, us; time
 from completion to the issue of the next request, us.
Linux counterpart: none; the validation traces of DiskSim 4.0 as data.
Invariants: every request lies within the drive's capacity; times are kept to the nanosecond.
Left out: several requests at a time.
"""

import gzip
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calibration.drive.bad_input import BadInput
from sim.block.bio import READ, WRITE

OPS: Final = {"R": READ, "W": WRITE}
FIELDS: Final = "R|W, a word, first block, blocks, access us, think us"
READS_NEARBY_SECTORS: Final = 1000  # about the length of three tracks of a drive of the 1990s
WRITES, SEQUENTIAL, NEARBY, ELSEWHERE = (
    "write",
    "read, sequential",
    "read, nearby",
    "read, elsewhere",
)
KINDS: Final = (WRITES, SEQUENTIAL, NEARBY, ELSEWHERE)


@dataclass(frozen=True, slots=True)
class Access:
    """One request, how long the real drive took, and how long the host then thought."""

    op: int
    sector: int
    sectors: int
    measured_ns: int
    think_ns: int


def read_trace(path: Path, capacity_sectors: int) -> tuple[Access, ...]:
    """Return the requests in order; raise BadInput."""
    found: list[Access] = []
    number = 0
    try:
        with gzip.open(path, "rt", encoding="ascii", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    found.append(_access(line, f"{path}:{number}", capacity_sectors))
    except (EOFError, zlib.error):
        problem = "the compressed file is cut or damaged behind this line"
        raise BadInput(f"{path}:{number}", problem) from None
    except gzip.BadGzipFile:
        raise BadInput(str(path), "is not compressed by gzip", allowed="TRACE.gz") from None
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from None
    if not found:
        raise BadInput(str(path), "has no request", allowed=FIELDS)
    return tuple(found)


def _access(line: str, place: str, capacity_sectors: int) -> Access:
    """Return the request of one line."""
    fields = line.split()
    if len(fields) != 6:
        raise BadInput(place, f"{len(fields)} fields, not 6", given=line.strip(), allowed=FIELDS)
    if fields[0] not in OPS:
        raise BadInput(place, "no such operation", given=fields[0], allowed="R, W")
    sector = _whole(fields[2], f"{place}: first block", 0)
    sectors = _whole(fields[3], f"{place}: blocks", 1)
    if sector + sectors > capacity_sectors:
        raise BadInput(
            place,
            "ends behind the drive's last block",
            given=sector + sectors,
            allowed=f"at most {capacity_sectors}; another drive's trace?",
        )
    measured_ns = _time_ns(fields[4], f"{place}: access time")
    if measured_ns == 0:
        raise BadInput(f"{place}: access time", "none", given=fields[4], allowed="us above 0")
    think_ns = _time_ns(fields[5], f"{place}: time to the next request")
    return Access(OPS[fields[0]], sector, sectors, measured_ns, think_ns)


def _whole(text: str, place: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise BadInput(place, "is not possible", given=text, allowed=f"a whole number >= {least}")
    return int(text)


def _time_ns(text: str, place: str) -> int:
    try:
        time_us = float(text)
    except ValueError:
        time_us = math.nan
    if not 0 <= time_us < 1e12:
        raise BadInput(place, "is not possible", given=text, allowed="us, 0 or more")
    return round(time_us * 1000)


def kinds(accesses: Sequence[Access]) -> list[str]:
    """Return for each request which of KINDS it is; from its place and the one before alone."""
    ends = [-READS_NEARBY_SECTORS, *(one.sector + one.sectors for one in accesses)]
    return [_kind(one, one.sector - end) for one, end in zip(accesses, ends, strict=False)]


def _kind(access: Access, gap_sectors: int) -> str:
    if access.op == WRITE:
        return WRITES
    if gap_sectors == 0:
        return SEQUENTIAL
    return NEARBY if abs(gap_sectors) < READS_NEARBY_SECTORS else ELSEWHERE
