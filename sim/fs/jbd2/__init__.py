"""The journal of ext3 (jbd; ext4's jbd2 is its descendant).

state.py        what a transaction, a handle and a journalled block are
journal.py      the log on the disk, and asking and waiting for commits
transaction.py  starting and stopping handles, access to blocks
batch.py        the pause before a synchronous commit
commit.py       kjournald
checkpoint.py   getting log space back
"""
