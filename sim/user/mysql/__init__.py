"""MySQL 5.0: the server with its storage engines, and what its clients say to it."""
