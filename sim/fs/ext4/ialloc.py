"""Which inode a new file or directory gets.

Theory of operation (fs/ext3/ialloc.c, 2.6.16)
 - A file goes into its directory's group if that has a free inode and a free block; else into
   another, by a hash of the directory, then quadratically, then linearly: so the files of one
   directory stay together. Within the group: the lowest free number.
 - A directory goes by Orlov: one in the root into the group, from a random one on, with fewest
   directories among those with above average free inodes and blocks; others near their parent
   while that is not too crowded.
Linux counterpart: fs/ext3/ialloc.c find_group_other, find_group_orlov, ext3_new_inode, 2.6.16.
Invariants: an inode number has one owner; numbers below 12 are mke2fs's.
Left out: Orlov's debt counters (they only spread trees of directories made in one go).
"""

from heapq import heappop, heappush
from random import Random

from sim.fs.ext4.balloc import FIRST_INODE, ROOT_INODE, BlockAllocator, Layout


class InodeAllocator:
    """Free inodes and directories of all groups."""

    def __init__(self, layout: Layout, blocks: BlockAllocator, random: Random) -> None:
        self.layout = layout
        self.blocks = blocks
        self.random = random
        count = len(layout.groups)
        self.free = [layout.inodes_per_group] * count
        self.free_total = layout.inodes_per_group * count
        self.directories = [0] * count
        self.next_fresh = [group * layout.inodes_per_group + 1 for group in range(count)]
        self.freed: list[list[int]] = [[] for _ in range(count)]  # Heaps of numbers used before.
        for _ in range(FIRST_INODE):
            self._take(0)
        self.directories[0] = 2  # The root and lost+found.

    def allocate_file(self, parent: int) -> int:
        """Return an inode number for a file in directory inode `parent`; -1 if there is none."""
        group = self._group_other(parent)
        return self._take(group) if group >= 0 else -1

    def allocate_directory(self, parent: int) -> int:
        """Return an inode number for a directory; -1 if there is none."""
        group = self._group_orlov(parent)
        if group < 0:
            return -1
        self.directories[group] += 1
        return self._take(group)

    def release(self, ino: int, directory: bool) -> None:
        """Make a number available again, at once (ext3_free_inode)."""
        group = self.layout.group_of_inode(ino)
        heappush(self.freed[group], ino)
        self.free[group] += 1
        self.free_total += 1
        if directory:
            self.directories[group] -= 1

    def _take(self, group: int) -> int:
        """Return the lowest free number of a group."""
        assert self.free[group] > 0
        self.free[group] -= 1
        self.free_total -= 1
        if self.freed[group]:
            return heappop(self.freed[group])
        ino = self.next_fresh[group]
        self.next_fresh[group] = ino + 1
        return ino

    def _usable(self, group: int) -> bool:
        return self.free[group] > 0 and self.blocks.groups[group].count > 0

    def _group_other(self, parent: int) -> int:
        """Return the group for a file."""
        count = len(self.free)
        home = self.layout.group_of_inode(parent)
        if self._usable(home):
            return home
        group = (home + parent) % count
        step = 1
        while step < count:
            group = (group + step) % count
            if self._usable(group):
                return group
            step <<= 1
        for group in range(home, home + count):
            if self.free[group % count]:
                return group % count
        return -1

    def _group_orlov(self, parent: int) -> int:
        """Return the group for a directory."""
        count = len(self.free)
        if not self.free_total:
            return -1
        average_inodes = self.free_total // count
        average_blocks = self.blocks.free_total // count
        if parent == ROOT_INODE:
            group = self._emptiest(self.random.randrange(count), average_inodes, average_blocks)
            if group >= 0:
                return group
            home = 0
        else:
            home = self.layout.group_of_inode(parent)
            directories_max = sum(self.directories) // count + self.layout.inodes_per_group // 16
            inodes_min = average_inodes - self.layout.inodes_per_group // 4
            blocks_min = average_blocks - 32768 // 4
            for group in range(home, home + count):
                number = group % count
                if (
                    self.free[number]
                    and self.directories[number] < directories_max
                    and self.free[number] >= inodes_min
                    and self.blocks.groups[number].count >= blocks_min
                ):
                    return number
        for group in range(home, home + count):  # fallback
            if self.free[group % count] and self.free[group % count] >= average_inodes:
                return group % count
        return next(number for number in range(count) if self.free[number])

    def _emptiest(self, first: int, average_inodes: int, average_blocks: int) -> int:
        """Return the group with fewest directories among those with room, from `first` on."""
        best, best_directories = -1, self.layout.inodes_per_group
        for step in range(len(self.free)):
            group = (first + step) % len(self.free)
            if (
                self.free[group] >= max(average_inodes, 1)
                and self.directories[group] < best_directories
                and self.blocks.groups[group].count >= average_blocks
            ):
                best, best_directories = group, self.directories[group]
        return best
