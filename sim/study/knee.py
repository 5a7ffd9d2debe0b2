"""The knee of a curve: where more load stops bringing more throughput.

Models: Kneedle (Satopaa, Albrecht, Irwin and Raghavan, "Finding a 'Kneedle' in a Haystack", ICDCS
 workshops 2011, section III) for a curve that rises and flattens. Both axes are stretched to 0..1;
 the knee is where the curve lies highest above its chord, and it is one only if the curve comes
 down towards the chord again by S mean steps of the load.
By hand: 1, 2, 4, 8 customers on a station that is full with 4: throughput 1, 2, 4, 4. Stretched:
 x 0, 1/7, 3/7, 1 and y 0, 1/3, 1, 1, so y - x is 0, 0.19, 0.57, 0: the knee is at 4.
Counterpart: none of Linux.
Invariants: units do not matter; a straight line has no knee, and neither has a curve whose height
 above the chord is less than what chance moves its points by.
Left out: the paper's smoothing, since each point is a mean of runs and has its interval instead;
 curves that fall, and knees of a second rise.
"""

from collections.abc import Sequence
from typing import Final

SENSITIVITY: Final = 1.0  # the paper's S: of offline use, as its section IV has it


def knee(loads: Sequence[float], heights: Sequence[float], noise: float = 0.0) -> int | None:
    """Return which point is the knee; None if none lies inside the range.

    Loads rise. `noise` is by how much chance moves a height, such as half of an interval.
    """
    if len(loads) < 3:
        return None
    low, high = min(heights), max(heights)
    if high - low <= noise or heights[0] == high:
        return None
    above = [
        (height - low) / (high - low) - (load - loads[0]) / (loads[-1] - loads[0])
        for load, height in zip(loads, heights, strict=True)
    ]
    best = max(range(1, len(above) - 1), key=above.__getitem__)
    threshold = above[best] - SENSITIVITY / (len(loads) - 1)
    comes_down = min(above[best:]) < threshold
    return best if comes_down and above[best] * (high - low) > noise else None
