"""SimPy's own tests, run against the twin's Environment: ``python -m tests.simpy_suite``."""
