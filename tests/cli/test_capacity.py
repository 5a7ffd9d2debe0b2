"""`iotwin capacity`: what is found, what binds, and what is refused before anything runs."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from sim.report.capacity_text import capacity_result, capacity_table, sentences
from sim.scenario import open_scenario
from sim.scenario.levels import read_option
from sim.study.capacity import Question, find_capacity, uses_of
from sim.study.executors import HERE
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Replication, Seen, Shortfall
from sim.study.over import read_range
from sim.study.points import Variants
from sim.study.trial import Trial


def iotwin(*arguments: str | Path) -> Result:
    """Type a command."""
    return CliRunner().invoke(cli, [str(one) for one in arguments])


LOAD = "process.server.rate=10..150 /s"
SHORT = ("--set", "run.duration=30 s", "--jobs", "1")


def test_the_busiest_comes_first() -> None:
    figures = {
        "cpu.busy_pct": 20.0,
        "load1": 3.0,
        "disk.sda.util_pct": 90.0,
        "disk.sda.avgqu_sz": 4.0,
        "disk.sdb.util_pct": 5.0,
    }
    found = uses_of(figures)
    assert [one.name for one in found] == ["sda", "CPUs", "sdb"]
    assert [one.queue for one in found] == [4.0, 3.0, None]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--load", LOAD), "no service level to hold"),
        (("--load", "machine.cpus=1..4", "--slo", "load1_peak < 9"), "not a load"),
        (("--load", "process.server.rate=150..10 /s"), "LOW must be below HIGH"),
        (("--load", "process.server.rote=1..2 /s"), "process.server.rate"),
        (("--load", "process.server.rate=1..2 parsec"), "parsec"),
        (("--load", LOAD, "--slo", "load1_peek < 9"), "load1_peak"),
        (
            ("--load", LOAD, "--slo", "load1_peak < 9", "--slo", "load1_peak > 10"),
            "no server keeps",
        ),
        (("--load", LOAD, "--slo", "load1_peak < 9", "--precision", "0"), "precision"),
        (("--load", LOAD, "--slo", "load1_peak < 9", "--budget", "200000"), "--yes"),
        (
            ("--load", LOAD, "--slo", "load1_peak < 9", "--set", "process.server.rate=3 /s"),
            "given twice",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: tuple[str, ...], told: str) -> None:
    result = iotwin("capacity", "generic", *arguments)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_level_that_is_missed_at_the_least_load_says_so(tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    slo = ("--slo", "disk.sda.util_pct < 1 %")
    result = iotwin("capacity", "generic", "--load", LOAD, *slo, *SHORT, "--json", str(out))
    assert result.exit_code == 0
    assert "base: missed already at 10 /s: disk.sda.util_pct < 1 %\n" in result.stdout
    found = json.loads(out.read_text())["result"]
    assert found["capacity"] is None
    assert found["hi"] == 10
    assert found["binds"]["levels"] == ["disk.sda.util_pct < 1 %"]


def test_a_multiple_of_a_program_s_load_is_a_load(tmp_path: Path) -> None:
    """So many times the scenario's rate keeps the disk as busy as that rate itself."""
    slo = ("--slo", "disk.sda.util_pct < 1 %", *SHORT, "--budget", "10")
    rate = tmp_path / "rate.json"
    scale = tmp_path / "scale.json"
    iotwin("capacity", "generic", "--load", "process.server.rate=30..60 /s", *slo, "--json", rate)
    half = "process.server.load_scale=0.5..1"
    sixty = ("--set", "process.server.rate=60 /s")
    iotwin("capacity", "generic", "--load", half, *sixty, *slo, "--json", scale)
    [one], [other] = (json.loads(it.read_text())["points"] for it in (rate, scale))
    assert one["figures"] == other["figures"]


def test_a_server_that_no_longer_keeps_up_is_not_said_to_lack_data() -> None:
    slo = ("--slo", "transaction_p95_ms < 1 s", "--set", "measure.steady=true")
    short = ("--set", "run.duration=20 s", "--jobs", "1", "--budget", "10")
    load = "process.server.rate=250..400 /s"
    result = iotwin("capacity", "generic", "--load", load, *slo, *short)
    assert result.exit_code == 0, result.stderr
    assert "base: missed already at 250 /s: no steady state\n" in result.stdout
    assert "no data" not in result.stdout
    assert "resource" not in result.stdout.partition("base:")[0]


def test_a_figure_that_no_run_has_is_missed_and_that_is_said() -> None:
    slo = ("--slo", "disk.sda.util_pct < 50 %")
    # Too short for a full report after the server is warm.
    short = ("--set", "run.duration=15 s", "--jobs", "1")
    result = iotwin("capacity", "generic", "--load", LOAD, *slo, *short, "--budget", "10")
    assert "missed already" in result.stdout
    assert "(no data)" in result.stdout


