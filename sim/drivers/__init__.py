"""Device models: what a request costs below the block layer (Linux: drivers/)."""
