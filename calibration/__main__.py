"""`python -m calibration`: commands for who works on the twin itself."""

import click

from calibration.drive.command import command as drive
from calibration.evidence.command import command as page
from calibration.twin.afterwards import command as afterwards
from calibration.validate.command import command as validate
from calibration.withheld.command import command as withheld
from sim.cli.main import ToldGroup


@click.group(cls=ToldGroup)
def main() -> None:
    """Confront the twin with recordings."""


main.add_command(afterwards)
main.add_command(drive)
main.add_command(page)
main.add_command(validate)
main.add_command(withheld)

if __name__ == "__main__":
    main(prog_name="python -m calibration")
