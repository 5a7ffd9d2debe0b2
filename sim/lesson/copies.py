"""A lesson's copies: as a student gets it, as a notebook, as a page with all outputs.

Models: the copying room.
Linux counterpart: none; jupytext, nbconvert and nbclient do the work.
Invariants: a student's copy has no cell that is tagged `solution`, and no outputs; a notebook that
 is there already is somebody's work, and is never written over.
Left out: marks, and taking a student's work back into the lesson.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

SOLUTION: Final = "solution"
FORMAT: Final = "py:percent"
TIMEOUT_S: Final = 3600


class NoLessonError(LookupError):
    """There is no lesson of that number; the message names those that there are."""


def lesson_file(folder: Path, number: str) -> Path:
    """Return the file of a lesson, such as 1; raise NoLessonError."""
    known = {str(int(path.name[:2])): path for path in sorted(folder.glob("[0-9][0-9]_*.py"))}
    if number not in known:
        there = ", ".join(f"{one} ({path.stem[3:]})" for one, path in known.items()) or "none"
        raise NoLessonError(f"no lesson {number!r} in {folder} (known: {there})")
    return known[number]


def notebook_from(text: str) -> Any:
    """Return a lesson's text as a notebook of nbformat, with its solutions."""
    # By name: jupytext is an extra.
    return import_module("jupytext").reads(text, fmt=FORMAT)


def notebook_of(lesson: Path) -> Any:
    """Return a lesson as a notebook of nbformat, with its solutions."""
    return notebook_from(lesson.read_text(encoding="utf-8"))


def without_solutions(notebook: Any) -> Any:
    """Return a notebook as a student gets it."""
    kept = [one for one in notebook.cells if SOLUTION not in one.metadata.get("tags", ())]
    return type(notebook)({**notebook, "cells": kept})


def write_notebook(notebook: Any, place: Path) -> bool:
    """Write a notebook; return False, and write nothing, if the file is there already."""
    nbformat = import_module("nbformat")
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with place.open("x", encoding="utf-8") as file:
            nbformat.write(notebook, file)
    except FileExistsError:
        return False
    return True


def executed(notebook: Any, folder: Path) -> Any:
    """Run a notebook from top to bottom; return it with its outputs.

    Its kernel is this very Python, with this Python's path: the twin that made the notebook.
    """
    nbclient = import_module("nbclient")
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(place for place in sys.path if place)
    try:
        nbclient.NotebookClient(
            notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": folder}}
        ).execute()
    finally:
        if inherited is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = inherited
    return notebook


def page_of(notebook: Any) -> str:
    """Return a notebook that was executed as one page of HTML."""
    exporter = import_module("nbconvert").HTMLExporter()
    text, _resources = exporter.from_notebook_node(notebook)
    return str(text)
