"""factomd: the case and its programs."""
