"""The NFS client: files on another host."""
