"""Stacked devices (Linux: drivers/md/)."""
