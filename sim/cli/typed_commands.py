"""`--command`: what printed a text, where the text does not begin with it."""

from typing import Any

import click

from calibration.readers.prompt import TOOLS, commands_of


class CommandsType(click.ParamType[str]):
    """A command line with at least one of the tools that are read, such as "free -m; iostat 5"."""

    name = "commands"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it was given."""
        if not commands_of(value):
            self.fail(f"{value!r} is none of: {', '.join(sorted(TOOLS))}", param, ctx)
        return str(value)


typed_option = click.option(
    "--command",
    "typed",
    metavar="TEXT",
    type=CommandsType(),
    help="What printed the text, such as 'vmstat -S M 5', where it does not begin with it.",
)
