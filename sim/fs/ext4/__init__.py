"""The extended file systems, ext3 and ext4 (Linux: fs/ext3, fs/ext4)."""
