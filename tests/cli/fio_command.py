"""`iotwin fio` on a machine and a job file that a test wrote."""

from click.testing import CliRunner

from sim.cli.main import cli


def run_fio(folder, machine, text, *arguments):
    """Run a job file on a machine, both written to `folder`; return the command's result."""
    (folder / "m.toml").write_text(machine)
    (folder / "j.fio").write_text(text)
    words = ["fio", str(folder / "j.fio"), "--machine", str(folder / "m.toml"), *arguments]
    return CliRunner().invoke(cli, words, prog_name="iotwin")
