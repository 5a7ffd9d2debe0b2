"""Open a lesson: in JupyterLab, or executed as a page where that is not installed.

    python3 bootstrap.py lesson 1               the lesson as a student gets it
    python3 bootstrap.py lesson 1 --solutions   with its solutions at the end, for a teacher

Notebooks and pages are made in notebooks/work. Work that is there is opened, never written over.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from sim.cli.extras import missing_extra
from sim.lesson.copies import (
    NoLessonError,
    executed,
    lesson_file,
    notebook_of,
    page_of,
    without_solutions,
    write_notebook,
)

WORK = "work"


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("number")
@click.option("--solutions", is_flag=True, help="With the solutions at the end, for a teacher.")
def main(folder: Path, number: str, solutions: bool) -> None:
    """Open lesson NUMBER of a folder."""
    try:
        lesson = lesson_file(folder, number)
        whole = notebook_of(lesson)
        notebook = whole if solutions else without_solutions(whole)
        place = folder / WORK / (f"{lesson.stem}_solutions" if solutions else lesson.stem)
        if find_spec("jupyterlab") is not None:
            opened = place.with_suffix(".ipynb")
            _write(notebook, opened)
            sys.exit(subprocess.call([sys.executable, "-m", "jupyterlab", str(opened)]))
        _page(notebook, place.with_suffix(".html"))
    except NoLessonError as error:
        raise click.UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        told = missing_extra(error)
        if told is None:
            raise
        raise click.UsageError(told) from None


def _write(notebook: object, place: Path) -> None:
    """Write a notebook and say where it is."""
    is_new = write_notebook(notebook, place)
    click.echo(place if is_new else f"{place} (it was there already, and is kept)")


def _page(notebook: object, place: Path) -> None:
    """Execute a notebook into a page and say where it is."""
    click.echo("executing the lesson; JupyterLab is not installed", err=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(page_of(executed(notebook, place.parent)), encoding="utf-8")
    click.echo(place)


if __name__ == "__main__":
    main(prog_name="bootstrap.py lesson")
