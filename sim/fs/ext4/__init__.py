"""ext3 and ext4, in the folder of the driver that mounts both since 4.3 (fs/ext4).

ext4.py        what both keep in memory, and what a mount is composed of; parameters
balloc.py      block groups: goals, reservation windows, allocation and freeing
mballoc.py     locality groups, preallocations, discards
ialloc.py      inodes: which group
dir.py         directories: entries in blocks, linear or htree
mke2fs.py      where mke2fs puts groups, bitmaps, inode tables, journal; what it refuses
inode.py       write, truncate, delete, fsync; pages to and from the disk
extents.py     allocating extents
namei.py       create, unlink, rename, ... as journal handles
nojournal.py   what stands for the journal where there is none
fast_commit.py what changed of files, logged instead of blocks
super.py       the mounted file system
fsck.py        e2fsck -n; what a power cut leaves
"""
