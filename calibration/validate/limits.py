"""How near a simulated figure has to be to be of use, and which figures are asked.

Models: a requirement on the twin, chosen from what it is for and the same for all families.
Linux counterpart: none.
Invariants: nothing here follows from what the twin reaches; what it misses is reported as missed.
Left out: counters beside await, which the report shows and asks nothing of.

A server is chosen, or a change of it decided, between things that differ by half or more: twice the
disks, an SSD, another file system, half the load. The twin is of use for that if its throughput is
within a quarter of what a real kernel did. The time of a request hangs on the queue before it, and
three equal runs of a real kernel differ in it by up to a fifth: within 35 %.

Nothing that a program reports, nor await, should be off by more than 40 % in any run: the figure
would hide, or invent, a difference by half. What is beyond that is told figure by figure.
"""

from collections.abc import Mapping
from typing import Any, Final

THROUGHPUT: Final = "throughput"
AWAIT: Final = "await"
AWAIT_MS: Final = "await ms"
WITHIN: Final[Mapping[str, float]] = {THROUGHPUT: 0.25, AWAIT: 0.35}
FIGURE_WITHIN: Final = 0.40  # every figure of a run
# Below this %util the disk was idle but for a few requests of others, and await is theirs.
UTIL_MIN: Final = 5.0
_NO_THROUGHPUT: Final = ("CPU s", "killed", "hit ratio")


def asked(figures: Mapping[str, Any]) -> dict[str, tuple[str, float]]:
    """Return the figures of a run that are asked: what -> (name in the index, value)."""
    found: dict[str, tuple[str, float]] = {}
    name, value = next(iter(figures["result"].items()))
    if value is not None and name not in _NO_THROUGHPUT:
        found[THROUGHPUT] = (name, value)
    if figures["util"] >= UTIL_MIN:
        found[AWAIT] = (AWAIT_MS, figures["await_all_ms"])
    return found


def told(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """Return all that the program of a run reported, and await where it is asked."""
    found = dict(figures["result"])
    if figures.get("util", 0.0) >= UTIL_MIN:
        found[AWAIT_MS] = figures["await_all_ms"]
    return found
