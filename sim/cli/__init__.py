"""The iotwin command: one module per subcommand, nothing heavy before it is needed.

Results go to standard output, diagnostics and progress to standard error. The exit code is 0
(done), 1 (failed) or 2 (bad usage or bad scenario). `iotwin --help` imports no command. A file is
written whole or not at all. There are no configuration files.
"""
