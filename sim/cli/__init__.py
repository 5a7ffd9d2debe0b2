"""The iotwin command: one module per subcommand, nothing heavy before it is needed.

Models: a well-behaved tool of the shell: results on standard output, diagnostics and progress on
standard error, exit codes 0 (done), 1 (failed), 2 (bad usage or bad scenario).
Linux counterpart: none.
Invariants: `iotwin --help` imports no command; a file is written whole or not at all.
Left out: configuration files.
"""
