"""What every program is: parameters, what must be there before it starts, and its main function.

Models: an installed package and its entry point.
Linux counterpart: none; a distribution's package scripts make the directories.
Invariants: a program on the server reads nothing but its system calls.
Left out: exec: a program's pages are in memory when it starts.

A program registers itself:

    @register("program", "hello", params=HelloParams, doc="what it does, in a line")
    class Hello(ServerProgram):
        def main(self, sys: Sys) -> Blocking[None]:
            ...

`marks: ClassVar[tuple[str, ...]]` names the records that it leaves (trace_marker): [run] until and
[measure] begin and end are checked against them, where every program of a scenario says its own.
`figures: ClassVar[tuple[Family, ...]]` has the figures that are made of these records
(sim/observation.py).
`refusal(params)` returns why values cannot be together, `without_effect(params)` which keys do
nothing beside another one (sim/scenario/workload.py).
One outside the server has `runs = "outside"` and `main(self, world: World)`, a SimPy process.
"""

from collections.abc import Mapping

from sim.sched.task import Blocking
from sim.syscall import Sys


class ServerProgram:
    """A program on the server; the registered class is made with its parameters."""

    runs = "server"
    name = ""  # of this process in the scenario; set before anything is asked of it

    def directories(self) -> tuple[str, ...]:
        """Return the directories that its package made when it was installed."""
        return ()

    def files(self) -> Mapping[str, int]:
        """Return the files that are there before it starts, with their sizes in bytes."""
        return {}

    def main(self, sys: Sys) -> Blocking[None]:
        """Be the program's first task."""
        raise NotImplementedError
