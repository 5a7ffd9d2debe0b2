"""A drive's data sheet: one row of drives.json.

Models: what a data sheet prints of a drive.
Linux counterpart: none.
Invariants: numbers are finite, and positive but for the change of heads; inner tracks hold no more
 than outer ones; a seek over more cylinders takes no less time; the capacity fits on the surfaces,
 give or take a tenth: "outer" may be the mean of a zone. What is not said of a change of heads (a
 sheet often has no such line, or null) is 0, and rules.py knows how little it can be.
Left out: what the rows do not have: sizes of buffers, write caching, zones between the outermost
 and the innermost one.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.drive.bad_input import BadInput
from sim.registry import did_you_mean, nearest


@dataclass(frozen=True, kw_only=True)
class DataSheet:
    """One drive; blocks of 512 bytes, times in ms."""

    rpm: float
    blocks_512: int
    surfaces: int
    cylinders: int
    blocks_per_track_outer: float
    blocks_per_track_inner: float
    seek_ms_single: float
    seek_ms_average: float
    seek_ms_full: float
    head_switch_ms: float

    @property
    def outer_media_bytes_per_s(self) -> float:
        """What passes under a head on the outermost track."""
        return self.blocks_per_track_outer * 512 * self.rpm / 60


# key -> whether it counts things
_NUMBERS: Mapping[str, bool] = {
    "rpm": False,
    "blocks_512": True,
    "surfaces": True,
    "cylinders": True,
    "blocks_per_track_outer": False,
    "blocks_per_track_inner": False,
    "seek_ms_single": False,
    "seek_ms_average": False,
    "seek_ms_full": False,
    "head_switch_ms": False,
}
_MAY_BE_0 = ("head_switch_ms",)  # another head of the same cylinder may be there at once,
_MAY_LACK = ("head_switch_ms",)  # and nobody may have said
_ROOM_MARGIN = 1.1
_NOT_BELOW = (  # the first is not below the second
    ("blocks_per_track_outer", "blocks_per_track_inner"),
    ("seek_ms_average", "seek_ms_single"),
    ("seek_ms_full", "seek_ms_average"),
)


def read_sheet(reference: str) -> DataSheet:
    """Return the row that FILE:NAME refers to; raise BadInput."""
    file, colon, name = reference.rpartition(":")
    if not (colon and file and name):
        raise BadInput("--drive", "no file and name", given=reference, allowed="FILE.json:NAME")
    rows = _read_rows(Path(file))
    if name not in rows:
        hint = did_you_mean(name, rows)
        raise BadInput(file, f"no drive '{name}'{hint}", allowed=", ".join(rows) or "none")
    return sheet_of(rows[name], f"{file}: {name}")


def _read_rows(path: Path) -> dict[str, Any]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(str(path), "is not text in UTF-8", allowed="JSON") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}:{error.lineno}:{error.colno}", f"no JSON: {error.msg}") from None
    if not isinstance(rows, dict):
        raise BadInput(str(path), "is not an object of drives by name", given=type(rows).__name__)
    return rows


def sheet_of(row: object, place: str) -> DataSheet:
    """Return a row of JSON as a data sheet; raise BadInput."""
    if not isinstance(row, dict):
        raise BadInput(place, "is not an object", given=row, allowed=", ".join(_NUMBERS))
    values = {key: _number(row, key, place) for key in _NUMBERS}
    for high, low in _NOT_BELOW:
        if values[high] < values[low]:
            raise BadInput(
                f"{place}: {high}",
                f"below {low}",
                given=row[high],
                allowed=f"at least {values[low]:g}",
            )
    room = int(values["surfaces"] * values["cylinders"] * values["blocks_per_track_outer"])
    if values["blocks_512"] > room * _ROOM_MARGIN:
        raise BadInput(
            f"{place}: blocks_512",
            "more than surfaces x cylinders x blocks_per_track_outer",
            given=row["blocks_512"],
            allowed=f"at most {room}",
        )
    whole = {key: int(values[key]) for key, counts in _NUMBERS.items() if counts}
    return DataSheet(**(values | whole))  # type: ignore[arg-type]


def _number(row: Mapping[str, Any], key: str, place: str) -> float:
    if key in _MAY_LACK and row.get(key) is None:
        return 0.0
    if key not in row:
        near = nearest(key, tuple(row))
        hint = f" - is it '{near}'?" if near and near not in _NUMBERS else ""
        raise BadInput(place, f"no {key}{hint}")
    value = row[key]
    bound = "0 or more" if key in _MAY_BE_0 else "above 0"
    kind = f"a whole number {bound}" if _NUMBERS[key] else f"a number {bound}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{place}: {key}", "is not a number", given=value, allowed=kind)
    is_in = math.isfinite(value) and (value > 0 or (value == 0 and key in _MAY_BE_0))
    if not is_in or (_NUMBERS[key] and value != int(value)):
        raise BadInput(f"{place}: {key}", "is not possible", given=value, allowed=kind)
    return float(value)
