"""Fit: from a recording to an ensemble of parameter sets, and from that to a prediction.

Models: Bayesian calibration of a stochastic simulator (Kennedy and O'Hagan 2001; the waves are
those of history matching). What is not known has a prior in the scenario's [calibrate]; the twin is
simulated at a design over the prior; an emulator learns the recorded columns from that; a sampler
draws what is left of the prior where emulated and recorded columns agree; a second wave of
simulations refines the emulator there.
Linux counterpart: none.
Invariants: the same seed gives the same file, whatever the number of processes and however often
 it was interrupted.
Left out: choosing between models (file system, dirsync): a prior over numbers cannot.

Reading order: `space` (parameters) - `columns` (what was recorded, how sure) - `emulator` -
`posterior` - `chain` (the whole; sim.study's laboratory simulates) - `fitfile`, `report`,
`picture` - `predict` (the ensemble in a what-if) - `sbc` (is all this to be trusted?).
"""
