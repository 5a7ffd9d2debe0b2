"""sendmail's options, and what its code costs on the machine of the scenario.

Sources: sendmail.cf and conf.c of sendmail 8.13; CPU times are the scenario's, or assumed.
"""

from dataclasses import dataclass

from sim.param import param


@dataclass(frozen=True, kw_only=True)
class SendmailParams:
    """Options of sendmail.cf, and what its code costs on the machine of the scenario."""

    queue_directory: str = param(
        "/var/spool/mqueue", dim="text", source="sendmail.cf: QueueDirectory", doc="the queue"
    )
    super_safe: bool = param(
        True,
        dim="bool",
        source="sendmail.cf: SuperSafe=True",
        doc="make df and qf durable before answering 250",
    )
    requires_dir_fsync: bool = param(
        True,
        dim="bool",
        source="include/sm/conf.h 8.13: REQUIRES_DIR_FSYNC 1 on Linux",
        doc="fsync the queue directory after each unlink",
    )
    refuse_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="conf.c 8.13: RefuseLA = 12 x CPUs",
        doc="1-minute load average at which the port is closed; 0 = 12 for each CPU",
    )
    queue_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="conf.c 8.13: QueueLA = 8 x CPUs",
        doc="1-minute load average from which messages may only be queued; 0 = 8 for each CPU",
    )
    delay_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="conf.c: DelayLA = 0",
        doc="1-minute load from which each SMTP command and connection waits 1 s; 0 = never",
    )
    max_daemon_children: int = param(
        0,
        dim="count",
        minimum=0,
        source="conf.c: MaxDaemonChildren unset",
        doc="children from which the port is closed; 0 = no limit",
    )
    backlog: int = param(
        10, dim="count", minimum=1, source="daemon.c: LISTENQUEUE 10", doc="listen() backlog"
    )
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")
    relay_host: str = param(
        "relay",
        dim="text",
        source="sendmail.cf: DS (smart host)",
        doc="process that takes mail",
        names_host=True,
    )
    relay_port: int = param(
        25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="port of the next host"
    )
    queue_interval_ns: int = param(
        "30 min",
        dim="time_ns",
        minimum=0,
        source="sendmail -bd -q30m, as distributions of the time start it",
        doc="time between two runs of the queue (-q); 0 = none",
    )
    mailer: str = param(
        "relay",
        dim="text",
        choices=("relay", "local"),
        source="sendmail.cf: the mailer that the rule sets choose for the recipient",
        doc="where messages go: to the next host over SMTP, or to a program here (Mlocal)",
    )
    mailer_exec_ns: int = param(
        "1 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: exec of a small dynamically linked program",
        doc="system CPU of a local mailer's exec, page faults and end",
    )
    mailer_status: str = param(
        "ok",
        dim="text",
        choices=("ok", "tempfail"),
        source="sysexits.h: EX_OK, EX_TEMPFAIL",
        doc="exit status of a local mailer; after tempfail a message stays in the queue",
    )
    qf_bytes: int = param(
        1400,
        dim="bytes",
        minimum=1,
        source="assumed: headers and one recipient",
        doc="size of a control file",
    )
    session_user_ns: int = param(
        "1 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: start of a forked child",
        doc="user CPU of a child before its first message",
    )
    message_user_ns: int = param(
        "3 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: rule sets, headers, envelope",
        doc="user CPU of receiving a message, without its bytes",
    )
    delivery_user_ns: int = param(
        "4 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: rule sets, mailer, connection cache",
        doc="user CPU of delivering a message, without its bytes",
    )
    byte_user_ns: float = param(
        15.0,
        dim="number",
        minimum=0,
        source="assumed: 45 cycles a character, collect, putbody",
        doc="user CPU for each byte of a message, once in and once out, in ns",
    )
    message_system_ns: int = param(
        "0 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: none beyond the system calls modelled",
        doc="system CPU of a message beyond the calls modelled: faults after fork, look-ups",
    )
