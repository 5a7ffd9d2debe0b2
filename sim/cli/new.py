"""`iotwin new`: a scenario to begin with, commented, as a file of one's own."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from sim.cli.output import write_text
from sim.meanings import meant_by
from sim.registry import did_you_mean

TEMPLATES: Final = Path(__file__).parent / "templates"
# A program of the twin -> the template whose server runs such a one.
OF_PROGRAM: Final[Mapping[str, str]] = {
    **dict.fromkeys(("transactions", "mysqld", "committer"), "database"),
    **dict.fromkeys(("web_service", "web_clients"), "web"),
    **dict.fromkeys(("sendmail", "postfix", "exim"), "mail-server"),
}


def templates() -> dict[str, Path]:
    """Return the files by the name that is typed."""
    return {path.stem: path for path in sorted(TEMPLATES.glob("*.toml"))}


class KindType(click.ParamType[str]):
    """The name of a template."""

    name = "kind"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a name that there is."""
        if value not in templates():
            meant = (OF_PROGRAM[one] for one in (value, *meant_by(value)) if one in OF_PROGRAM)
            near = next(meant, None)
            hint = f" - did you mean '{near}'?" if near else did_you_mean(value, templates())
            self.fail(f"no template '{value}'{hint} (known: {', '.join(templates())})", param, ctx)
        return value


@click.command("new", short_help="Write a commented scenario to begin with.")
@click.argument("kind", metavar="KIND", type=KindType())
@click.option("-o", "--output", metavar="FILE.toml", help="Where it goes (KIND.toml here).")
def command(kind: str, output: str | None) -> None:
    """Write a commented scenario of a server, to be filled in: blank, database, mail-server, web.

    Each runs as it is, has its estimate by hand, and what-ifs. A file that is there is not
    replaced.

    \b
    Examples:
      iotwin new database
      iotwin new web -o shop.toml
    """
    place = Path(output or f"{kind}.toml")
    if place.suffix != ".toml":
        raise click.UsageError(f"{place}: a scenario's file ends in .toml")
    if place.exists() or place.is_symlink():
        raise click.UsageError(f"{place} is there already: name another file with -o")
    if not place.parent.is_dir():
        raise click.UsageError(f"no folder {place.parent}: {place} cannot be written")
    write_text(templates()[kind].read_text(encoding="utf-8"), place)
    click.echo(f"{place} is written. Change it, and then:\n")
    typed = shlex.quote(str(place))
    click.echo(f"  iotwin run {typed}\n  iotwin compare {typed}\n  iotwin params {typed}")
