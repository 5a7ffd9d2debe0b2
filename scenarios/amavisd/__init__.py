"""amavisd: the case and its programs."""
