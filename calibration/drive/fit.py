"""Fit what a data sheet does not say, or not for sure, to the first requests of a trace.

Models: a local search from the data sheet's disk on, three rounds of: the choices (write cache,
 reading on arrival, segments), one after the other; what hits in the buffer tell (overheads,
 interface); what all tell (positioning). Times and rates by Nelder and Mead's simplex.
Linux counterpart: none.
Invariants: only the requests given are looked at; geometry, speed, shortest and longest seek are
 the data sheet's; same requests and seed, same fit.
Left out: uncertainty of the fitted values. Where several disks fit as well (a longer average seek
 for a shorter overhead of positioning), the search ends near the data sheet's.

What is made small is the mean over the requests of |distance| / mean: each kind of request has its
own distance of sorted times, relative to its own mean measured time, so that hits are not lost
beside rotational latency, and not squared, so that a rare slow one does not outweigh them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from calibration.drive.replay import replay
from calibration.drive.score import distance_of_kinds
from calibration.drive.trace import KINDS, SEQUENTIAL, WRITES, Access, kinds
from sim.drivers.hdd import HddParams

Tell = Callable[[int, int], None]  # evaluations done, and in all
ROUNDS: Final = 3
EVALUATIONS: Final = 80  # of one simplex
_STEP: Final = 0.4  # size of the first simplex: by a factor of 1.5
_SMALL_NS: Final = 100_000.0
_DIGITS: Final = 4


@dataclass(frozen=True)
class Free:
    """A parameter that a simplex moves, as log(value + scale), within bounds (ns or bytes/s)."""

    name: str
    low: float
    high: float
    scale: float = 0.0

    def to_point(self, value: float) -> float:
        """Return the coordinate of a value, or of the nearest one within the bounds."""
        return log(min(max(value, self.low), self.high) + self.scale)

    def to_value(self, point: float) -> int:
        """Return the value at a coordinate, to as many digits as mean something."""
        value = exp(point) - self.scale
        return int(float(f"{value:.{_DIGITS}g}"))


@dataclass(frozen=True)
class Block:
    """Parameters that are moved together, and the kinds of requests that tell them."""

    free: tuple[Free, ...]
    kinds: tuple[str, ...]


_OVERHEAD: Final = Free("overhead_ns", 0, 10e6, _SMALL_NS)
_INTERFACE: Final = Free("interface_rate_bytes_per_s", 1e6, 640e6)
_POSITIONING: Final = Block(
    (
        Free("positioning_overhead_ns", 0, 10e6, _SMALL_NS),
        Free("head_switch_ns", 0, 5e6, _SMALL_NS),
        Free("write_settle_ns", 0, 5e6, _SMALL_NS),
        Free("seek_average_ns", 1e6, 50e6),
    ),
    KINDS,
)
# By whether writes are cached: only then they tell their own overhead from their settling.
BLOCKS: Final[Mapping[bool, tuple[Block, ...]]] = {
    False: (Block((_OVERHEAD, _INTERFACE), (SEQUENTIAL,)), _POSITIONING),
    True: (
        Block(
            (_OVERHEAD, Free("write_overhead_ns", 0, 10e6, _SMALL_NS), _INTERFACE),
            (WRITES, SEQUENTIAL),
        ),
        _POSITIONING,
    ),
}
CHOICES: Final[tuple[tuple[str, tuple[bool | int, ...]], ...]] = (
    ("write_cache", (False, True)),
    ("read_on_arrival", (False, True)),
    ("segments", (1, 2, 4, 8, 16, 32)),
)
_IN_ALL: Final = ROUNDS * (
    len(BLOCKS[True]) * EVALUATIONS + sum(1 + len(values) for _, values in CHOICES)
)


class _Distance:
    """How far a disk is from what was measured; counts, for who waits."""

    def __init__(self, accesses: Sequence[Access], seed: int, tell: Tell) -> None:
        self._accesses = accesses
        self._kinds = kinds(accesses)
        self._seed = seed
        self._tell = tell
        self._done = 0

    def __call__(self, params: HddParams, which: Collection[str] = KINDS) -> float:
        """Return the mean relative distance of the requests of some kinds."""
        self._done += 1
        self._tell(min(self._done, _IN_ALL), _IN_ALL)
        chosen = [at for at, kind in enumerate(self._kinds) if kind in which]
        if not chosen:
            return 0.0
        took_ns = replay(params, self._accesses, self._seed)
        return distance_of_kinds(
            [self._kinds[i] for i in chosen],
            [self._accesses[i].measured_ns for i in chosen],
            [took_ns[i] for i in chosen],
        )


def fit(start: HddParams, accesses: Sequence[Access], seed: int, tell: Tell) -> HddParams:
    """Return the parameters fitted to the requests, from those of the data sheet on."""
    distance = _Distance(accesses, seed, tell)
    params = start
    for _ in range(ROUNDS):
        params = _choose(params, distance)
        for block in BLOCKS[params.write_cache]:
            params = _move(params, block, distance)
    return params


def _choose(params: HddParams, distance: _Distance) -> HddParams:
    """Take the best of each choice, the others kept."""
    for name, values in CHOICES:
        changes: list[dict[str, Any]] = [{}, *({name: value} for value in values)]
        params = min((replace(params, **change) for change in changes), key=distance)
    return params


def _move(params: HddParams, block: Block, distance: _Distance) -> HddParams:
    """Let a simplex look for better values of a block."""
    start = np.array([one.to_point(getattr(params, one.name)) for one in block.free])
    bounds = [(one.to_point(one.low), one.to_point(one.high)) for one in block.free]
    inwards = [
        _STEP if x + _STEP < high else -_STEP for x, (_, high) in zip(start, bounds, strict=True)
    ]
    result = minimize(
        lambda point: distance(_at(params, block, point), block.kinds),
        start,
        method="Nelder-Mead",
        bounds=bounds,
        options={
            "maxfev": EVALUATIONS,
            "xatol": 1e-3,
            "fatol": 1e-6,
            "initial_simplex": np.vstack([start, start + np.diag(inwards)]),
        },
    )
    return _at(params, block, result.x)


def _at(params: HddParams, block: Block, point: npt.NDArray[np.float64]) -> HddParams:
    """Return the parameters at a point of a block's space."""
    changes: dict[str, Any] = {
        one.name: one.to_value(float(x)) for one, x in zip(block.free, point, strict=True)
    }
    return replace(params, **changes)
