"""Pipes: a buffer between tasks of one machine.

Models: messages in order, as many bytes as fit; a writer sleeps while there is no room, a reader
while there is nothing. What was written in one call is read in one call.
Linux counterpart: fs/pipe.c (pipe_read, pipe_write, pipe_wait), since 2.6.11: 16 pages.
Invariants: a message is read once, by one reader, in the order written; unread bytes are at most
 PIPE_BYTES, but for one message that is longer.
Left out: ends of their own (a pipe is one object, both its ends never closed), SIGPIPE, O_NONBLOCK.
"""

from typing import Any, Final

from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

PIPE_BYTES: Final = 65536  # include/linux/pipe_fs_i.h: PIPE_BUFFERS 16, of a page each


class Pipe:
    """struct pipe_inode_info"""

    def __init__(self) -> None:
        self.unread_bytes: int = 0
        self._messages: list[tuple[int, Any]] = []
        self._readers = WaitQueue()
        self._writers = WaitQueue()

    def write(self, task: Task, size: int, payload: Any) -> Blocking[None]:
        """Add `size` bytes that stand for `payload`, waiting (S) for room; woken by read()."""
        while self.unread_bytes and self.unread_bytes + size > PIPE_BYTES:
            yield from self._writers.sleep_on(task, TASK_INTERRUPTIBLE, "pipe_wait")
        self.unread_bytes += size
        self._messages.append((size, payload))
        self._readers.wake_one()

    def read(self, task: Task) -> Blocking[Any]:
        """Wait (S) for a message; return its payload. Woken by write()."""
        while not self._messages:
            yield from self._readers.sleep_on(task, TASK_INTERRUPTIBLE, "pipe_wait")
        size, payload = self._messages.pop(0)
        self.unread_bytes -= size
        self._writers.wake_all()
        return payload
