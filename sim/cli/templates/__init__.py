"""Scenarios to begin with: `iotwin new` copies them, comments included."""
