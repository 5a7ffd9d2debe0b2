"""Exim's spool: which files a message has, and when they are durable.

Theory of operation (spool_out.c, receive.c, deliver.c, log.c of Exim 4.63)
 - input/ID-D holds the text, input/ID-H envelope and headers, input/ID-J, while it is being
   delivered, the recipients that have it already; msglog/ID what happened to it.
 - A data file is written and fsynced. A header file is written under another name, fsynced,
   renamed; then the directory is fsynced (NEED_SYNC_DIRECTORY). Three times before the 250.
 - Log lines are one write() with O_APPEND, never fsynced.
Linux counterpart: none; spool_out.c of Exim.
Invariants: who finds a header file finds it whole, and its data file; a message has both or none,
 but for the moments of its reception and its end.
Left out: split_spool_directory, -K files, locks on data files (`Message.busy` is that lock).
"""

from typing import Final

from sim.sched.task import Blocking
from sim.syscall import O_APPEND, O_CREAT, O_RDONLY, O_WRONLY, Sys
from sim.user.exim_params import EximParams

STDIO_CHUNK: Final = 4096
LOG_LINE: Final = 160
JOURNAL_LINE: Final = 40


class Message:
    """What a message's spool files say."""

    __slots__ = ("accepted_ns", "busy", "ident", "mailbox", "number", "size")

    def __init__(self, number: int, size: int, mailbox: int) -> None:
        self.number = number
        self.ident = f"{number:06d}"
        self.size = size
        self.mailbox = mailbox
        self.accepted_ns = 0
        self.busy: bool = False  # somebody has its data file locked: it is being delivered


class Spool:
    """The spool directory, as the processes of one Exim write it."""

    def __init__(self, params: EximParams) -> None:
        self.params = params
        self.messages: dict[int, Message] = {}  # those with a header file, by number

    def directories(self) -> tuple[str, ...]:
        """Return the directories that the package made."""
        top = self.params.spool_directory
        return tuple(f"{top}/{name}" for name in ("input", "msglog", "scan", "db"))

    def path(self, message: Message, kind: str) -> str:
        """Return the path of a message's file: kind D, H, J."""
        return f"{self.params.spool_directory}/input/{message.ident}-{kind}"

    def log_path(self, message: Message) -> str:
        """Return the path of its own log."""
        return f"{self.params.spool_directory}/msglog/{message.ident}"

    def write_data(self, sys: Sys, message: Message) -> Blocking[None]:
        """Write the text and make it durable."""
        fd = yield from sys.open(self.path(message, "D"), O_WRONLY | O_CREAT)
        yield from sys.write(fd, message.size, chunk=STDIO_CHUNK)
        yield from sys.fsync(fd)
        yield from sys.close(fd)

    def write_header(self, sys: Sys, message: Message) -> Blocking[None]:
        """Write envelope and headers, durably, in one step (spool_write_header)."""
        temporary = f"{self.params.spool_directory}/input/hdr.{sys.getpid()}"
        fd = yield from sys.open(temporary, O_WRONLY | O_CREAT)
        yield from sys.write(fd, self.params.header_bytes)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        yield from sys.rename(temporary, self.path(message, "H"))
        self.messages[message.number] = message
        if self.params.sync_directory:
            fd = yield from sys.open(f"{self.params.spool_directory}/input", O_RDONLY)
            yield from sys.fsync(fd)
            yield from sys.close(fd)

    def read(self, sys: Sys, message: Message) -> Blocking[None]:
        """Read both files, as a delivery process does."""
        for kind, size in (("D", message.size), ("H", self.params.header_bytes)):
            fd = yield from sys.open(self.path(message, kind), O_RDONLY)
            yield from sys.read(fd, size, chunk=STDIO_CHUNK)
            yield from sys.close(fd)

    def journal(self, sys: Sys, message: Message) -> Blocking[None]:
        """Note durably that its recipient has it."""
        fd = yield from sys.open(self.path(message, "J"), O_WRONLY | O_CREAT | O_APPEND)
        yield from sys.write(fd, JOURNAL_LINE)
        yield from sys.fsync(fd)
        yield from sys.close(fd)

    def drop_data(self, sys: Sys, message: Message) -> Blocking[None]:
        """Remove the text of a message that is not wanted."""
        yield from sys.unlink(self.path(message, "D"))

    def remove(self, sys: Sys, message: Message) -> Blocking[None]:
        """Remove a message that is done with (deliver_message's end): log, data, header, journal.

        The header goes after the data: without it nobody looks for the message any more.
        """
        if self.params.message_logs:
            yield from sys.unlink(self.log_path(message))
        del self.messages[message.number]
        for kind in ("D", "H", "J"):
            yield from sys.unlink(self.path(message, kind))

    def log(self, sys: Sys, path: str) -> Blocking[None]:
        """Append a line to a log."""
        fd = yield from sys.open(path, O_WRONLY | O_CREAT | O_APPEND)
        yield from sys.write(fd, LOG_LINE)
        yield from sys.close(fd)

    def log_message(self, sys: Sys, message: Message) -> Blocking[None]:
        """Append a line to the main log, and to the message's own."""
        yield from self.log(sys, self.params.log_file)
        if self.params.message_logs:
            yield from self.log(sys, self.log_path(message))
