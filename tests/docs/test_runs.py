"""Stored runs: what is stored is not run again, what is old is found, tables follow from data."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import docs.runs
from docs.check import old_runs, stale_blocks
from docs.declared import DeclarationError, Figure, Run, Table, Variant, read
from docs.pages import Page
from docs.render import MissingRun, figures_table
from docs.runs import RunFailed, Sample, Sources, Store, make, simulate
from sim.study.laboratory import Laboratory

TUNNEL = Run(scenario="tunnel")
TWO = Run(scenario="tunnel", what_if="four_streams")
TABLE = Table(
    name="tunnel",
    rows="variants",
    figures=(Figure(name="transfer_bytes_per_s", label="transfer", factor=8e-6, unit="Mbit/s"),),
    variants=(
        Variant(run=TUNNEL, label="one stream", samples=2),
        Variant(run=TWO, label=None, samples=2),
    ),
    columns=("median", "recorded"),
)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Let a simulation give its number as its figure; return what is simulated."""
    done: list[Run] = []

    def count(what: Run, number: int) -> Sample:
        done.append(what)
        figures = {"transfer_bytes_per_s": 1e6 * (number + 1)}
        return Sample(seed=number, figures=figures, digest=f"{number}", cpu_s=1.0 - number / 10)

    monkeypatch.setattr(docs.runs, "simulate", count)
    monkeypatch.setattr("docs.check.simulate", count)
    return done


def silent(line: str) -> None:
    """Tell nobody."""


def test_what_is_stored_is_not_run_again(tmp_path: Path, counted: list[Run]) -> None:
    make({TUNNEL: 2, TWO: 1}, Store(tmp_path), Laboratory(), silent)
    make({TUNNEL: 3, TWO: 1}, Store(tmp_path), Laboratory(), silent)
    assert counted == [TUNNEL, TUNNEL, TWO, TUNNEL]
    stored = Store(tmp_path).get(TUNNEL)
    assert stored is not None
    assert [one.seed for one in stored.samples] == [0, 1, 2]


def test_a_run_that_fails_is_named_and_the_others_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_at_two(what: Run, number: int) -> Sample:
        if what == TWO:
            raise ZeroDivisionError("no streams")
        return Sample(seed=number, figures={}, digest="", cpu_s=0.0)

    monkeypatch.setattr(docs.runs, "simulate", fail_at_two)
    with pytest.raises(RunFailed) as caught:
        make({TWO: 1, TUNNEL: 1}, Store(tmp_path), Laboratory(), silent)
    assert str(caught.value) == f"{TWO.command}, sample 0: ZeroDivisionError: no streams"
    assert Store(tmp_path).get(TUNNEL) is not None


def test_what_is_stored_of_other_sources_is_run_again(tmp_path: Path, counted: list[Run]) -> None:
    store = Store(tmp_path)
    make({TUNNEL: 1}, store, Laboratory(), silent)
    stored = store.get(TUNNEL)
    assert stored is not None
    store.put(TUNNEL, replace(stored, sources="of old"))
    make({TUNNEL: 1}, Store(tmp_path), Laboratory(), silent)
    assert counted == [TUNNEL, TUNNEL]


def test_sources_are_those_of_the_scenario_its_neighbours_and_its_fit() -> None:
    sources = Sources()
    runs = [TUNNEL, Run(scenario="sendmail"), Run(scenario="sendmail", fit="sendmail.before")]
    assert len({sources.of(run) for run in runs}) == 3
    assert sources.of(TUNNEL) == sources.of(TWO) == Sources().of(TUNNEL)


def test_runs_that_no_table_asks_for_are_forgotten(tmp_path: Path, counted: list[Run]) -> None:
    store = Store(tmp_path)
    make({TUNNEL: 1, TWO: 1}, store, Laboratory(), silent)
    store.keep_only({TWO.command})
    assert Store(tmp_path).get(TUNNEL) is None
    assert Store(tmp_path).get(TWO) is not None


