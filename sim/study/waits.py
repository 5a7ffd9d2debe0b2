"""What a task waits for, by where it sleeps.

Models: the reader of a list of wait channels who knows the kernel's sources: which of them are a
 journal's, which a disk's, and which are those of a thread that has nothing to do.
Linux counterpart: /proc/PID/wchan and the functions that it names; jbd and jbd2, xlog, block, mm,
 net, md.
Invariants: every channel that a part of the twin sleeps in has a row (tests/study/test_waits.py
 walks the sources for their names).
Left out: nothing that the twin has.
"""

from collections.abc import Mapping
from typing import Final

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
