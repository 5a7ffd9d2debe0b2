"""Which recorded data sets there are, and which states of a server each has figures of.

Models: the index of a folder of recordings.
Linux counterpart: none.
Invariants: names only; a data set that cannot be read counts as there, because the reader of its
 figures (sim.study.recorded) says what is wrong with it.
"""

import tomllib
from pathlib import Path
from typing import Final

RECORDINGS: Final = Path(__file__).parents[2] / "calibration" / "recordings"


def data_sets(directory: Path = RECORDINGS) -> list[str]:
    """Return the names of the data sets."""
    return sorted(path.parent.name for path in directory.glob("*/dataset.toml"))


def figure_sets(data_set: str, directory: Path = RECORDINGS) -> list[str] | None:
    """Return the names of a data set's sets of figures, None if it cannot be read."""
    try:
        text = (directory / data_set / "dataset.toml").read_text(encoding="utf-8")
        figures = tomllib.loads(text).get("figures", {})
    except (OSError, ValueError):
        return None
    return sorted(figures) if isinstance(figures, dict) else None


def shown(data_set: str) -> str:
    """Return where a data set lies, as text for the user."""
    return f"{RECORDINGS.parent.name}/{RECORDINGS.name}/{data_set}/dataset.toml"
