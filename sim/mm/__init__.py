"""Memory management: page cache, dirty pages and their writeback, free memory (Linux: mm/)."""
