"""What a TOML text says: positions, layers, declared parameters, and mistakes with their places."""
