"""mysql-oom: the case and its programs."""
