"""sendmail: the case and its programs."""
