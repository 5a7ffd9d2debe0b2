"""How fast the twin is, as ratios within one run: ``python -m benchmarks --help``."""
