"""The client's side of SMTP for programs on the server: hand one message over.

Models: a connection, a greeting, one transaction without pipelining, the end.
Counterpart: sendmail's mailer [IPC], Postfix's smtp(8), Net::SMTP under amavisd.
Invariants: True only if every command was answered with 2xx or 3xx; the connection is closed then.
Left out: connection caches, several messages a connection, the next MX.
"""

from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.smtp import HELLO, Reply, transaction


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
