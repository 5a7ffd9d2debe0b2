"""EC2 instance types: how fast an instance reaches its EBS volumes.

Models: tables. An instance that is EBS-optimized has bandwidth of its own for its volumes; one
that is not shares its network card with them, of which the class is published in words only.
Hand estimate: m3.xlarge, optimized: 500 Mbit/s = 62.5 MB/s for all volumes together.
Linux counterpart: none. Sources: Amazon EC2 User Guide (2014-2017), "Amazon EBS-Optimized
Instances"; "Instance Types", network performance.
Invariants: EBS_PATHS has only paths that exist: no optimized row for a type that cannot be.
Left out: limits on operations (4000 of 16 KiB for 500 Mbit/s).
"""

from collections.abc import Mapping
from typing import Final

UNLIMITED: Final = "unlimited"
OPTIMIZED: Final = " ebs-optimized"

_MBIT: Final = 1e6 / 8
LOW: Final = 250 * _MBIT  # assumed: what users measured where AWS says "Low"
MODERATE: Final = 500 * _MBIT  # assumed: "Moderate", 300 to 700 Mbit/s measured
HIGH: Final = 1000 * _MBIT  # assumed: "High", a gigabit card
TEN_GIGABIT: Final = 10_000 * _MBIT  # "10 Gigabit"

# Of a type: (bytes/s with EBS optimization, None if it cannot be had; bytes/s of the network card)
_TYPES: Final[Mapping[str, tuple[float | None, float]]] = {
    "m1.small": (None, LOW),
    "m1.large": (500 * _MBIT, MODERATE),
    "m1.xlarge": (1000 * _MBIT, HIGH),
    "m2.2xlarge": (500 * _MBIT, MODERATE),
    "m2.4xlarge": (1000 * _MBIT, HIGH),
    "c1.xlarge": (1000 * _MBIT, HIGH),
    "m3.medium": (None, MODERATE),
    "m3.large": (None, MODERATE),
    "m3.xlarge": (500 * _MBIT, HIGH),
    "m3.2xlarge": (1000 * _MBIT, HIGH),
    "c3.large": (None, MODERATE),
    "c3.xlarge": (500 * _MBIT, MODERATE),
    "c3.2xlarge": (1000 * _MBIT, HIGH),
    "c3.4xlarge": (2000 * _MBIT, HIGH),
    "c3.8xlarge": (None, TEN_GIGABIT),
    "r3.large": (None, MODERATE),
    "r3.xlarge": (500 * _MBIT, MODERATE),
    "r3.2xlarge": (1000 * _MBIT, HIGH),
    "r3.4xlarge": (2000 * _MBIT, HIGH),
    "r3.8xlarge": (None, TEN_GIGABIT),
    "i2.xlarge": (500 * _MBIT, MODERATE),
    "i2.2xlarge": (1000 * _MBIT, HIGH),
    "i2.4xlarge": (2000 * _MBIT, HIGH),
    "i2.8xlarge": (None, TEN_GIGABIT),
    "m4.large": (450 * _MBIT, MODERATE),
    "m4.xlarge": (750 * _MBIT, HIGH),
    "m4.2xlarge": (1000 * _MBIT, HIGH),
    "c4.large": (500 * _MBIT, MODERATE),
    "r4.large": (425 * _MBIT, TEN_GIGABIT),
    "i3.large": (425 * _MBIT, TEN_GIGABIT),
}

# Path to the volumes -> bytes/s; absent: no limit.
EBS_PATHS: Final[Mapping[str, float]] = {name: card for name, (_, card) in _TYPES.items()} | {
    name + OPTIMIZED: own for name, (own, _) in _TYPES.items() if own is not None
}


def path_source(instance: str) -> str:
    """Return where the rate of an instance's path to its volumes is from."""
    if instance.endswith(OPTIMIZED):
        return "Amazon EC2 User Guide: Amazon EBS-Optimized Instances"
    words = {LOW: "Low", MODERATE: "Moderate", HIGH: "High", TEN_GIGABIT: "10 Gigabit"}
    word = words[EBS_PATHS[instance]]
    if word == "10 Gigabit":
        return "Amazon EC2 User Guide: Instance Types, network performance: 10 Gigabit"
    return f"assumed: what users measured where the User Guide says {word}"


EBS_PATH_NAMES: Final[tuple[str, ...]] = (UNLIMITED, *sorted(EBS_PATHS))
