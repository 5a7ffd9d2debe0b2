"""Options of exim.conf, and what Exim's code costs on the machine of the scenario.

Models: what decides when Exim forks, what it makes durable, and when it leaves a message alone.
Counterpart: Exim 4.63 specification, chapter 14 (main configuration) and 26 (appendfile).
Invariants: the defaults are Exim's own; 0 where the specification says "unset".
Left out: options of what is not modelled here: remote delivery, TLS, several recipients.
"""

from dataclasses import dataclass
from typing import Final

from sim.param import param
from sim.user.clamd import CLAMD_PORT
from sim.user.dspam import DspamParams

NOTHING: Final = "none"
CLAMD: Final = "clamd"
DSPAM: Final = "dspam"
MBOX: Final = "mbox"
MAILDIR: Final = "maildir"


@dataclass(frozen=True, kw_only=True)
class EximParams(DspamParams):
    """exim.conf; with dspam.conf, since dspam is a program that Exim runs."""

    spool_directory: str = param(
        "/var/spool/exim4", dim="text", source="Debian: spool_directory", doc="the queue"
    )
    log_file: str = param(
        "/var/log/exim4/mainlog", dim="text", source="Debian: log_file_path", doc="the log"
    )
    mail_directory: str = param(
        "/var/mail", dim="text", source="Debian: appendfile's file or directory",
        doc="where mailboxes are",
    )  # fmt: skip
    mailbox_format: str = param(
        MBOX, dim="text", choices=(MBOX, MAILDIR),
        source="Exim 4.63 specification 26: a file unless maildir_format is set",
        doc="a file for each user, or a file for each message",
    )  # fmt: skip
    mailboxes: int = param(
        50, dim="count", minimum=1, source="assumed: users of a small company",
        doc="users that have mail",
    )  # fmt: skip
    mailbox_bytes: int = param(
        "4 MiB", dim="bytes", minimum=0, source="assumed: some hundred messages",
        doc="size of a mailbox at the start",
    )  # fmt: skip
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")
    smtp_connect_backlog: int = param(
        20, dim="count", minimum=1, source="Exim 4.63 specification 14", doc="listen() backlog"
    )
    smtp_accept_max: int = param(
        20, dim="count", minimum=0, source="Exim 4.63 specification 14",
        doc="sessions from which clients are sent away with 421; 0: no limit",
    )  # fmt: skip
    smtp_accept_queue_per_connection: int = param(
        10, dim="count", minimum=0, source="Exim 4.63 specification 14",
        doc="messages of a connection that are delivered at once; 0: all",
    )  # fmt: skip
    smtp_load_reserve: float = param(
        0.0, dim="number", minimum=0, source="Exim 4.63 specification 14: unset",
        doc="1-minute load average above which clients are sent away with 421; 0: never",
    )  # fmt: skip
    queue_only_load: float = param(
        0.0, dim="number", minimum=0, source="Exim 4.63 specification 14: unset",
        doc="1-minute load average above which messages are only queued; 0: never",
    )  # fmt: skip
    deliver_queue_load_max: float = param(
        0.0, dim="number", minimum=0, source="Exim 4.63 specification 14: unset",
        doc="1-minute load average above which a queue run gives up; 0: never",
    )  # fmt: skip
    queue_interval_ns: int = param(
        "30 min", dim="time_ns", minimum=1, source="Debian /etc/default/exim4: QUEUEINTERVAL=30m",
        doc="from one queue run to the next (-q)",
    )  # fmt: skip
    queue_run_max: int = param(
        5, dim="count", minimum=1, source="Exim 4.63 specification 14", doc="queue runs at a time"
    )
    sync_directory: bool = param(
        True, dim="bool", source="OS/os.h-Linux 4.63: NEED_SYNC_DIRECTORY",
        doc="fsync the directory after a header file got its name",
    )  # fmt: skip
    message_logs: bool = param(
        True, dim="bool", source="Exim 4.63 specification 14", doc="keep a log of each message"
    )
    header_bytes: int = param(
        1400, dim="bytes", minimum=1, source="assumed: envelope, headers and their types",
        doc="size of a header file",
    )  # fmt: skip
    lock_interval_ns: int = param(
        "3 s", dim="time_ns", minimum=1, source="Exim 4.63 specification 26: lock_interval",
        doc="between two attempts to lock a mailbox",
    )  # fmt: skip
    lock_retries: int = param(
        10, dim="count", minimum=1, source="Exim 4.63 specification 26: lock_retries",
        doc="attempts to lock a mailbox",
    )  # fmt: skip
    scanner: str = param(
        NOTHING, dim="text", choices=(NOTHING, CLAMD),
        source="Exim 4.63 specification 14: av_scanner", doc="virus scanner, asked at DATA",
    )  # fmt: skip
    clamd_port: int = param(
        CLAMD_PORT, dim="count", minimum=1, maximum=65535, source="exim.conf: av_scanner",
        doc="port of clamd",
    )  # fmt: skip
    filter: str = param(
        NOTHING, dim="text", choices=(NOTHING, DSPAM),
        source="exim.conf: the transport's filter", doc="what a message goes through on delivery",
    )  # fmt: skip
    session_user_ns: int = param(
        "2 ms", dim="time_ns", minimum=0,
        source="assumed: a forked child, access control lists, look-ups", doc="CPU of a session",
    )  # fmt: skip
    message_user_ns: int = param(
        "4 ms", dim="time_ns", minimum=0, source="assumed: headers, access control lists",
        doc="user CPU of receiving a message, without its bytes",
    )  # fmt: skip
    delivery_user_ns: int = param(
        "6 ms", dim="time_ns", minimum=0, source="assumed: routers and transports",
        doc="user CPU of delivering a message, without its bytes",
    )  # fmt: skip
    exec_ns: int = param(
        "4 ms", dim="time_ns", minimum=0,
        source="assumed: exec of Exim, which reads its configuration again",
        doc="CPU of a delivery process or queue runner before it begins",
    )  # fmt: skip
    byte_user_ns: float = param(
        15.0, dim="number", minimum=0, source="assumed: 45 cycles a character",
        doc="user CPU for each byte of a message, once in and once out, in ns",
    )  # fmt: skip
    cpu_scale: float = param(
        1.0, dim="number", minimum=0, source="scenario",
        doc="so many times all CPU times of Exim and of dspam: other CPUs",
    )  # fmt: skip
