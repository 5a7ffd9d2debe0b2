"""lvm-snapshot: the case and its programs."""
