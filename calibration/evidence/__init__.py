"""What else the twin is compared with, beside the runs of real kernels: drives and a page cache."""
