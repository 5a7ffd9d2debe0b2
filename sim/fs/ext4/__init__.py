"""ext3, in the folder of the driver that mounts it since 4.3 (fs/ext4).

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
"""
