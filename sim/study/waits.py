"""What a task waits for, by where it sleeps; and what the release calls that place.

Models: the reader of a list of wait channels who knows the kernel's sources: which of them are a
 journal's, which a disk's, and which are those of a thread that has nothing to do.
Linux counterpart: /proc/PID/wchan and the functions that it names; jbd and jbd2, xlog, block, mm,
 net, md.
Invariants: every channel that a part of the twin sleeps in has a row (tests/study/test_waits.py
 walks the sources for their names). The twin's parts sleep under one name each, that of 2.6.16 or
 of the release that brought the place; kernel_name() is what a reader sees. A kernel names the
 first function up the stack that is not of the scheduler (get_wchan, in_sched_functions).
Left out: functions that a compiler put into their caller; before 4.3, whether a journal is ext3's
 (jbd) or ext4's (jbd2): it has jbd's names. Mutexes are __sched, so that a kernel names who wants
 one; here it is mutex_lock.
"""

from collections.abc import Mapping
from typing import Final

from sim.sched.version import KernelVersion, in_force
from sim.study import critical_path as cp

JOURNAL: Final = "journal"
LOCK: Final = "lock"
DISK: Final = "disk"
PAGE_CACHE: Final = "page cache"
MEMORY: Final = "memory"
NETWORK: Final = "network"
SERVER: Final = "server"  # an answer of a program on the same machine
SLEEP: Final = "sleep"
WORKER: Final = "a free worker"  # of a program that takes what comes in turn
IDLE: Final = "nothing to do"

_CHANNELS: Final = {
    LOCK: (
        "mutex_lock",
        "rwsem_down_read_slowpath",
        "rwsem_down_write_slowpath",
        "futex_wait",
        "xfs_buf_lock",
    ),
    # Until others' changes, or the log's space, are where they must be.
    JOURNAL: (
        "log_wait_commit",
        "start_this_handle",
        "journal_commit_transaction",
        "journal_stop",
        "do_get_write_access",
        "kjournald",
        "jbd2_fc_begin_commit",
        "jbd2_journal_lock_updates",
        "xlog_wait_on_iclog",
        "xlog_force_lsn",
        "xlog_cil_force_seq",
        "xlog_cil_order_write",
        "xlog_state_get_iclog_space",
        "xlog_grant_head_wait",
        "xfsaild",
        "xfs_log_worker",
    ),
    DISK: (
        "sync_page",
        "sync_buffer",
        "dio_await_one",
        "get_request_wait",
        "read_events",
        "io_cqring_wait",
        "dm_io",
        "submit_bio_wait",
        "xfs_buf_iowait",
        "blkdev_issue_flush",
        "blk_mq_get_tag",
        "rq_qos_wait",
        "bitmap_unplug",
        "dm_snapshot",
        "get_active_stripe",
        "md_barrier_request",
        "md_flush_request",
        "md_make_request",
        "raid1_write_request",
        "raise_barrier",
        "wait_barrier",
        "xfs_extent_busy_flush",
        "lock_page",
        "folio_wait_writeback",
    ),
    PAGE_CACHE: ("balance_dirty_pages", "blk_congestion_wait", "inode_wait", "bdi_writeback_task"),
    NETWORK: (
        "sk_wait_data",
        "sk_stream_wait_memory",
        "inet_wait_for_connect",
        "inet_csk_accept",
        "do_select",
        "unix_wait_for_peer",
        "skb_recv_datagram",
        "rpc_wait_bit_interruptible",
        "rpc_wait_bit_killable",
        "nfs_commit_set_lock",
    ),
    MEMORY: ("try_charge", "out_of_memory"),
    SLEEP: ("schedule_timeout", "msleep", "simpy"),
    IDLE: (
        "worker_thread",
        "io_sq_thread",
        "loop_thread",
        "pdflush",
        "kswapd",
        "md_thread",
        "ext4_lazyinit_thread",
        "kvm_vcpu_block",
    ),
    "CPU": (cp.USER, cp.SYSTEM, cp.INTERRUPTS),
    "run queue": (cp.RUN_QUEUE,),
    "child": ("do_wait",),
    "pipe": ("pipe_wait",),
}
# Channel -> what it is. A frame of a path that is not in it stands for itself.
WAITS: Final[Mapping[str, str]] = {
    channel: name for name, channels in _CHANNELS.items() for channel in channels
}

