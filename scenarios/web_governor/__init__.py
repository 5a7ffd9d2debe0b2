"""web-governor: the case and its programs."""
