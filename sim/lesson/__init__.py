"""Lessons: all that a student imports.

    from sim.lesson import run, compare, cut, table, tool, plot, recording, look, twin, check

runs.py       run() and compare(): figures of simulations, each with its unit
rows.py       table(): figures over values of a parameter, of what-ifs, of arrays of disks
sliders.py    explore(): a slider over a parameter in a notebook, else a grid of values
terminal.py   tool(), printed(): what iostat, vmstat, dd ... print; recording(): what was recorded
picture.py    plot(): time lines of runs, or curves
cuts.py       cut(): what is left when the power goes
fits.py       ensemble(): the sets of parameters that agree with a recording
twins.py      look(): what a recording says; twin(): a server made from it alone
servers.py    ARM, FLASH, READING, SWAPPING: servers that no scenario describes
marking.py    check(): right or wrong, with a hint
questions/    what the lessons ask, a file for each lesson
copies.py     a lesson as a student gets it, as a notebook, and as a page

Models: the bench of a laboratory course.
Linux counterpart: none.
Invariants: a simulation is done once in a session, whoever asks for it; a figure is a number that
 knows its unit; what a student mistypes ends with what was given, what there is, and the nearest.
Left out: replications beyond what compare() makes, fits with priors of one's own, service levels:
 `iotwin` has them.
"""

from sim.lesson.cuts import cut
from sim.lesson.fits import ensemble
from sim.lesson.marking import check
from sim.lesson.picture import plot
from sim.lesson.rows import table
from sim.lesson.runs import compare, run
from sim.lesson.servers import ARM, FLASH, READING, SWAPPING
from sim.lesson.sliders import explore
from sim.lesson.terminal import printed, recording, tool
from sim.lesson.twins import look, twin

__all__ = [
    "ARM",
    "FLASH",
    "READING",
    "SWAPPING",
    "check",
    "compare",
    "cut",
    "ensemble",
    "explore",
    "look",
    "plot",
    "printed",
    "recording",
    "run",
    "table",
    "tool",
    "twin",
]
