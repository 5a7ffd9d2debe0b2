"""A sendmail whose local mailer fails for now, each time (EX_TEMPFAIL): what conditions.py claims.

Models: the storm's sendmail; its local mailer takes its time and ends with 75, so that each message
stays in the queue.
Linux counterpart: none; sysexits.h.
Invariants: those of sendmail; it delivers nothing.
Left out: nothing.
"""

from scenarios.sendmail.program import Sendmail, SendmailParams
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.program import ServerProgram


@register("program", "failing_sendmail", params=SendmailParams, doc="sendmail whose mailer fails")
class FailingSendmail(ServerProgram):
    """The storm's daemon, with another mailer: a compiled class takes no interpreted heirs."""

    figures = Sendmail.figures
    marks = Sendmail.marks

    def __init__(self, params: SendmailParams) -> None:
        self.daemon = Sendmail(params)
        self._run_mailer = self.daemon.run_mailer
        self.daemon.run_mailer = self._fail  # type: ignore[method-assign]

    def directories(self) -> tuple[str, ...]:
        """Return those of sendmail."""
        return self.daemon.directories()

    def main(self, sys: Sys) -> Blocking[None]:
        """Be sendmail."""
        self.daemon.name = self.name
        return self.daemon.main(sys)

    def _fail(self, sys: Sys, message_bytes: int) -> Blocking[bool]:
        """Run the mailer in vain."""
        yield from self._run_mailer(sys, message_bytes)
        return False
