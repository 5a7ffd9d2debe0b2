"""Predictions of withheld figures: from the table calibration/predictions/withheld.toml."""
