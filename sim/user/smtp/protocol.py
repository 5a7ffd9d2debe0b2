"""The SMTP that both sides of a connection speak, and the client's side for programs on the server.

Models: RFC 5321 without pipelining, as far as sizes and turns go: verbs, replies, their sizes on
the wire. `hand_over` is a client: a connection, a greeting, one transaction, the end.
Counterpart: sendmail's mailer [IPC], Postfix's smtp(8), Net::SMTP under amavisd.
Invariants: one reply to each command; the size of a command or reply is that of a typical line. A
 message is handed over only if every command was answered with 2xx or 3xx; the connection is closed
 then.
Left out: contents, extensions, multi-line replies beyond their size, several recipients, connection
 caches, several messages a connection, the next MX.
"""

from typing import Final

from sim.sched.task import Blocking
from sim.syscall import Sys

EHLO: Final = "EHLO"
MAIL: Final = "MAIL"
RCPT: Final = "RCPT"
DATA: Final = "DATA"
BODY: Final = "BODY"

# What a recipient or a text may be.
WANTED: Final = "wanted"
UNKNOWN_USER: Final = "unknown user"
VIRUS: Final = "virus"


class Command:
    """One line (or, for BODY, the whole text up to the final dot) that a client sends."""

    __slots__ = ("content", "message_bytes", "request_bytes", "verb")

    def __init__(
        self, verb: str, request_bytes: int, message_bytes: int = 0, content: str = WANTED
    ) -> None:
        self.verb = verb
        self.request_bytes = request_bytes
        self.message_bytes = message_bytes
        self.content = content  # what the server will find when it looks


class Reply:
    """A reply line: its code and its size on the wire."""

    __slots__ = ("code", "reply_bytes")

    def __init__(self, code: int, reply_bytes: int) -> None:
        self.code = code
        self.reply_bytes = reply_bytes

    def accepts(self) -> bool:
        """Whether the server did what was asked (2xx) or wants the rest (3xx)."""
        return self.code < 400


# Line lengths as in a usual session: host names of 20 characters, addresses of 25.
BANNER: Final = Reply(220, 90)
OK: Final = Reply(250, 45)
EHLO_OK: Final = Reply(250, 190)
START_INPUT: Final = Reply(354, 50)
QUEUED: Final = Reply(250, 65)
TRY_LATER: Final = Reply(421, 60)
NO_SUCH_USER: Final = Reply(550, 55)
NOT_WANTED: Final = Reply(550, 70)

HELLO: Final = Command(EHLO, 28)


def transaction(message_bytes: int, content: str = WANTED) -> tuple[Command, ...]:
    """Return the commands that submit one message of that size to one recipient."""
    return (
        Command(MAIL, 45, message_bytes),
        Command(RCPT, 38, content=content),
        Command(DATA, 6),
        Command(BODY, message_bytes, message_bytes, content),
    )


def hand_over(sys: Sys, host: str, port: int, message_bytes: int) -> Blocking[bool]:
    """Submit one message to a host; True if it took the message."""
    connection = yield from sys.connect(host, port)
    if connection is None:
        return False
    banner: Reply | None = yield from sys.recv(connection)
    if banner is None or not banner.accepts():
        return False
    for command in (HELLO, *transaction(message_bytes)):
        yield from sys.send(connection, command.request_bytes, command)
        reply: Reply | None = yield from sys.recv(connection)
        if reply is None or not reply.accepts():
            return False
    yield from sys.close_connection(connection)
    return True