def test_the_load_that_keeps_a_disk_half_busy_is_half_of_what_fills_it(tmp_path: Path) -> None:
    """Utilisation law: busy = rate times demand, so the capacity follows from the least load."""
    out = tmp_path / "c.json"
    slo = ("--slo", "disk.sda.util_pct < 50 %", "--precision", "8%")
    result = iotwin("capacity", "generic", "--load", LOAD, *slo, *SHORT, "--json", str(out))
    assert result.exit_code == 0, result.stderr
    content = json.loads(out.read_text())
    assert content["schema"] == "iotwin.study/1"
    found = content["result"]
    assert found["lo"] < found["capacity"] < found["hi"]
    assert found["monotone"]
    assert found["binds"] == {"levels": ["disk.sda.util_pct < 50 %"], "resource": "sda"}
    loads = [one["set"]["process.server.rate"] for one in content["points"]]
    busy = [one["figures"]["disk.sda.util_pct"]["mean"] for one in content["points"]]
    assert len(loads) > 2
    assert busy == sorted(busy)
    [use] = [one for one in found["resources"] if one["name"] == "sda"]
    assert use["busy_pct"] < 50


@pytest.mark.parametrize("finished", [0, 1])
def test_an_interrupted_search_counts_what_was_finished_and_says_so_above_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: int
) -> None:
    real = Laboratory.run
    why = f"interrupted after {finished} of 10 runs"

    def stops(laboratory: Laboratory, trials: Sequence[Trial]) -> list[Replication]:
        done = real(laboratory, trials[:finished])
        lacking = [None] * (len(trials) - finished)
        raise UnfinishedError([*done, *lacking], Shortfall(why, 130))

    monkeypatch.setattr(Laboratory, "run", stops)
    out = tmp_path / "c.json"
    slo = ("--slo", "disk.sda.util_pct < 50 %", "--executor", "here", "--store", "none")
    result = iotwin("capacity", "generic", "--load", LOAD, *slo, *SHORT, "--json", out)
    assert result.exit_code == 130
    above, _, table = result.stdout.partition("variant ")
    assert above.endswith(f"\n{why}\n\n")
    assert table.splitlines()[1].split()[-1] == str(finished)
    content = json.loads(out.read_text())
    assert content["result"]["runs"] == sum(one["runs"] for one in content["points"]) == finished


class Interrupted(Laboratory):
    """Does nothing: the disk is as busy as the load; after so many runs somebody types Ctrl-C."""

    def __init__(self, runs: int) -> None:
        super().__init__(HERE)
        self.left = runs

    def run(self, trials: Sequence[Trial]) -> list[Replication]:
        if self.left < len(trials):
            raise UnfinishedError([], Shortfall("interrupted after 20 of 30 runs", 130))
        self.left -= len(trials)
        return [self.outcome(one) for one in trials]

    def outcome(self, trial: Trial) -> Replication:
        load = float(trial.sets[-1].partition("=")[2].partition(" ")[0])
        busy = {"disk.sda.util_pct": load + trial.seed % 2, "disk.sda.avgqu_sz": 1.0}
        return Replication(
            seed=trial.seed, metrics=busy, histograms={}, digest="", seen=Seen(unsteady="it grows")
        )


@pytest.mark.parametrize("runs", [10, 20, 30])
def test_an_interrupted_search_says_what_it_found_and_not_that_chance_is_too_great(
    runs: int,
) -> None:
    variants = Variants(file=open_scenario("generic"))
    axis = read_range("process.server.rate=10..90 /s", [variants.read(None)], "--load")
    level = read_option("disk.sda.util_pct < 50 %")
    question = Question(variants=variants, axis=axis, slo=(level,))
    found = find_capacity(question, None, Interrupted(runs))
    assert found.unfinished is not None
    assert found.runs == found.search.spent == runs
    told = sentences([found], question.precision)
    assert "base: interrupted after 20 of 30 runs\n" in told
    assert "chance" not in told
    missed = found.search.missed
    assert ("no steady state in 10 of 10 replications" in told) == (missed is not None)


@pytest.mark.parametrize(
    ("high", "runs", "shown"), [(40, 1000, "> 40 /s"), (90, 10, "> 10 /s"), (90, 0, "?")]
)
def test_a_capacity_beyond_all_loads_that_were_judged_is_shown_as_more_than_them(
    high: int, runs: int, shown: str
) -> None:
    variants = Variants(file=open_scenario("generic"))
    axis = read_range(f"process.server.rate=10..{high} /s", [variants.read(None)], "--load")
    level = read_option("disk.sda.util_pct < 50 %")
    question = Question(variants=variants, axis=axis, slo=(level,))
    found = find_capacity(question, None, Interrupted(runs))
    [row] = capacity_table([found]).rows
    assert row[1] == shown
    assert capacity_result([found])["capacity"] is None
