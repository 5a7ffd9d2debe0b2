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
from sim.tools.run import WHOLE

Told = Callable[[int, int], None]  # simulated ns done, and at most needed


def show_whole(machine: Machine) -> None:
    """Let the readings of a booted machine's /proc have WHOLE, for tools that want it.

    The accounts begin here: call it before the machine runs.
    """
    accounts = Accounts()
    accounts.attach(machine)
    proc = machine.proc

    def whole() -> dict[str, str]:
        rendered = dict(proc.tree(PROCESSES))
        files = proc_files(machine, accounts, proc.read("stat"))
        return files | rendered | process_files(machine, accounts, rendered)

    proc.create_tree(whole, WHOLE)


class Server:
    """One run of a scenario, which stands still between two calls of run_to()."""

    def __init__(self, scenario: Scenario) -> None:
        """Boot it, with accounts of all that its tasks do."""
        self.machine = Machine(scenario, scenario.seed)
        self._interval_ns = scenario.measure.interval_ns
        show_whole(self.machine)
        proc = self.machine.proc
        proc.snapshot_also(proc.files())

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
        proc = self.machine.proc
        snapshot = proc.snapshot()
        ours = {name: snapshot[name] for name in proc.files()} | dict(proc.tree(WHOLE))
        sys = sys_files(self.machine, snapshot["diskstats"])
        sys |= {place(name): text for name, text in snapshot.items() if name not in ours}
        tree = {f"proc/{name}": text for name, text in ours.items()}
        tree |= {f"sys/{name}": text for name, text in sys.items()}
        return dict(sorted(tree.items()))