def test_a_table_is_the_median_of_what_is_stored(tmp_path: Path, counted: list[Run]) -> None:
    store = Store(tmp_path)
    make({TUNNEL: 2, TWO: 2}, store, Laboratory(), silent)
    assert figures_table(TABLE, store) == (
        "| what if | transfer, Mbit/s | recorded |\n| --- | ---: | ---: |\n"
        "| one stream | 12.00 | 350 |\n| Four streams | 12.00 |  |\n\n"
        "*2 runs each:* `iotwin compare tunnel four_streams --replications 2`\n"
    )


def test_a_table_of_a_run_that_was_never_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingRun, match="iotwin run tunnel"):
        figures_table(TABLE, Store(tmp_path))


def test_a_figure_that_was_changed_by_hand_is_found(tmp_path: Path, counted: list[Run]) -> None:
    store = Store(tmp_path)
    make({TUNNEL: 2, TWO: 2}, store, Laboratory(), silent)
    text = figures_table(TABLE, store)
    page = Page("docs/a.md", f"<!-- generated: tunnel -->\n{text}<!-- end -->\n")
    assert not list(stale_blocks({page.name: page}, {"tunnel": TABLE}, store))
    other = Page(page.name, page.text.replace("12.00", "13.00", 1))
    assert list(stale_blocks({page.name: other}, {"tunnel": TABLE}, store)) == [
        "docs/a.md:1: block 'tunnel' is not what its data says; python -m docs make tunnel"
    ]


def test_a_stored_figure_that_comes_out_otherwise_today_is_found(
    tmp_path: Path, counted: list[Run]
) -> None:
    store = Store(tmp_path)
    make({TUNNEL: 2, TWO: 2}, store, Laboratory(), silent)
    assert not list(old_runs({"tunnel": TABLE}, store, Laboratory(), 6.0, silent))
    path = tmp_path / "tunnel.json"
    content = json.loads(path.read_text())
    # The second sample of each run is the cheaper one, and so the one that is tried.
    content[0]["samples"][1]["figures"]["transfer_bytes_per_s"] += 1
    path.write_text(json.dumps(content))
    [complaint] = old_runs({"tunnel": TABLE}, Store(tmp_path), Laboratory(), 6.0, silent)
    assert "sample 1, gives other figures than docs/runs has" in complaint
    assert complaint.endswith("python -m docs make tunnel")


def test_a_run_that_takes_too_long_is_left_out_and_named(
    tmp_path: Path, counted: list[Run]
) -> None:
    store = Store(tmp_path)
    make({TUNNEL: 1, TWO: 2}, store, Laboratory(), silent)
    told: list[str] = []
    assert not list(old_runs({"tunnel": TABLE}, store, Laboratory(), 0.95, told.append))
    assert told[0] == "left out, 1 s of CPU: iotwin run tunnel"


def test_a_sample_has_the_figures_that_the_command_prints() -> None:
    first, second = simulate(TUNNEL, 0), simulate(TUNNEL, 1)
    assert second.seed == first.seed + 1
    assert first.digest != second.digest
    assert 300e6 < 8 * first.figures["transfer_bytes_per_s"] < 400e6


def test_a_power_cut_is_a_run_too() -> None:
    sets = ("process.blast.messages=60",)
    cut = simulate(Run(scenario="sendmail", what_if="tmpfs", sets=sets, crash_at="32 s"), 0)
    figures = cut.figures
    assert figures["messages_accepted"] > 0
    assert figures["messages_accepted"] == sum(
        figures[f"messages_{where}"] for where in ("handed_on", "in_mailboxes", "in_queue", "lost")
    )


def test_what_is_declared_can_be_read_and_every_mistake_is_named(tmp_path: Path) -> None:
    assert "storm" in read()
    path = tmp_path / "tables.toml"
    for text, complaint in (
        ("[tabel.a]\n", "no kind of block 'tabel' - did you mean 'table'"),
        ("[table.a]\nrows = 'lines'\n", "rows is 'figures' or 'variants', got 'lines'"),
        ("[table.a]\n", "rows must be a str, got None"),
        ("[output.a]\ncommand = 'x'\nkeeps = []\n", "not known: keeps"),
        ("[table.a]\nrows = 'figures'\nfigures = []\nvariants = ['x']\n", "of which scenario"),
    ):
        path.write_text(text)
        with pytest.raises(DeclarationError, match=complaint):
            read(path)
