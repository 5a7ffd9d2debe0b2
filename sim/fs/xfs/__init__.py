"""XFS (fs/xfs).

params.py    mount options, what mkfs.xfs was told, costs
geometry.py  where mkfs.xfs puts allocation groups and the log
alloc.py     free space of an allocation group: two B+trees, busy extents
ialloc.py    inodes: chunks of 64, which group
dir.py       directories: in the inode, in a block, in leaves
discard.py   discards: mount -o discard, fstrim
buf.py       metadata buffers, what changed of them, and writing them home
log.py       the log: in-core buffers, records, delayed logging, the active item list
mount.py     what a mounted XFS keeps in memory; transactions
bmap.py      giving blocks to files, and taking them back
file.py      write(): delayed allocation, preallocation beyond the end; when an fsync forces the log
aops.py      writing pages out, and what happens when they are on the disk
inactive.py  truncating, and freeing inodes
namei.py     create, unlink, rename, ... as transactions
check.py     xfs_repair -n
power_cut.py what a power cut leaves
super.py     the mounted file system
"""
