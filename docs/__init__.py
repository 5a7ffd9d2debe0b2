"""The documents, and the machinery that keeps them true.

Reading order: `__main__` and `command` (how it is called), `declared` (what a table is), `runs`
(what was simulated for it, stored), `render` and `reference` (data as Markdown), `blocks` (where
that stands in a page), `make`; then `pages` (a page taken apart), `laws` (what holds for every
page), `commands` (the commands that pages show), `check`.
"""
