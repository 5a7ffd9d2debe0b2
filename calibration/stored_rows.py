"""Rows kept as data: a JSON list of objects that all have the same keys.

Models: what stored runs and stored comparisons have in common: reading, and what is wrong with a
 file that is neither.
Linux counterpart: none.
Invariants: a row that is given back has every key that was asked for.
Left out: what the keys' values are, and writing (sim.cli.output.write_rows).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class BadData(ValueError):
    """A file that is no such data, with where and why."""


def read_rows(path: Path, what: str, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a file; `what` is what a row is called. Raise BadData: where and why."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadData(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BadData(f"{path}: not JSON: {error}") from None
    if not isinstance(content, list):
        raise BadData(f"{path}: expected a list of {what}s, got {type(content).__name__}")
    for number, row in enumerate(content, 1):
        lacking = [key for key in keys if key not in row] if isinstance(row, dict) else keys
        if lacking:
            needed = f"a {what} has {', '.join(keys)}"
            raise BadData(f"{path}: {what} {number}: lacks '{lacking[0]}' ({needed})")
    return content
