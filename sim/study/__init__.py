"""Experiments over many runs: replications, comparisons, sweeps."""
