"""Words that people bring along, and what of the twin is near to them in meaning.

Models: a colleague who knows both vocabularies.
Linux counterpart: none.
Invariants: a word on the left is no name of the twin itself. What stands on the right is one, or a
 key; tests/test_meanings.py looks. The nearest in meaning comes first, and is offered before what
 is spelt alike: postgres is not postfix.
Left out: other languages.
"""

from collections.abc import Mapping
from typing import Final

_DATABASES: Final = ("transactions", "mysqld", "committer")
_SERVICES: Final = ("web_service", "transactions")
_CLOUD: Final = ("ebs-gp3", "multiserver")

MEANINGS: Final[Mapping[str, tuple[str, ...]]] = {
    # programs
    **dict.fromkeys(("postgres", "postgresql", "database", "oracle", "mongodb"), _DATABASES),
    **dict.fromkeys(("mysql", "mariadb"), ("mysqld", "transactions")),
    "pgbench": ("transactions", "pg_test_fsync"),
    **dict.fromkeys(("redis", "memcached", "cache"), ("transactions", "warm")),
    **dict.fromkeys(("etcd", "wal", "journal", "kafka"), ("committer", "transactions")),
    **dict.fromkeys(("innodb", "myisam"), ("mysqld",)),
    **dict.fromkeys(("elasticsearch", "cassandra", "mssql"), _DATABASES),
    **dict.fromkeys(("nginx", "apache", "httpd", "php", "webserver"), _SERVICES),
    **dict.fromkeys(("wrk", "ab", "browser"), ("web_clients",)),
    **dict.fromkeys(("mta", "mail", "smtp"), ("sendmail", "postfix", "exim")),
    **dict.fromkeys(("cp", "tar", "rsync"), ("backup", "dd")),
    **dict.fromkeys(("stress", "burn"), ("cpuburn", "memload")),
    **dict.fromkeys(("iperf", "iperf3"), ("iperf_client",)),
    # devices and what lies on them
    **dict.fromkeys(("gp2",), ("ebs-gp2",)),
    **dict.fromkeys(("gp3", "ebs", "pd-ssd", "premium-ssd"), _CLOUD),
    **dict.fromkeys(("io1", "io2"), ("ebs-io1",)),
    **dict.fromkeys(("sata", "sas", "spindle", "rotational"), ("hdd",)),
    "flash": ("ssd", "nvme"),
    **dict.fromkeys(("btrfs", "zfs", "jfs", "reiserfs", "ext2"), ("ext4", "xfs")),
    **dict.fromkeys(("ramfs", "shm"), ("tmpfs",)),
    **dict.fromkeys(("lvm", "dm", "snapshot"), ("volume",)),
    **dict.fromkeys(("raid", "mdadm", "md"), ("array", "raid1", "raid5")),
    **dict.fromkeys(("docker", "container", "kubernetes", "pod", "systemd"), ("cgroup",)),
    **dict.fromkeys(("hypervisor", "kvm", "vmware"), ("guest", "virtio-blk")),
    "sysctl": ("vm",),
    "noatime": ("atime",),
    "virtio": ("virtio-blk",),
    "xvd": ("xen-blkfront",),
    # keys
    **dict.fromkeys(("iops", "tps", "qps", "rps"), ("rate",)),
    **dict.fromkeys(("mem", "dram"), ("memory",)),
    **dict.fromkeys(("cores", "vcpus", "processors"), ("cpus",)),
    **dict.fromkeys(("threads", "connections", "workers", "clients"), ("concurrency", "count")),
    **dict.fromkeys(("bandwidth", "mbps"), ("throughput", "rate")),
    **dict.fromkeys(("elevator", "ioscheduler", "iosched"), ("scheduler",)),
    **dict.fromkeys(("cached", "warmup", "prewarm"), ("warm", "warm_up")),
}


def meant_by(word: str) -> tuple[str, ...]:
    """Return what is near to a word in meaning, nearest first; nothing for one nobody knows."""
    return MEANINGS.get(word.lower(), ())
