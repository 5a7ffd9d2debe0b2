"""Stacked devices: linear volumes, RAID, snapshots (Linux: drivers/md)."""
