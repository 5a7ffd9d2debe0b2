"""The overview of the validation page: errors, the worst by its name, and what has no data."""

from dataclasses import replace

import pytest

from calibration.evidence.stored import Compared
from docs.declared import Run, Table, Variant, read
from docs.evidence import (
    FITTED,
    NOT_FITTED,
    case_errors,
    cases,
    cases_table,
    laws,
    overview_table,
    plain_runs,
)
from docs.runs import Sample, Store, Stored
from sim.scenario.cases import scenario_files

DISK = Run(scenario="sendmail")
ON_TMPFS = Run(scenario="sendmail", what_if="tmpfs")


def stored(run: Run, **figures: float) -> Stored:
    """Return a run that came to these figures, `__` for a dot."""
    named = {name.replace("__", "."): value for name, value in figures.items()}
    sample = Sample(seed=1, figures=named, digest="", cpu_s=0.0)
    return Stored(command=run.command, sources="abc", date="2026-11-26", samples=[sample])


def test_what_was_fitted_and_what_was_not_are_told_apart() -> None:
    found = case_errors(DISK, stored(DISK, load1_peak=18.5, disk__sdb__await_ms=22.96, tasks_d=9))
    [load], [await_ms] = found[FITTED], found[NOT_FITTED]
    assert (load.name, load.error, load.agrees) == ("load1_peak", 0.5, False)
    assert (await_ms.name, await_ms.error, await_ms.agrees) == ("disk.sdb.await_ms", 0.0, True)
    assert (load.command, load.sources, load.date) == ("iotwin run sendmail", "abc", "2026-11-26")


def test_a_figure_that_says_nothing_and_one_of_words_are_left_out() -> None:
    # The number of messages is put in; of the port only "some minutes" is recorded.
    found = case_errors(DISK, stored(DISK, messages_accepted=1, port_refused_s=1))
    assert found == {FITTED: [], NOT_FITTED: []}


def test_without_a_plan_all_that_may_have_been_fitted_counts_as_fitted() -> None:
    run = Run(scenario="tunnel")
    found = case_errors(run, stored(run, transfer_bytes_per_s=43.75e6))
    assert [one.name for one in found[FITTED]] == ["transfer_bytes_per_s"]
    assert found[NOT_FITTED] == []


def test_a_variant_is_named_and_runs_under_other_conditions_are_not_taken() -> None:
    [error] = case_errors(ON_TMPFS, stored(ON_TMPFS, load1_peak=3.1))[FITTED]
    assert error.name == "tmpfs: load1_peak"
    others = (
        DISK,
        ON_TMPFS,
        replace(DISK, sets=("machine.cpus=8",)),
        replace(DISK, fit="sendmail.before"),
        replace(DISK, crash_at="50 s"),
    )
    table = Table(
        name="a",
        rows="variants",
        figures=(),
        columns=(),
        variants=tuple(Variant(run=run, label=None, samples=1) for run in others),
    )
    assert plain_runs({"a": table}) == [DISK, ON_TMPFS]


def test_every_case_whose_numbers_were_recorded_is_on_the_page() -> None:
    found = cases(read(), Store())
    assert {"sendmail", "exim-io", "factomd", "web-governor", "tunnel"} <= found.keys()
    assert found.keys() <= scenario_files().keys()
    text = cases_table(found)
    assert "| `sendmail` | not fitted |" in text


@pytest.mark.parametrize("errors", [(0.01, -0.2, 0.03)])
def test_a_row_has_number_median_worst_and_where_that_comes_from(errors: tuple[float, ...]) -> None:
    compared = [
        Compared(
            area="drives",
            name=f"drive {number}",
            error=error,
            date=f"2026-11-0{number}",
            sources=f"abc{number}",
            command=f"replay {number}",
        )
        for number, error in enumerate(errors, start=1)
    ]
    table = overview_table({}, [], compared)
    row = "| drives | 3 | 3.00 | 20.00 | `drive 2` | 2026-11-02 | abc2 | `replay 2` |"
    assert row in table.splitlines()


def test_what_has_no_data_says_so_and_names_the_command() -> None:
    rows = overview_table({}, [], []).splitlines()
    for beginning, command in (
        ("| [recorded cases]", ""),
        ("| [real kernels]", ""),
        ("| laws", "bootstrap.py test --tier laws"),
        ("| [coverage", "benchmarks.coverage"),
        ("| [speed", "benchmarks"),
    ):
        mine = [row for row in rows if row.startswith(beginning)]
        assert mine, beginning
        assert all("no data" in row and command in row for row in mine)


def test_laws_are_the_tests_of_their_tier() -> None:
    assert "test_littles_law" in laws()
    assert "test_laws_are_the_tests_of_their_tier" not in laws()
