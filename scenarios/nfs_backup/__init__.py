"""nfs-backup: the case and its programs."""
