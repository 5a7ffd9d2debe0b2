"""Scenarios that come along: single files, and cases, each a folder with all that belongs to it.

A case has scenario.toml, and where it needs them its own programs, `recording/` with the data set,
`fits/`, a page and tests. sim/scenario/cases.py finds them. A folder is named as the scenario is,
with `_` for `-`, so that Python can import its programs.
"""
