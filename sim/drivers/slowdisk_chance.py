"""The chance of an emulated disk: the random generator of the program that plays it, from its seed.

Models: xorshift128+ with two words of state made of the seed, warmed up by twenty steps.
Linux counterpart: none; groundtruth rig/slowdisk.c (rseed, U). Vigna: "Further scramblings of
 Marsaglia's xorshift generators" (2014).
Invariants: every number is in [0, 1) and a multiple of 2^-53; a seed gives one sequence. Who serves
 the same requests in the same order draws the same numbers: where so few are at random that chance
 is all there is (six reads beside a sequential writer), a described seed leaves none.
Left out: jumping ahead.
"""

from typing import Final

_WORD: Final = (1 << 64) - 1
_FIRST: Final = 0x9E3779B97F4A7C15
_SECOND: Final = 0xD1B54A32D192ED03
_WARM_UP: Final = 20


class Xorshift128Plus:
    """A stream of uniform numbers."""

    def __init__(self, seed: int) -> None:
        self._s0: int = _FIRST * (seed + 1) & _WORD
        self._s1: int = _SECOND ^ (seed & _WORD)
        for _ in range(_WARM_UP):
            self.random()

    def random(self) -> float:
        """Return the next number, 0 up to but not including 1."""
        x, y = self._s0, self._s1
        self._s0 = y
        x ^= x << 23 & _WORD
        self._s1 = x ^ y ^ x >> 17 ^ y >> 26
        return ((self._s1 + y & _WORD) >> 11) / (1 << 53)
