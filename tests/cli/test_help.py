"""Help: there for every command, with examples, and light."""

import importlib
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from sim.cli.main import COMMANDS, cli

OVERVIEW = """\
Usage: iotwin [OPTIONS] COMMAND [ARGS]...

  A discrete-event twin of I/O-bound Linux servers.

  Examples:
    iotwin list
    iotwin mine --here --for 2m
    iotwin run sendmail
    iotwin compare sendmail tmpfs ssd
    iotwin exec sendmail --what-if tmpfs -- iostat -t -c -m -x 5

Options:
  --version   Show the version and exit.
  -h, --help  Show this message and exit.

Commands:
  list         List the scenarios and their what-ifs.
  mine         My own server: record it, make its twin, ask it.
  follow       Follow a server live, beside its twin; tell when they part.
  run          Run a scenario, beside what was recorded.
  compare      Compare what-ifs with the base, seed by seed.
  sweep        Run a scenario over values of a parameter.
  capacity     Find the load at which service levels just hold.
  optimise     Find the cheapest options that keep service levels.
  forecast     Find the month in which growth breaks each level.
  sensitivity  Say which parameter decides a figure.
  lab          Answer questions about a server of your own, and be marked.
  serve        Open a page with sliders, drawn while it runs.
  explain      Say where a transaction's time goes, and what is busy.
  trace        Record a part of a run, for Perfetto, blkparse and btt.
  report       Write a page of HTML: question, answer, reasons.
  new          Write a commented scenario to begin with.
  words        Say what a scenario may name, with keys and examples.
  params       Show every parameter with unit, source and layer.
  calibrate    Fit a scenario's parameters to its recording.
  predict      Carry a fit into a what-if: median and 90 % interval.
  exec         Type iostat, sar, free, top, dd ... on the simulated server.
  shell        Run real programs on the simulated server's /proc.
  proc         Write /proc and /sys of a moment, for real programs.
  export       Write a run for Prometheus, sadf, pandas and others.
  fio          Run a job file of fio on a machine.
  table        Fill a table: RAID levels, access, what-ifs.
  import       Make a data set of recorded text.
  look         Say what a recording says, before any simulation.
  record       Record this host's /proc into a folder.
  twin         Make a twin of a server from its recording alone.
  store        List, export or clean the finished runs that are kept.
  cluster      Say how to run studies on several machines.
  samples      Read recordings of any tool into one table.
  doctor       Show versions, what is compiled, what is there.
"""
# They simulate nothing, and the store has CSV; a new file is TOML; the page is served as JSON
# already; marks have the JSON and the CSV that graders read; of a server's /proc the texts are the
# answer; an export is in formats of its own.
WITHOUT_JSON = ("store", "cluster", "serve", "lab", "new", "shell", "proc", "export")
HEAVY = ("numpy", "scipy", "matplotlib", "rich", "simpy", "sim.machine", "sim.scenario")


def test_the_overview_names_every_command() -> None:
    assert CliRunner().invoke(cli, ["--help"], prog_name="iotwin").output == OVERVIEW


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"], prog_name="iotwin")
    assert result.exit_code == 0
    assert f"Examples:\n    iotwin {name}" in result.output
    assert "--json" in result.output or name in WITHOUT_JSON


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_what_the_command_says(name: str) -> None:
    command = cli.get_command(
        cli.make_context("iotwin", [name, "--help"], resilient_parsing=True), name
    )
    assert command is not None
    assert command.short_help == COMMANDS[name][1]


# Prints, for the overview and then for each command's help, which of the words are modules by then.
ASKING = """
import contextlib, io, json, sys
from sim.cli.main import COMMANDS, cli

def there_after(*words):
    with contextlib.redirect_stdout(io.StringIO()):
        cli.main([*words, "--help"], prog_name="iotwin", standalone_mode=False)
    return [name for name in sys.argv[1:] if name in sys.modules]

print(json.dumps({"": there_after(), **{name: there_after(name) for name in COMMANDS}}))
"""


@pytest.fixture(scope="module")
def heavy() -> dict[str, list[str]]:
    """Return what is imported of HEAVY after each help, all asked for in one process."""
    command = [sys.executable, "-c", ASKING, *HEAVY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    assert found.keys() == {"", *COMMANDS}
    return found


def test_help_imports_nothing_heavy(heavy: dict[str, list[str]]) -> None:
    assert heavy[""] == []


def test_no_command_s_help_imports_numbers_or_pictures(heavy: dict[str, list[str]]) -> None:
    """The first one that does is named; those after it find it imported."""
    light = {"numpy", "scipy", "matplotlib", "rich"}
    assert [name for name, there in heavy.items() if light & set(there)] == []


def test_an_unknown_command_suggests_the_nearest() -> None:
    result = CliRunner().invoke(cli, ["comapre"], prog_name="iotwin")
    assert result.exit_code == 2
    assert "no command 'comapre' - did you mean 'compare'?" in result.output


@pytest.mark.parametrize("name", list(COMMANDS))
def test_json_is_an_option_of_all_set_and_seed_of_what_runs_a_scenario(name: str) -> None:
    command = importlib.import_module(COMMANDS[name][0]).command
    options = {option for one in command.params for option in one.opts}
    runs_one = bool({"scenario_name", "machine_name"} & {one.name for one in command.params})
    assert "--json" in options or name in WITHOUT_JSON
    assert ("--set" in options) == runs_one
    assert ("--seed" in options) == (runs_one or name in {"mine", "table", "twin"})
