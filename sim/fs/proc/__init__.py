"""/proc as text: what the kernel's counters look like to programs and tools.

Models: stat, diskstats, loadavg, uptime, meminfo, vmstat, swaps, cpuinfo of Linux 2.6.16 to 6.x,
and of each process stat, statm, status. `root` says which part of the kernel each file shows;
files of /sys come from the components that they are about (sim.component).
Linux counterpart: fs/proc/*.c, block/genhd.c:diskstats_show, mm/vmstat.c, mm/swapfile.c:swap_show.
Invariants: reads everyone's counters and writes none (but asks a disk to bring its integrals up to
now, as part_round_stats does); a file's differences between versions are one table in its module.
Left out: /proc/sys; each module says what its file lacks.
"""
