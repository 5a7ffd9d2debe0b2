"""Specific devices as data: one TOML file each, with the data sheet it was read from."""
