"""cacti: the case and its programs."""
