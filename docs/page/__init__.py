"""The twin as a page of a browser: `python3 bootstrap.py page -o DIR` makes the folder.

index.html, page.js, style.css   the page; its sliders and charts are those of `iotwin serve`
worker.mjs                       Python in the browser, in a thread of its own
make.py                          puts the folder together
pyodide.py                       gets Python for browsers, and knows that it is the right one
bytecode.py, bytecode.mjs        compile what Python imports, by that very Python
"""
