"""Where fio's next operation goes, and how large it is.

Models: sequential places; random ones with a map (each block once in a pass), without one, and by
Zipf's or Pareto's law; block sizes one, or drawn by weights (bssplit).
Counterpart: fio io_u.c (get_next_offset, get_next_buflen), lib/lfsr.c, lib/zipf.c, 3.36.
Invariants: a place lies within its region and is a multiple of the smallest block from its
 beginning; with a map every block comes once before any comes twice.
Left out: fio's bit map of blocks done and its LFSR: a pass here is a Feistel permutation of the
 block numbers, drawn anew for each pass, which needs no memory and has no neighbours that follow
 each other, as an LFSR has. Where operations are larger than the map's block, the map is of their
 beginnings. fio scatters the ranks of Zipf by a hash, in which ranks may meet; here by such a
 permutation, so that each block has its own rank.

Zipf: rank k of n has the probability k^-theta / zeta(n, theta); drawn by the approximation of Gray
et al., "Quickly generating billion-record synthetic databases" (1994), which is exact for the
first two ranks.
"""

import math
import random
from collections.abc import Sequence
from typing import Final

ROUNDS: Final = 6
KEY_BITS: Final = 30
ODD: Final = 0x2545F491  # an odd multiplier: it carries every bit of a half upwards
ZETA_EXACT: Final = 4096  # terms summed one by one


class Permutation:
    """A random permutation of 0 .. size - 1 (an unbalanced Feistel network with cycle walking)."""

    __slots__ = ("high_bits", "keys", "low_bits", "size")

    def __init__(self, size: int, chance: random.Random) -> None:
        bits = max((size - 1).bit_length(), 2)
        self.size = size
        self.high_bits: int = bits // 2
        self.low_bits: int = bits - self.high_bits
        self.keys: list[int] = [chance.getrandbits(KEY_BITS) for _ in range(ROUNDS)]

    def at(self, index: int) -> int:
        """Return where `index` goes."""
        place = self._mixed(index)
        while place >= self.size:
            place = self._mixed(place)
        return place

    def _mixed(self, value: int) -> int:
        """Exchange the halves, mixing one into the other, an even number of times."""
        wide, narrow = self.low_bits, self.high_bits
        left, right = value >> wide, value & ((1 << wide) - 1)
        for key in self.keys:
            mixed = ((right ^ key) * ODD) & 0xFFFFFFFF
            mixed ^= mixed >> 15
            left, right = right, (left ^ ((mixed * 0x2C1B3C6D) >> 17)) & ((1 << narrow) - 1)
            wide, narrow = narrow, wide
        return (left << wide) | right


class Places:
    """The next place of a direction, bytes from the beginning of the file."""

    def __init__(self, begin: int, size: int, block: int) -> None:
        self.begin = begin
        self.size = size
        self.block = block
        self.blocks = size // block

    def next(self, size: int) -> int:
        """Return the place of an operation of `size` bytes."""
        raise NotImplementedError


class Sequential(Places):
    """One behind the other; from the beginning again at the end."""

    def __init__(self, begin: int, size: int, block: int) -> None:
        super().__init__(begin, size, block)
        self.position: int = 0

    def next(self, size: int) -> int:
        """Return the end of the last one."""
        if self.position + size > self.size:
            self.position = 0
        place = self.begin + self.position
        self.position += size
        return place


class Uniform(Places):
    """Anywhere, blocks seen before or not (norandommap)."""

    def __init__(self, begin: int, size: int, block: int, chance: random.Random) -> None:
        super().__init__(begin, size, block)
        self.chance = chance

    def next(self, size: int) -> int:
        """Draw a block."""
        return self.begin + int(self.chance.random() * self.blocks) * self.block


