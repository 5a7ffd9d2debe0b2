"""The virtual file system, and below it the file systems, each in its folder."""
