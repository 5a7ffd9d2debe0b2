"""Named random streams.

Models: chance. Each part that draws owns a stream named after it ("sdb.rotation"); its numbers
depend on the run's seed and that name only. So a part added, removed or drawing more often changes
no other part's numbers, and two what-ifs share the chance they have in common (common random
numbers).

Linux counterpart: none.

Invariants: the same seed and name give the same numbers in every process, on every platform, for
every PYTHONHASHSEED; a name is one stream, however often it is asked for.

Left out: jumpable generators. SHA-256 over seed and name gives independent Mersenne Twisters, and
``random.Random`` is the fastest generator the standard library has.
"""

import hashlib
import random


class Streams:
    """The random streams of one run, by name."""

    __slots__ = ("_streams", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, random.Random] = {}

    def stream(self, name: str) -> random.Random:
        """Return the stream of that name; keep it, a look-up is a hash of the name."""
        known = self._streams.get(name)
        if known is None:
            known = random.Random(stream_seed(self.seed, name))
            self._streams[name] = known
        return known

    def names(self) -> list[str]:
        """Return the names of the streams asked for so far, sorted."""
        return sorted(self._streams)


def stream_seed(seed: int, name: str) -> int:
    """Return the 256-bit seed of stream ``name`` in the run seeded with ``seed``."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest(), "big")
