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


@register("program", "failing_sendmail", params=SendmailParams, doc="sendmail whose mailer fails")
class FailingSendmail(Sendmail):
    """The daemon."""

    def run_mailer(self, sys: Sys, message_bytes: int) -> Blocking[bool]:
        """Run the mailer in vain."""
        yield from super().run_mailer(sys, message_bytes)
        return False
