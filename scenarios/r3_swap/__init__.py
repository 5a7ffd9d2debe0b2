"""r3-swap: the case and its programs."""
