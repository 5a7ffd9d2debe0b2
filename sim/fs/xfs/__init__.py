"""XFS (fs/xfs).

params.py  mount options, what mkfs.xfs was told and makes of it, costs
alloc.py   free space of an allocation group: two B+trees, busy extents, discards
ialloc.py  inodes: chunks of 64, which group
dir.py     directories: in the inode, in a block, in leaves
buf.py     metadata buffers, what changed of them, and writing them home
log.py     the log: in-core buffers, records, delayed logging, the active item list
mount.py   what a mounted XFS keeps in memory; transactions
bmap.py    giving blocks to files, and taking them back
file.py    write(), pages to and from the disk, fsync
inode.py   create, unlink, rename, truncate, freeing inodes, as transactions
fsck.py    xfs_repair -n; what a power cut leaves
super.py   the mounted file system
"""
