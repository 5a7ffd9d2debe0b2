"""The `iotwin` command."""
