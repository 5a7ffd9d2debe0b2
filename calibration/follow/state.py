"""What a follower knows, as a file: the same command goes on with it.

Models: the notes for the next shift.
Linux counterpart: none.
Invariants: the file is JSON, of plain numbers and texts; one of another host, or that is none, is
refused with its place; what is usual survives a restart of the server, readings do not.
Left out: the readings themselves: `iotwin record` keeps those.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from calibration.follow.detector import Channel
from calibration.follow.follower import FIGURES, Follower

SCHEMA: Final = "iotwin.follow.state/1"
_NUMBERS: Final = ("mean", "known", "squares", "freedom")
_TWIN: Final[Mapping[str, tuple[type, ...]]] = {
    "text": (str,),
    "fit": (str, type(None)),
    "values": (dict,),
}


class StateError(ValueError):
    """A file that is no state, or one of another server."""


def state_of(follower: Follower) -> dict[str, Any]:
    """Return what is to be kept."""
    values = dict(follower.standing.values) if follower.standing is not None else {}
    return {
        "schema": SCHEMA,
        "host": _host(follower),
        "at": follower.last[-1].at.isoformat(timespec="seconds") if follower.last else None,
        "usual": [
            {"resource": resource, "figure": column, **{x: getattr(one, x) for x in _NUMBERS}}
            for (resource, column), one in follower.channels.items()
            if one.is_learned
        ],
        "twin": {"text": follower.twin_text, "fit": follower.twin_fit, "values": values}
        if follower.twin_text
        else None,
    }


def restore(follower: Follower, path: Path) -> str:
    """Let a follower go on with a file; return since when it is. Raise StateError, OSError.

    A twin that it was given stays.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StateError(f"{path}: no state of iotwin follow: {error}") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise StateError(f"{path}: no state of iotwin follow (its schema is not {SCHEMA})")
    ours, theirs = _host(follower), content.get("host")
    if ours and theirs and ours != theirs:
        raise StateError(f"{path}: the state of {theirs}, and this is {ours}; name another file")
    try:
        for row in content["usual"]:
            _restore_row(follower, row)
        twin = content["twin"]
        if twin is not None:
            wrong = [name for name, kind in _TWIN.items() if not isinstance(twin[name], kind)]
            if wrong:
                raise KeyError(*wrong)
            values = {str(name): float(value) for name, value in twin["values"].items()}
            if follower.given is None:
                follower.given = (twin["text"], twin["fit"], values)
                follower.is_replaceable = True
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"{path}: a state that is damaged: {error}; remove it") from None
    follower.is_known = bool(content["usual"])
    return str(content.get("at"))


def _restore_row(follower: Follower, row: dict[str, Any]) -> None:
    if row["figure"] not in FIGURES:
        raise KeyError(row["figure"])
    channel: Channel = follower.channel((str(row["resource"]), row["figure"]))
    channel.mean, channel.squares = float(row["mean"]), float(row["squares"])
    channel.known, channel.freedom = int(row["known"]), int(row["freedom"])


def _host(follower: Follower) -> str | None:
    return follower.host.hostname if follower.host is not None else None
