"""Recorded runs of real kernels against predictions made from their descriptions alone."""
