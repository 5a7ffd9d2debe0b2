"""Request traces of real drives against the disk model: `python -m calibration drive`."""
