"""A server that runs up to a moment, and the whole tree of that moment.

Models: what `tar` of /proc and /sys would hold, read in no time.
Linux counterpart: none.
Invariants: paths begin with "proc/" or "sys/". The run is the one that `iotwin run` does, in steps
 of its readings; it may be carried on beyond the end that the scenario sets, where the server still
 stands and its programs have ended.
Left out: going back.
"""

from collections.abc import Callable

from sim.fs.proc.root import PROCESSES
from sim.machine import Machine
from sim.scenario import Scenario
from sim.study.tree.accounts import Accounts
from sim.study.tree.proc_files import proc_files, process_files
from sim.study.tree.sys_files import place, sys_files

Told = Callable[[int, int], None]  # simulated ns done, and at most needed


class Server:
    """One run of a scenario, which stands still between two calls of run_to()."""

    def __init__(self, scenario: Scenario) -> None:
        """Boot it, with accounts of all that its tasks do."""
        self.machine = Machine(scenario, scenario.seed)
        self._interval_ns = scenario.measure.interval_ns
        self._accounts = Accounts()
        self._accounts.attach(self.machine)
        proc = self.machine.proc
        proc.snapshot_also((*proc.files(), PROCESSES))

    def now_ns(self) -> int:
        """Return simulated time since boot."""
        return self.machine.now()

    def has_ended(self) -> bool:
        """Return whether what the scenario's [run] asks for is over."""
        return self.machine.now() >= self.machine.end_ns

    def run_to(self, at_ns: int, told: Told | None = None, *, beyond: bool = False) -> None:
        """Go on to a moment, or to the first reading after the end unless `beyond` it."""
        machine = self.machine
        begin_ns = machine.now()
        while machine.now() < at_ns and (beyond or not self.has_ended()):
            machine.run_until(min(machine.now() + self._interval_ns, at_ns))
            if told is not None:
                told(machine.now() - begin_ns, at_ns - begin_ns)

    def tree(self) -> dict[str, str]:
        """Return the texts by path, "proc/stat" and all others."""
        machine = self.machine
        snapshot = machine.proc.snapshot()
        ours = {name for name in snapshot if _is_proc(name, machine.proc.files())}
        proc = {name: snapshot[name] for name in ours}
        proc |= process_files(machine, self._accounts, snapshot)
        proc |= proc_files(machine, self._accounts, snapshot["stat"])
        sys = sys_files(machine, snapshot["diskstats"])
        sys |= {place(name): text for name, text in snapshot.items() if name not in ours}
        tree = {f"proc/{name}": text for name, text in proc.items()}
        tree |= {f"sys/{name}": text for name, text in sys.items()}
        return dict(sorted(tree.items()))


def _is_proc(name: str, files: tuple[str, ...]) -> bool:
    """Return whether a name of a snapshot is a file of /proc, or of a process."""
    return name in files or name.partition("/")[0].isdecimal()
