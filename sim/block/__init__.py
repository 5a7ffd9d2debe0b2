"""The block layer: bios, requests, merging, plugging, elevators, counters (Linux: block/).

Read bio.py, then queue.py: the path of a bio to the driver and back.
"""
