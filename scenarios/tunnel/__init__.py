"""tunnel: the case and its programs."""
