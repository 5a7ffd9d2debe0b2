"""The whole of /proc and /sys at a moment, for programs that are not ours.

Models: the files that administrators' programs read beside those of the twin's own tools, and the
accounts that only they show: I/O, waiting and switches of each process, pressure. `accounts` and
`pressure` keep these from tracepoints, `proc_files` and `sys_files` render, `whole` puts a tree
together, `folder` writes it, `namespace` has a program see it as its /proc and /sys.
Linux counterpart: fs/proc/, fs/sysfs/; unshare(1) and mount(8) of util-linux.
Invariants: a file that sim/fs/proc renders is taken from there, byte for byte. A tree maps paths
below its top to texts; a path that ends in "/" is a directory with nothing in it.
Left out: what each module says that its files lack.
"""
