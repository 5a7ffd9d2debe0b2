"""Labs that come along: one TOML file each. sim/lab/labs.py reads them."""
