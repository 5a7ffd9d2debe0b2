"""Reports: the outcome of a study as tables, JSON and plots.

Models: how an administrator would write an experiment up.
Linux counterpart: none.
Invariants: nothing is computed here that a figure of sim.study does not say; text for pipes is
 plain, fixed-width and the same every time.
Left out: HTML.
"""
