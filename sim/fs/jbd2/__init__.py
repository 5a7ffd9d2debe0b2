"""The journal of ext3 (jbd; ext4's jbd2 is its descendant).

journal.py      state, the log on the disk, asking and waiting for commits
transaction.py  starting and stopping handles, access to blocks
commit.py       kjournald
checkpoint.py   getting log space back
"""
