"""Run one group of benchmarks with ``sim`` from a given place; print its rows as JSON.

    python -P benchmarks/worker.py DIR MODULE FUNCTION NUMBER

DIR is put first on the module path; it may hold sources or a compiled build. So nothing of ours may
be imported before.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def main(place: str, module: str, function: str, number: int) -> None:
    """Import ``sim`` from ``place``, run ``benchmarks.module.function(number)``."""
    sys.path.insert(0, place)
    sys.path.append(str(REPOSITORY))  # for benchmarks
    calendar = import_module("sim.engine.calendar")
    rows = getattr(import_module(f"benchmarks.{module}"), function)(number)
    build = "interpreted" if str(calendar.__file__).endswith(".py") else "compiled"
    json.dump([{"build": build, **row.to_json()} for row in rows], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
