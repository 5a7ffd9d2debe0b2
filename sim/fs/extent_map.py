"""From blocks of a file to blocks of the device, as runs.

Models: the mapping of one file, whatever its form on the disk: runs of adjacent blocks, and holes.
Linux counterpart: what the block pointers, extents or records of a file say together.
Invariants: runs are ascending in the file and do not overlap.
Left out: where the mapping itself is kept; a file system subclasses this with that.
"""

from bisect import bisect_right


class ExtentMap:
    """The mapped runs of one file."""

    def __init__(self) -> None:
        self.starts: list[int] = []  # File block of each run,
        self.blocks: list[int] = []  # its device block,
        self.counts: list[int] = []  # its length.

    def run_of(self, start: int, end: int) -> int:
        """Return the device block of `start` if [start, end) lies in one run, else -1."""
        starts = self.starts
        index = bisect_right(starts, start) - 1
        if index >= 0:
            offset = start - starts[index]
            if end - start <= self.counts[index] - offset:
                return self.blocks[index] + offset
        return -1

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (device block or -1, count) pieces that cover [start, end)."""
        block = self.run_of(start, end)
        if block >= 0:  # As most are.
            return [(block, end - start)]
        starts = self.starts
        index = max(bisect_right(starts, start) - 1, 0)
        pieces: list[tuple[int, int]] = []
        while start < end:
            if index >= len(starts) or starts[index] >= end:
                pieces.append((-1, end - start))
                break
            offset = start - starts[index]
            if offset < 0:
                pieces.append((-1, -offset))
                start = starts[index]
                offset = 0
            count = self.counts[index] - offset
            if count > 0:
                if count > end - start:
                    count = end - start
                pieces.append((self.blocks[index] + offset, count))
                start += count
            index += 1
        return pieces

    def holes(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (start, end) of what has no blocks within a range."""
        found = []
        at = start
        for block, count in self.pieces(start, end):
            if block < 0:
                found.append((at, at + count))
            at += count
        return found

    def block_of(self, block: int) -> int:
        """Return the device block of one file block, -1 if it is not mapped."""
        index = bisect_right(self.starts, block) - 1
        if index < 0:
            return -1
        offset = block - self.starts[index]
        return self.blocks[index] + offset if offset < self.counts[index] else -1

    def nearest_before(self, block: int) -> int:
        """Return the last mapped file block at or before `block`, or -1."""
        index = bisect_right(self.starts, block) - 1
        if index < 0:
            return -1
        return min(block, self.starts[index] + self.counts[index] - 1)

    def insert(self, start: int, block: int, count: int) -> None:
        """Map `count` blocks of a hole."""
        index = bisect_right(self.starts, start)
        if index:
            left = index - 1
            length = self.counts[left]
            assert self.starts[left] + length <= start, "a block was mapped twice"
            if self.starts[left] + length == start and self.blocks[left] + length == block:
                self.counts[left] = length + count
                return
        assert index == len(self.starts) or start + count <= self.starts[index]
        self.starts.insert(index, start)
        self.blocks.insert(index, block)
        self.counts.insert(index, count)

    def unmap_from(self, end: int) -> list[tuple[int, int]]:
        """Unmap everything from `end` on; return the freed runs of the device, last first."""
        freed: list[tuple[int, int]] = []
        while self.starts:
            start, block, count = self.starts[-1], self.blocks[-1], self.counts[-1]
            keep = end - start
            if keep >= count:
                break
            if keep > 0:
                self.counts[-1] = keep
                freed.append((block + keep, block + count))
                break
            freed.append((block, block + count))
            self.starts.pop()
            self.blocks.pop()
            self.counts.pop()
        return freed
