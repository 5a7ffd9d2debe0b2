"""The administrator's tools: text of /proc in, text of a terminal out.

Models: iostat (sysstat), vmstat and uptime (procps) of several generations, reading the files that
a real server or the twin shows under /proc. A recorded /proc is read equally well.
Linux counterpart: sysstat 7.0.x .. 12.6.1, procps 3.2.x .. procps-ng 4.0.2 (user space).
Invariants: nothing here imports another part of `sim`; reading (`parse`), computing (`*_report`)
and rendering (`*_layout`) are apart; every formula stands in a docstring and is computed once.
Left out: sar, mpstat, top; colours, JSON, `--human`; locales other than the tabulated ones.
"""
