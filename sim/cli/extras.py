"""Packages that only some commands need: which extra has them, and how it is installed here.

Models: nothing; a run needs the few packages of a plain install alone.
Linux counterpart: none.
Invariants: every command that lacks a package ends with this message (sim.cli.diagnose), whichever
 module asked for it.
Left out: packages of tests and of changing things.
"""

import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from sim.compiled import CHECKOUT, TOP, checkout

# what is imported -> the extra that has it (setup.cfg)
EXTRA_OF: Final[Mapping[str, str]] = {
    "numpy": "fit",
    "scipy": "fit",
    "sklearn": "fit",
    "emcee": "fit",
    "threadpoolctl": "fit",
    "matplotlib": "plot",
    "SALib": "sensitivity",
    "distributed": "cluster",
    "pyarrow": "parquet",
    "starlette": "serve",
    "uvicorn": "serve",
    "jupytext": "lesson",
    "nbconvert": "lesson",
}


def need(name: str) -> None:
    """Raise ModuleNotFoundError now if a package is missing, before work that would be lost."""
    if find_spec(name) is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return what to tell the user of a package that an extra has; None for any other."""
    name = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(name)
    if extra is None:
        return None
    return f"{name} is missing, which the extra '{extra}' has: {install_command(extra)}"


def install_command(extra: str, *, top: Path = TOP, note: Path = CHECKOUT) -> str:
    """Return the command that installs an extra where this program is installed."""
    home = checkout(note)
    if home is not None:
        where = "" if home == Path.cwd() else f"{shlex.quote(str(home))}/"
        return f"python3 {where}bootstrap.py install {extra}"
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    if (top / "setup.cfg").is_file():
        return f"{pip} --editable {shlex.quote(f'{top}[{extra}]')}"
    return f"{pip} 'iotwin[{extra}]'"
