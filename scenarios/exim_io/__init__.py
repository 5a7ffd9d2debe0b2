"""exim-io: the case and its programs."""
