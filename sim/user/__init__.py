"""User programs, written against system calls only."""
