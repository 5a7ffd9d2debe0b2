"""`python -m calibration page`: make the data of the validation page that families do not give."""

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from calibration.drive.bad_input import BadInput
from calibration.evidence import drives, page_cache
from calibration.evidence.drives import Found
from calibration.evidence.stored import Compared, put, read
from calibration.stored_rows import BadData
from calibration.validate.stored import sources_digest

PARTS: Final[dict[str, Callable[[Path, Callable[[str], None]], Iterator[Found]]]] = {
    "drives": drives.compared,
    "page-cache": page_cache.compared,
}


@click.command("page", short_help="Compare with real drives and a page cache, for the page.")
@click.argument("parts", metavar="[PART]...", nargs=-1, type=click.Choice(tuple(PARTS)))
@click.option(
    "--shared",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder with the recordings: disktraces, pagecache.",
)
@click.option(
    "--store",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="Put the figures into FILE, in place of what it has of them.",
)
def command(parts: tuple[str, ...], shared: Path, store: Path) -> None:
    """Compare the twin with recordings that are not part of the project; keep the errors in FILE.

    PART is drives or page-cache; without it, both. `python -m docs make` writes the page of them.

    \b
    Examples:
      python -m calibration page --shared ../shared --store docs/runs/compared.json
      python -m calibration page drives --shared ../shared --store docs/runs/compared.json
    """
    date, sources = datetime.date.today().isoformat(), sources_digest()
    try:
        if store.exists():
            read(store)
        for part in parts or tuple(PARTS):
            found = [
                Compared(
                    area=area,
                    name=name,
                    error=error,
                    date=date,
                    sources=sources,
                    command=made_by,
                )
                for area, name, error, made_by in PARTS[part](shared, _tell)
            ]
            put(store, found)
    except (BadInput, BadData) as problem:
        raise click.UsageError(str(problem)) from None


def _tell(line: str) -> None:
    click.echo(line, err=True)
