"""iotwin: a discrete-event twin of I/O-bound Linux servers.

Read syscall.py for what programs see, machine.py for how a server is put together, and the folders
engine, sched, block, drivers, mm, fs, net for the kernel below, named as in the Linux tree.
"""

__version__ = "0.1.0"

from sim.compiled import refuse_stale_build

refuse_stale_build()
