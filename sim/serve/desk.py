"""Where the page's runs are done: one process that works, one that waits, none besides.

Models: a desk with one chair: who sits down sends away who sat there.
Linux counterpart: none.
Invariants: at any time at most two processes, one of them waiting; who begins a study ends the one
 before, by SIGKILL, before anything else is done. A process works on one scenario and is not used
 again, so that nothing of one study is left in the next.
Left out: several studies at once: two pages take turns.

Hand estimate: a process that begins reads some 200 modules, which takes 1 s of CPU time. The server
that forks (multiprocessing's forkserver) has read them, and the process that waits is forked
already: a study begins with sending some 10 kB.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Final

from sim.scenario.spec import Scenario
from sim.serve.worker import Failure, Reading, work
from sim.study.laboratory import stripped
from sim.study.outcome import Replication
from sim.study.workers import clean_context

Message = Reading | Replication | Failure
_PRELOAD: Final = ["sim.serve.worker"]  # all that a worker imports


class Worker:
    """A process, the way to it, and what it has told."""

    def __init__(self) -> None:
        """Start a process that waits for a scenario."""
        context = clean_context()
        context.set_forkserver_preload(_PRELOAD)
        self._connection, there = context.Pipe()
        self._process = context.Process(target=work, args=(there,), daemon=True)
        self._process.start()
        there.close()
        self._told: asyncio.Queue[Message | None] = asyncio.Queue()
        self.was_sent_away = False

    def begin(self, scenario: Scenario) -> None:
        """Let the process simulate a scenario."""
        self._connection.send(stripped(scenario))
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand on what the process tells, until it has ended."""
        message: Message | None
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                message = None
                self._process.join()
            try:
                loop.call_soon_threadsafe(self._told.put_nowait, message)
            except RuntimeError:
                return  # the server has ended meanwhile
            if message is None:
                return

    async def messages(self) -> AsyncIterator[Message]:
        """Yield what the process tells, until it has ended."""
        while (message := await self._told.get()) is not None:
            yield message

    def kill(self) -> None:
        """End the process now, whatever it does."""
        self._process.kill()


class Desk:
    """Where one worker works and another waits; a context manager."""

    def __init__(self) -> None:
        self._waiting = Worker()
        self._working: Worker | None = None

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()
        self._waiting.kill()

    def clear(self) -> None:
        """End the study that is under way, if one is."""
        if self._working is not None:
            self._working.was_sent_away = True
            self._working.kill()
            self._working = None

    def begin(self, scenario: Scenario) -> Worker:
        """Begin a study of a scenario; the one before has ended."""
        self.clear()
        worker, self._working = self._waiting, self._waiting
        worker.begin(scenario)
        self._waiting = Worker()
        return worker
