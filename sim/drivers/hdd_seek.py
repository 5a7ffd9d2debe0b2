"""How long the arm of a disk moves: a curve through the data sheet's three values.

Models: the time from one cylinder to another and to settle there, by the distance alone. A blend
is a + b*sqrt(x) + c*x, x the fraction of the full stroke. In two parts: short seeks speed up and
slow down, a + b*x**p; from a knee on the arm coasts between, and each cylinder more costs the
same; the parts meet without a step or a bend. The knee is where the average comes out.
Linux counterpart: none; C. Ruemmler and J. Wilkes, An Introduction to Disk Drive Modeling, IEEE
Computer 27(3), 1994 (two parts, the first with a root).
Invariants: the curve takes the track-to-track value (x near 0), the full stroke's (x = 1) and the
average over random pairs of cylinders; if there is no such curve in two parts, the nearest.
Left out: jitter, inward against outward, the shorter settling after seeks over one to four tracks.
"""

from typing import Final

BLEND: Final = "blend"
TWO_PART: Final = "two-part"
BEYOND: Final = 1 << 62  # no distance
KNOWN_DISTANCES_MAX: Final = 1 << 16


class SeekCurve:
    """The curve of one arm, by cylinders; times in ns."""

    __slots__ = (
        "base_ns", "exponent", "far_base_ns", "far_ns", "knee", "known_ns", "linear_ns",
        "power_ns",
    )  # fmt: skip

    def __init__(
        self, track_ns: int, average_ns: int, full_ns: int, shape: str, cylinders: int,
        short_exponent: float,
    ) -> None:  # fmt: skip
        stroke = float(max(1, cylinders - 1))
        stroke_ns = full_ns - track_ns
        # What the average is, between the shortest seek (0) and the longest (1).
        share = (average_ns - track_ns) / stroke_ns if stroke_ns else 0.0
        self.base_ns: float = float(track_ns)
        self.exponent: float = 0.5
        self.knee: int = BEYOND
        self.linear_ns: float = 0.0
        self.far_base_ns: float = 0.0
        self.far_ns: float = 0.0
        if shape == TWO_PART:
            knee = knee_of(share, short_exponent)
            self.exponent = short_exponent
            self.knee = int(knee * stroke)
            slope_ns = stroke_ns * coasting_slope(knee, short_exponent)
            power_ns = slope_ns * knee ** (1 - short_exponent) / short_exponent
            self.far_base_ns = full_ns - slope_ns
            self.far_ns = slope_ns / stroke
        else:
            # Over random pairs sqrt(x) has the mean 8/15, and x has 1/3.
            power_ns = 5 * (average_ns - track_ns - stroke_ns / 3)
            self.linear_ns = (stroke_ns - power_ns) / stroke
        self.power_ns: float = power_ns / stroke**self.exponent
        # The times of distances met: powers take long, who asks often looks here first.
        self.known_ns: dict[int, int] = {}

    def ns(self, cylinders: int) -> int:
        """Return the time to move over ``cylinders``, not 0, out or in, and settle for a read."""
        known_ns = self.known_ns
        if len(known_ns) == KNOWN_DISTANCES_MAX:
            known_ns.clear()
        found_ns = known_ns[cylinders] = self._compute_ns(abs(cylinders))
        return found_ns

    def _compute_ns(self, cylinders: int) -> int:
        if cylinders > self.knee:
            return int(self.far_base_ns + self.far_ns * cylinders)
        return int(
            self.base_ns
            + self.power_ns * float(cylinders) ** self.exponent
            + self.linear_ns * cylinders
        )


def coasting_slope(knee: float, p: float) -> float:
    """Return the slope beyond the knee of a curve from (0, 0) to (1, 1) in two parts."""
    return 1 / (1 + knee * (1 / p - 1))


def mean_of_pairs(knee: float, p: float) -> float:
    """Return the mean of that curve over random pairs, whose distances have density 2 (1 - x)."""
    slope = coasting_slope(knee, p)
    power = slope * knee ** (1 - p) / p
    short: float = 2 * power * (knee ** (p + 1) / (p + 1) - knee ** (p + 2) / (p + 2))
    below = 2 * knee - knee**2  # how many pairs are nearer than the knee
    distance = knee**2 - 2 * knee**3 / 3  # their share of the mean distance, 1/3
    return short + (1 - slope) * (1 - below) + slope * (1 / 3 - distance)


def knee_of(mean: float, p: float) -> float:
    """Return the knee (0 to 1) at which the mean comes out; it grows with the knee."""
    low, high = 0.0, 1.0
    for _ in range(50):
        knee = (low + high) / 2
        if mean_of_pairs(knee, p) < mean:
            low = knee
        else:
            high = knee
    return low
