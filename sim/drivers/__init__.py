"""Device models under the block layer (Linux: drivers/, and what is behind them).

Start with ram.py, the template; a device registers itself under kind "device".
"""
