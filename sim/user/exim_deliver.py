"""Exim's delivery: a process for each message, another one for the transport.

Theory of operation (deliver.c, transport.c, transports/appendfile.c of Exim 4.63)
 - The process execs Exim anew (exim -Mc ID), which reads its configuration and the message's spool
   files, asks the retry data base, and forks a transport process.
 - That pipes the message through the filter, if there is one, and appends it to the mailbox: a lock
   file made with O_EXCL (tried again each lock_interval), the text, fsync, the lock file's removal;
   or for a maildir a file in tmp, fsync, and a rename into new.
 - The delivery process notes the recipient in the journal and fsyncs that; then it removes the
   message's files. What could not be delivered gets its header written anew, and waits for a
   queue run.
Linux counterpart: none; deliver.c of Exim.
Invariants: a message is removed only when its mailbox has it durably; only one process at a time
 delivers it; a mailbox's lock file has one owner.
Left out: several recipients, remote delivery, wait- data bases, hard links for lock files, return
 of undeliverable mail.

By hand, ext3: mailbox and journal make two commits, reception three.
"""

from sim.sched.task import Blocking
from sim.syscall import O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY, Sys
from sim.user.dspam import dspam
from sim.user.exim_params import DSPAM, MBOX, EximParams
from sim.user.exim_spool import JOURNAL_LINE, STDIO_CHUNK, Message, Spool

RETRY_RECORD_BYTES = 4096  # a page of the hints data base


class Delivery:
    """What delivery processes share: parameters and spool."""

    def __init__(self, params: EximParams, spool: Spool) -> None:
        self.params = params
        self.spool = spool
        self.results: dict[int, bool] = {}  # what transport processes told their parents
        self.mailbox_bytes: dict[str, int] = {}  # of those that something was appended to,
        self.ends: dict[int, int] = {}  # and where in them a message ends

    def files(self) -> dict[str, int]:
        """Return mailboxes and hints that are there before the start."""
        params = self.params
        found = {f"{params.spool_directory}/db/retry": RETRY_RECORD_BYTES}
        if params.mailbox_format == MBOX:
            for number in range(params.mailboxes):
                found[self.mailbox_path(number)] = params.mailbox_bytes
        return found

    def mailbox_path(self, number: int) -> str:
        """Return the file of a user, or the directory."""
        return f"{self.params.mail_directory}/user{number % self.params.mailboxes:03d}"

    def directories(self) -> tuple[str, ...]:
        """Return the directories that are there before the start."""
        params = self.params
        if params.mailbox_format == MBOX:
            return (params.mail_directory,)
        return tuple(
            f"{self.mailbox_path(number)}/{name}"
            for number in range(params.mailboxes)
            for name in ("tmp", "new")
        )

    def deliver(self, sys: Sys, message: Message) -> Blocking[None]:
        """Be the delivery process of a message (deliver_message)."""
        spool, params = self.spool, self.params
        if message.busy or message.number not in spool.messages:
            return
        message.busy = True
        sys.probe("deliver__start")
        sys.trace_marker("delivery_started", message.size)
        work_ns = params.exec_ns + params.delivery_user_ns + params.byte_user_ns * message.size
        sys.compute(round(params.cpu_scale * work_ns))
        yield from spool.read(sys, message)
        yield from self._ask_retry(sys)
        pid = yield from sys.fork("exim4", self._transport, message)
        yield from sys.waitpid(pid)
        if self.results.pop(message.number):
            yield from spool.journal(sys, message)
            self._promise_mailbox(sys, message)
            yield from spool.log_message(sys, message)
            yield from spool.remove(sys, message)
            sys.trace_marker("message_delivered", message.size)
            sys.trace_marker("delivery_ns", sys.clock_ns() - message.accepted_ns)
        else:
            yield from spool.log_message(sys, message)
            yield from self._note_retry(sys)
            yield from spool.write_header(sys, message)
            sys.trace_marker("message_deferred", message.size)
        message.busy = False
        sys.probe("deliver__done")

    def _promise_mailbox(self, sys: Sys, message: Message) -> None:
        """From now on the mailbox must survive a power cut; the journal file says so."""
        path = self.mailbox_path(message.mailbox)
        size = self.ends.pop(message.number, message.size)
        if self.params.mailbox_format != MBOX:
            path = f"{path}/new/{message.ident}"
        journal = self.spool.path(message, "J")
        sys.probe("promise__moved", message.ident, journal, JOURNAL_LINE, path, size)

    def _ask_retry(self, sys: Sys) -> Blocking[None]:
        """Look up when this address may be tried (dbfn_read of db/retry)."""
        fd = yield from sys.open(f"{self.params.spool_directory}/db/retry", O_RDONLY)
        yield from sys.pread(fd, RETRY_RECORD_BYTES, 0)
        yield from sys.close(fd)

    def _note_retry(self, sys: Sys) -> Blocking[None]:
        """Note that it failed, and when it may be tried again (retry_update)."""
        fd = yield from sys.open(f"{self.params.spool_directory}/db/retry", O_WRONLY)
        yield from sys.pwrite(fd, RETRY_RECORD_BYTES, 0)
        yield from sys.close(fd)

    # -- The transport process.

    def _transport(self, sys: Sys, message: Message) -> Blocking[None]:
        """Filter the message and put it into the mailbox; leave the result for the parent."""
        passed = True
        if self.params.filter == DSPAM:
            pid = yield from sys.fork("dspam", self._filter, message)
            yield from sys.waitpid(pid)
            passed = self.results.pop(message.number)
        if passed:
            append = self._append if self.params.mailbox_format == MBOX else self._maildir
            passed = yield from append(sys, message)
        self.results[message.number] = passed

    def _filter(self, sys: Sys, message: Message) -> Blocking[None]:
        passed = yield from dspam(sys, self.params, message.number, self.params.cpu_scale)
        self.results[message.number] = passed

    def _append(self, sys: Sys, message: Message) -> Blocking[bool]:
        """Append to the mailbox under its lock file; False if that was not to be had."""
        mailbox = self.mailbox_path(message.mailbox)
        if not (yield from self._lock(sys, mailbox)):
            return False
        fd = yield from sys.open(mailbox, O_WRONLY | O_CREAT | O_APPEND)
        yield from sys.write(fd, message.size, chunk=STDIO_CHUNK)
        before = self.mailbox_bytes.get(mailbox, self.params.mailbox_bytes)
        self.mailbox_bytes[mailbox] = self.ends[message.number] = before + message.size
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        yield from sys.unlink(f"{mailbox}.lock")
        return True

    def _lock(self, sys: Sys, mailbox: str) -> Blocking[bool]:
        """Make the lock file, trying as often as lock_retries says."""
        for attempt in range(self.params.lock_retries):
            if attempt:
                yield from sys.sleep(self.params.lock_interval_ns)
            try:
                fd = yield from sys.open(f"{mailbox}.lock", O_WRONLY | O_CREAT | O_EXCL)
            except FileExistsError:
                continue  # Another delivery has the mailbox: that is what the file is for.
            yield from sys.close(fd)
            return True
        return False

    def _maildir(self, sys: Sys, message: Message) -> Blocking[bool]:
        """Write a file of its own, and give it its name when it is durable."""
        top = self.mailbox_path(message.mailbox)
        fd = yield from sys.open(f"{top}/tmp/{message.ident}", O_WRONLY | O_CREAT)
        yield from sys.write(fd, message.size, chunk=STDIO_CHUNK)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        yield from sys.rename(f"{top}/tmp/{message.ident}", f"{top}/new/{message.ident}")
        return True