# A page under I/O: mm/filemap.c sync_page; without plugs of a device's own (7eaceaccab5f, 2.6.39)
# sleep_on_page; with one action for all (743162013d40, 3.17) bit_wait_io, which is __sched, so that
# its caller is named; folios (5.16).
_PAGE: Final = (
    ((2, 6, 0), "sync_page"),
    ((2, 6, 39), "sleep_on_page"),
    ((3, 17), "wait_on_page_bit"),
    ((5, 16), "folio_wait_bit_common"),
)
# The two ways to sleep in mm's older and newer code are that place, too.
_NAMES: Final[Mapping[str, tuple[tuple[KernelVersion, str], ...]]] = {
    "sync_page": _PAGE,
    "lock_page": _PAGE,
    "folio_wait_writeback": _PAGE,
    # A buffer under I/O, the same changes: fs/buffer.c.
    "sync_buffer": (
        ((2, 6, 0), "sync_buffer"),
        ((2, 6, 39), "sleep_on_buffer"),
        ((3, 17), "__wait_on_buffer"),
    ),
    # fs/inode.c inode_wait; fs/fs-writeback.c from 3.17 on, as above.
    "inode_wait": (((2, 6, 0), "inode_wait"), ((3, 17), "__inode_wait_for_writeback")),
    # fs/fs-writeback.c: threads of devices (2.6.32, renamed in 2.6.36), a work queue (3.10).
    "bdi_writeback_task": (
        ((2, 6, 0), "bdi_writeback_task"),
        ((2, 6, 36), "bdi_writeback_thread"),
        ((3, 10), "worker_thread"),
    ),
    # block/blk-core.c: one function since request lists of cgroups (a06e05e6afab, 3.6).
    "get_request_wait": (((2, 6, 0), "get_request_wait"), ((3, 6), "get_request")),
    # mm/backing-dev.c: 2.6.19 took it from the block layer (3fcfab16c5b8).
    "blk_congestion_wait": (((2, 6, 0), "blk_congestion_wait"), ((2, 6, 19), "congestion_wait")),
    # kernel/futex.c: 2.6.31 split it for requeueing (f801073f87aa); kernel/futex/waitwake.c 5.16.
    "futex_wait": (
        ((2, 6, 0), "futex_wait"),
        ((2, 6, 31), "futex_wait_queue_me"),
        ((5, 16), "futex_wait_queue"),
    ),
    # lib/rwsem.c, kernel/locking/rwsem.c: _failed up to 5.2, one slow path since (6cef7ff6e43c).
    "rwsem_down_read_slowpath": (
        ((2, 6, 0), "rwsem_down_read_failed"),
        ((5, 3), "rwsem_down_read_slowpath"),
    ),
    "rwsem_down_write_slowpath": (
        ((2, 6, 0), "rwsem_down_write_failed"),
        ((5, 3), "rwsem_down_write_slowpath"),
    ),
    # fs/pipe.c: two functions since pipes have two wait queues (0ddad21d3e99, 5.6).
    "pipe_wait": (((2, 6, 0), "pipe_wait"), ((5, 6), "pipe_read")),
    # net/core/datagram.c.
    "skb_recv_datagram": (
        ((2, 6, 0), "skb_recv_datagram"),
        ((4, 5), "__skb_wait_for_more_packets"),
    ),
    # jbd went with ext3 in 4.3 (c290ea01abb7): all journals are jbd2's.
    "log_wait_commit": (((2, 6, 0), "log_wait_commit"), ((4, 3), "jbd2_log_wait_commit")),
    "journal_commit_transaction": (
        ((2, 6, 0), "journal_commit_transaction"),
        ((4, 3), "jbd2_journal_commit_transaction"),
    ),
    "journal_stop": (((2, 6, 0), "journal_stop"), ((4, 3), "jbd2_journal_stop")),
    "kjournald": (((2, 6, 0), "kjournald"), ((4, 3), "kjournald2")),
}


def kernel_name(channel: str, version: KernelVersion) -> str:
    """Return what a release shows for a channel (/proc/PID/wchan)."""
    names = _NAMES.get(channel)
    return channel if names is None else in_force(names, version)
