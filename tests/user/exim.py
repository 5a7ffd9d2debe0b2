"""A small Exim for tests, alone or with the mail of a day, a scanner, a filter, a data base."""

from sim.machine import Machine
from tests.user.mail import process
from tests.user.servers import boot, scenario

SPOOL = "/var/spool/exim4"
USES = ("exim_io/exim.py", "exim_io/smtp_day.py")
FULL = {"scanner": "clamd", "filter": "dspam", "vocabulary": 20_000, "tokens": 40}
LITTLE_CLAMD = {"load_user": "0.1 s", "unpacked": "0 B", "engine": "1 MiB"}


def processes(client: str, **exim: object) -> str:
    """Return the processes of a server: clamd and mysqld where Exim's parameters ask for them."""
    texts = [process("exim", "exim", **exim), client]
    if exim.get("scanner") == "clamd":
        texts.append(process("clamd", "clamd", **LITTLE_CLAMD))
    if exim.get("filter") == "dspam":
        texts.append(process("mysqld", "mysqld"))
    return "\n".join(texts)


def blast(messages: int = 1, concurrency: int = 1, **params: object) -> str:
    """Return a client with a number of messages; more: smtp_sender's parameters."""
    given: dict[str, object] = {
        "via": "lan",
        "target": "exim",
        "messages": messages,
        "concurrency": concurrency,
        "marks_storm": True,
        "retry": "2 s",
        "message_size": "6 KiB",
    }
    return process("blast", "smtp_sender", **(given | params))


def day(**params: object) -> str:
    """Return a client with the mail of a day, a lot of it."""
    given: dict[str, object] = {
        "via": "lan",
        "target": "exim",
        "accepted_per_day": 40_000,
        "rejected_per_day": 80_000,
        "profile": "flat",
        "warm_up": "1 s",
        "duration": "20 s",
        "retry": "2 s",
        "virus_share": 0.3,
    }
    return process("day", "smtp_day", **(given | params))


def exim_server(
    client: str, *, machine: dict[str, object] | None = None, **exim: object
) -> Machine:
    """Boot the server; more: exim's parameters."""
    return boot(processes(client, **exim), uses=USES, **(machine or {}))  # type: ignore[arg-type]


def exim_scenario(client: str, *, given: dict[str, object] | None = None, **exim: object):  # type: ignore[no-untyped-def]
    """Return the server as a scenario."""
    return scenario(processes(client, **exim), uses=USES, **(given or {}))  # type: ignore[arg-type]


def names_in(machine: Machine, directory: str) -> list[str]:
    """Return the names in a directory."""
    entries = machine.vfs.prepare_directory(directory).entries
    assert entries is not None
    return sorted(entries)


def spool_files(machine: Machine) -> list[str]:
    """Return all names in the spool that are there for a message."""
    return [
        f"{part}/{name}"
        for part in ("input", "msglog", "scan")
        for name in names_in(machine, f"{SPOOL}/{part}")
    ]


def mail_bytes(machine: Machine) -> int:
    """Return the size of all mailboxes together."""
    entries = machine.vfs.prepare_directory("/var/mail").entries
    assert entries is not None
    return sum(inode.size for inode in entries.values())
