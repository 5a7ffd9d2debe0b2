"""`iotwin serve`: a page on this computer whose sliders are a scenario's parameters.

questions.py  what an address asks for: scenario, what-ifs, settings, seed, figure
controls.py   the sliders, from what the scenario and its parameters say of their ranges
worker.py     the process that simulates, and tells what it reads while it does
desk.py       starts and kills such processes: one works, one waits
study.py      seeds until the interval stands, as events for the page
app.py        the web server; static/ has the page
"""
