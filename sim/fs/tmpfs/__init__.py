"""tmpfs: files that are nothing but page cache."""
