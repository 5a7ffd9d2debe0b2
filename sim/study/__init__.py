"""Studies: figures of runs, replications, comparisons, and what was recorded.

Models: what is done with the readings of an experiment.
Linux counterpart: none.
Invariants: figures come from the text of /proc and from programs' marks only; a comparison is
 paired, seed by seed.
Left out: sweeps, capacity search, sensitivity.
"""
