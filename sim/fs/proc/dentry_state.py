"""/proc/sys/fs/dentry-state, inode-nr and inode-state.

Models: how many names and inodes are in memory, and how many of them are unused.
Linux counterpart: fs/dcache.c (dentry_stat, proc_nr_dentry), fs/inode.c (inodes_stat).
Invariants: numbers are tab-separated; age_limit is 45 s, as the kernel initialises it.
Left out: want_pages and the dummies are 0; nr_negative (5.0), since names that are missing are not
kept.
"""

from __future__ import annotations

from sim.fs.proc.counters import Vm

AGE_LIMIT_S = 45


def render_dentry_state(vm: Vm) -> str:
    """Return nr_dentry, nr_unused, age_limit, want_pages and two dummies."""
    dentries, unused, _, _ = vm.slabs.dentry_counts()
    return f"{dentries}\t{unused}\t{AGE_LIMIT_S}\t0\t0\t0\n"


def render_inode_nr(vm: Vm) -> str:
    """Return nr_inodes and nr_unused."""
    _, _, inodes, unused = vm.slabs.dentry_counts()
    return f"{inodes}\t{unused}\n"


def render_inode_state(vm: Vm) -> str:
    """Return the same with five dummies."""
    _, _, inodes, unused = vm.slabs.dentry_counts()
    return f"{inodes}\t{unused}\t0\t0\t0\t0\t0\n"
