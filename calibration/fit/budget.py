"""How much a fit simulates and keeps unless told otherwise: read by command lines, without numpy.

Models: the patience of who waits for a fit.
Linux counterpart: none.
Invariants: plain numbers.
Left out: how the simulations are spent (chain).
"""

MEMBERS = 128  # of the ensemble
SIMULATIONS = 104  # interpreted, a storm on disk takes 4.5 s: four minutes on two cores
SIMULATIONS_MIN = 24
WAVES = 5  # in which they are spent
