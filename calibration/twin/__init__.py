"""A twin of a server from its recording alone: no model of its application.

Models: what an administrator would sketch of a server that somebody else wrote the software of: its
machine, and for each busy device a class of transactions that reads and one that writes.
Linux counterpart: none.
Invariants: what was not recorded stands in the twin with "assumed: ..." and is told; a fitted value
has "fit: ..." with its 90 % interval; the fit is calibration.fit's, under priors a factor around
the operational estimates.
Left out: which transaction does what. A recording of counters cannot tell: reads and writes are
classes of their own, and CPU time is shared out by the number of transactions.

Reading order: `demands` (operational estimates of the classes; `writers`: who writes) - `server`
(machine, disks, mounts) - `sheet` (a scenario as a table of sourced values) - `draft` (both put
together, with priors and what-ifs) - `columns` (recorded and simulated, in the same columns) -
`fitting` - `report`; `questions` - `answers` - `anchored` (tied to what was recorded) - `cache`
(what more memory saves).
"""