class Mapped(Places):
    """Each block once, in random order; then again in another order."""

    def __init__(self, begin: int, size: int, block: int, chance: random.Random) -> None:
        super().__init__(begin, size, block)
        self.chance = chance
        self.done: int = 0
        self.order = Permutation(self.blocks, chance)

    def next(self, size: int) -> int:
        """Take the next block of the order."""
        if self.done == self.blocks:
            self.done = 0
            self.order = Permutation(self.blocks, self.chance)
        place = self.order.at(self.done)
        self.done += 1
        return self.begin + place * self.block


class Ranked(Places):
    """By popularity: a rank is drawn, and each rank has its block."""

    def __init__(self, begin: int, size: int, block: int, chance: random.Random) -> None:
        super().__init__(begin, size, block)
        self.chance = chance
        self.scatter = Permutation(self.blocks, chance)

    def next(self, size: int) -> int:
        """Draw a rank and go to its block."""
        return self.begin + self.scatter.at(self.rank(self.chance.random())) * self.block

    def rank(self, uniform: float) -> int:
        """Return the rank, from 0, of a number drawn from [0, 1)."""
        raise NotImplementedError


class Zipf(Ranked):
    """Rank k + 1 in proportion to (k + 1)^-theta."""

    def __init__(
        self, begin: int, size: int, block: int, chance: random.Random, theta: float
    ) -> None:
        super().__init__(begin, size, block, chance)
        self.theta = theta
        self.zeta: float = zeta(self.blocks, theta)
        first_two = 1.0 + 0.5**theta
        self.eta: float = 1.0
        if self.blocks > 2:
            tail = 1.0 - float((2.0 / self.blocks) ** (1.0 - theta))
            self.eta = tail / (1.0 - first_two / self.zeta)

    def rank(self, uniform: float) -> int:
        """Invert the distribution (zipf_next)."""
        scaled = uniform * self.zeta
        if scaled < 1.0:
            return 0
        if scaled < 1.0 + 0.5**self.theta:
            return min(1, self.blocks - 1)
        share = float((self.eta * uniform - self.eta + 1.0) ** (1.0 / (1.0 - self.theta)))
        return min(int(self.blocks * share), self.blocks - 1)


class Pareto(Ranked):
    """A share h of the blocks gets a share 1 - h of the operations, again and again within it."""

    def __init__(self, begin: int, size: int, block: int, chance: random.Random, h: float) -> None:
        super().__init__(begin, size, block, chance)
        self.power: float = math.log(h) / math.log(1.0 - h)

    def rank(self, uniform: float) -> int:
        """Invert the distribution (pareto_next)."""
        return int((self.blocks - 1) * float(uniform**self.power))


def zeta(count: int, theta: float) -> float:
    """Return the sum of k^-theta for k = 1 to `count` (Euler and Maclaurin behind 4096 terms)."""
    exact = min(count, ZETA_EXACT)
    total = math.fsum(float(k**-theta) for k in range(1, exact + 1))
    if count == exact:
        return total
    low, high = float(exact), float(count)
    integral = (high ** (1.0 - theta) - low ** (1.0 - theta)) / (1.0 - theta)
    ends = (high**-theta - low**-theta) / 2.0
    slopes = theta * (low ** (-theta - 1.0) - high ** (-theta - 1.0)) / 12.0
    return float(total + integral + ends + slopes)


class Sizes:
    """The size of the next operation: always the same, or drawn by weights."""

    def __init__(self, split: Sequence[tuple[int, float]], chance: random.Random | None) -> None:
        self.smallest: int = min(size for size, _ in split)
        self.sizes: list[int] = [size for size, _ in split]
        self.chance = chance
        self.until: list[float] = []
        total = 0.0
        for _, weight in split:
            total += weight
            self.until.append(total)

    def next(self) -> int:
        """Return a size, bytes."""
        if self.chance is None:
            return self.sizes[0]
        drawn = self.chance.random() * self.until[-1]
        for index, bound in enumerate(self.until):
            if drawn < bound:
                return self.sizes[index]
        return self.sizes[-1]
