"""XFS (fs/xfs).

params.py    mount options, what mkfs.xfs was told, costs
geometry.py  where mkfs.xfs puts allocation groups and the log
alloc.py     free space of an allocation group: two B+trees, busy extents
ialloc.py    inodes: chunks of 64, which group
dir.py       directories: in the inode, in a block, in leaves
buf.py       metadata buffers, and writing them home
items.py     what a transaction changed, and how much of it the log takes
iclog.py     in-core log buffers
log_device.py which device has the log, and whose cache is flushed
log.py       the log: space, writing records, forcing
cil.py       delayed logging: the committed item list
ail.py       the active item list, and the thread that pushes the log's tail
trans.py     transactions
sb.py        what a mounted XFS keeps in memory
bmap.py      giving blocks to files, and taking them back
iomap.py     write(): delayed allocation, preallocation beyond the end
aops.py      writing pages out, and what happens when they are on the disk
inactive.py  truncating, and freeing inodes
namei.py     create, unlink, rename, ... as transactions
fsync.py     when an fsync forces the log, and how far
check.py     xfs_repair -n
super.py     the mounted file system
"""
