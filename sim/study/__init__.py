"""Studies: figures of runs, replications, comparisons, and what was recorded.

Reading order: `trial` (one simulation, and its key) - `laboratory` (does trials, with `executors`
and `store`) - `replicate` - `outcome` (what a study found, with `summary` and `intervals`).

Models: what is done with the readings of an experiment.
Linux counterpart: none.
Invariants: figures come from the text of /proc and from programs' marks only; a comparison is
 paired, seed by seed.
Left out: sweeps, capacity search, sensitivity.
"""
