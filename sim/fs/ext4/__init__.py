"""ext3 and ext4, in the folder of the driver that mounts it since 4.3 (fs/ext4).

layout.py   where mke2fs puts groups, bitmaps, inode tables, journal
runs.py     sets of blocks as runs
balloc.py   blocks: goals, reservation windows, allocation and freeing
ialloc.py   inodes: which group
dir.py      directories: entries in blocks, linear or htree
mapping.py  file blocks to device blocks; indirect blocks
super.py    the mounted file system
namei.py    create, unlink, rename, ... as journal handles
inode.py    write, truncate, delete, writing pages out
fsync.py    when an fsync is a commit
mballoc.py  locality groups and preallocations

ext4.py     the mounted ext4: what differs from ext3
flex.py     flexible block groups and the journal's place
extents.py  extents, and allocating them
delalloc.py write() promises blocks
mpage.py    writing pages out looks for them
unwritten.py  extents that are valid when their data are there
"""
