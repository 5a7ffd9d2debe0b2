"""Tables: plain, aligned, the same for every reader; figures short and never rounded to nothing."""

import io
import re
from dataclasses import replace

import pytest

from sim.report.study_tables import (
    changes_text,
    compare_table,
    heading,
    not_fitted,
    notes,
    run_table,
    spread_note,
)
from sim.report.tables import Column, Table, figure, plain, print_table, signed
from sim.scenario import RecordedSpec, load
from sim.scenario.cases import data_sets
from sim.study.recorded import load_figures
from sim.study.summary import summarise_all
from tests.report.studies import study

SMALL = Table(
    (Column("name"), Column("value", is_number=True), Column("note")),
    (("a", "1.00", ""), ("", "", ""), ("longer", "10.00", "x")),
)


def test_a_plain_table_is_aligned_without_trailing_blanks() -> None:
    assert plain(SMALL) == "name    value  note\na        1.00\n\nlonger  10.00  x\n"


def test_a_pipe_gets_the_plain_table() -> None:
    stream = io.StringIO()
    print_table(SMALL, stream)
    assert stream.getvalue() == plain(SMALL)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_every_cell_too() -> None:
    stream = Terminal()
    print_table(SMALL, stream)
    assert all(word in stream.getvalue() for word in ("name", "longer", "10.00", "x"))


def on_a_terminal(table: Table, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of a table on a terminal of that width."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    print_table(table, stream)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in stream.getvalue().splitlines()]
    assert max(map(len, lines)) <= columns
    return lines


@pytest.mark.parametrize("columns", [60, 80, 120, 400])
def test_on_a_narrow_terminal_a_wide_table_is_printed_in_pieces_with_every_cell_whole(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = study(2, "tmpfs")
    table = compare_table(found, found.variants[1])
    lines = on_a_terminal(table, columns, monkeypatch)
    for row in table.rows:
        found = [line for line in lines if row and line.strip().startswith(row[0])]
        for cell in row:
            assert any(cell in line for line in found), (columns, row[0], cell)


def test_a_wide_terminal_has_the_table_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_a_terminal(SMALL, 80, monkeypatch)
    assert sum("longer" in line for line in lines) == 1


def test_prose_wraps_beside_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    prose = "assumed: " + "a long reason " * 8
    table = Table((Column("name"), Column("source")), (("machine.disk.sda.rpm", prose),))
    lines = on_a_terminal(table, 60, monkeypatch)
    assert sum("machine.disk.sda.rpm" in line for line in lines) == 1
    assert " ".join(" ".join(lines).split()).count("a long") == 8


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2030, "2030"),
        (187.04, "187.0"),
        (10.86, "10.86"),
        (0.0, "0.00"),
        (-0.001, "0.00"),
        (-3.14159, "-3.14"),
    ],
)
def test_a_figure_has_about_four_digits(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_change_has_a_sign_unless_it_is_none() -> None:
    assert [signed(value) for value in (1.5, -1.5, 0.0, -0.0001)] == [
        "+1.50",
        "-1.50",
        "0.00",
        "0.00",
    ]


RUN_GOLDEN = """\
figure                  simulated  unit          recorded  verdict
messages_accepted            2030  messages          2030  agrees
duration_s                  187.0  s                  187  agrees
throughput_per_s            10.86  /s                  11  agrees
port_refused_s              60.00  s         some minutes  agrees
load1_peak                  37.00  tasks               37  agrees
tasks_iowait                 1.00  tasks
cpu_idle_pct_min            72.25  %                   69  agrees
cpu.user_pct                 6.00  %                 5.49  agrees
cpu.system_pct               0.00  %                 4.85  off by -100 %
cpu.iowait_pct              21.75  %                20.86  agrees
cpu.idle_pct                72.25  %
cpu.iowait_of_util           0.23

disk.sdb.w_per_s              173  /s               173.1  agrees
disk.sdb.wrqm_per_s           692  /s               759.5  agrees
disk.sdb.avgrq_sectors      44.00  sectors          44.66  agrees
disk.sdb.avgqu_sz            3.80                   3.995  agrees
disk.sdb.await_ms           23.00  ms               22.96  agrees
disk.sdb.svctm_ms            5.49  ms               5.465  agrees
disk.sdb.util_pct           95.00  %                94.56  agrees
disk.sdb.wrqm_per_w          4.00
"""


def test_a_run_stands_beside_its_recording() -> None:
    assert plain(run_table(study().variants[0])) == RUN_GOLDEN


def test_a_figure_that_the_calibration_uses_says_so() -> None:
    base = study().variants[0]
    scenario = replace(base.scenario, plan=load("sendmail").plan)
    text = plain(run_table(replace(base, scenario=scenario)))
    verdicts = {line.split()[0]: line.split("  ")[-1].strip() for line in text.splitlines() if line}
    assert verdicts["duration_s"] == "agrees (fitted)"
    assert verdicts["cpu.system_pct"] == "off by -100 % (fitted)"
    assert verdicts["disk.sdb.await_ms"] == "agrees"  # left out of the fit


def test_agreement_that_says_nothing_says_what_it_is() -> None:
    """An input, what is so by construction, and what follows from fitted figures."""
    base = study().variants[0]
    scenario = replace(base.scenario, plan=load("sendmail").plan)
    text = plain(run_table(replace(base, scenario=scenario)))
    verdicts = {line.split()[0]: line.split("  ")[-1].strip() for line in text.splitlines() if line}
    assert verdicts["messages_accepted"] == "(input)"
    assert verdicts["throughput_per_s"] == "(follows from fitted)"
    assert verdicts["cpu_idle_pct_min"] == "(follows from fitted)"


def test_what_is_not_fitted_directly_is_what_the_plan_leaves_to_the_twin() -> None:
    """Of the plan's left-out figures those whose agreement could have failed."""
    base = study().variants[0]
    base = replace(base, scenario=replace(base.scenario, plan=load("sendmail").plan))
    assert not_fitted(base) == ["disk.sdb.await_ms", "disk.sdb.avgqu_sz"]
    listed = "not fitted directly (base): disk.sdb.await_ms, disk.sdb.avgqu_sz"
    assert listed in notes([base]).splitlines()


def test_a_withheld_figure_shows_its_outcome_and_never_agrees() -> None:
    spec = RecordedSpec(figures="same_disk", folder=data_sets()["lvm-snapshot"])
    figure_ = load_figures(spec).figures["dd_real_s"]
    assert (figure_.value, figure_.text) == (None, "365.185")
    assert figure_.verdict(365.185, "s") == "outcome, off by +0 %"
    assert figure_.verdict(182.6, "s") == "outcome, off by -50 %"


def test_several_replications_show_mean_and_median_with_their_intervals_and_the_range() -> None:
    lines = plain(run_table(study(5).variants[0])).splitlines()
    headings = "figure mean 90 % interval median 90 % interval range of runs unit recorded verdict"
    assert " ".join(lines[0].split()) == headings
    row = next(line for line in lines if line.startswith("duration_s"))
    between = "187.0 .. 187.0"
    assert (
        " ".join(row.split())
        == f"duration_s 187.0 {between} 187.0 {between} {between} s 187 agrees"
    )


@pytest.mark.parametrize(("runs", "too_few"), [(2, 2), (3, 1), (4, 1), (5, 0)])
def test_too_few_runs_have_no_interval_and_say_so(runs: int, too_few: int) -> None:
    """A mean's interval takes three runs, a median's five."""
    lines = plain(run_table(study(runs).variants[0])).splitlines()
    row = next(line for line in lines if line.startswith("duration_s"))
    assert row.count("too few") == too_few


def test_a_range_says_how_often_one_more_run_lies_in_it() -> None:
    """Of n + 1 equal runs the last is at neither end (n - 1) of (n + 1) times."""
    assert spread_note(5).endswith(
        "the greatest of 5, where one more run would lie 67 times in a hundred"
    )


def test_an_output_begins_with_scenario_seed_version_and_command() -> None:
    found = study(2, "tmpfs")
    assert heading(found.variants[1], found.version, "iotwin run sendmail") == (
        "sendmail: A mail storm\nwhat-if tmpfs: The queue on tmpfs\n"
        f"seed 7, 2 replications, iotwin {found.version}\n$ iotwin run sendmail\n"
    )


def test_the_notes_say_which_reports_and_what_kind_of_figures() -> None:
    text = notes(study(1, "tmpfs").variants)
    assert (
        "recorded (base): sendmail, queue on the 15K disk (reproduction: parameters may have"
        in text
    )
    assert "recorded (tmpfs): sendmail, queue on tmpfs" in text
    assert "mean of iostat's 37 full reports of 5 s, from 30 s to 215 s" in text


def test_what_changes_nothing_is_told_and_memory_that_was_never_filled() -> None:
    base, variant = study(2, "tmpfs").variants
    assert "same figures" not in notes((base, variant))
    same = replace(variant, replications=base.replications)
    said = "base and tmpfs have the same figures: what they differ in changes nothing here"
    assert notes((base, same)).splitlines()[0] == said
    server = replace(same.scenario.server, memory_bytes=2**36)
    more = replace(same, scenario=replace(same.scenario, server=server))
    assert notes((base, more)).startswith(f"{said}; the page cache is empty at the start")


def test_a_comparison_shows_the_paired_change() -> None:
    found = study(3, "tmpfs")
    lines = plain(compare_table(found, found.variants[1])).splitlines()
    row = next(line for line in lines if line.startswith("duration_s"))
    numbers = "187.0 ± 0.0 187 34.01 ± 0.00 34 -153 ± 0 -82 %"
    assert " ".join(row.split()) == f"duration_s s {numbers}"
    assert "±: the mean of all such runs" in notes(found.variants)


def test_a_mean_goes_with_half_its_interval() -> None:
    """Of 10, 11 and 12: mean 11, standard error 1/sqrt(3), times t(0.95, 2) = 2.920: 1.69."""
    found = study(3, "tmpfs")
    spread = summarise_all([{"load1": value} for value in (10.0, 11.0, 12.0)], {"load1": "tasks"})
    base, variant = (replace(one, metrics=spread) for one in found.variants)
    lines = plain(compare_table(replace(found, variants=(base, variant)), variant)).splitlines()
    row = next(line for line in lines if line.startswith("load1"))
    assert row.count("11.00 ± 1.69") == 2


@pytest.mark.parametrize("runs", [1, 2])
def test_too_few_runs_have_no_half_interval(runs: int) -> None:
    found = study(runs, "tmpfs")
    assert "±" not in plain(compare_table(found, found.variants[1])) + notes(found.variants)


def test_a_comparison_without_recordings_has_no_columns_for_them() -> None:
    found = study(3, "tmpfs")
    base, variant = (replace(one, recorded=()) for one in found.variants)
    table = compare_table(replace(found, variants=(base, variant)), variant)
    headings = ["figure", "unit", "base", "tmpfs", "change", "change %"]
    assert [column.heading for column in table.columns] == headings


def test_a_comparison_names_the_figures_that_change_by_more_than_chance() -> None:
    variant = study(3, "tmpfs").variants[1]
    assert variant.change is not None
    named = changes_text(variant)
    test = f"paired t, Holm's correction for {len(variant.change)} figures, 10 %"
    assert named.startswith(f"changed by more than chance ({test}): ")
    assert "duration_s" in named
    assert "cpu.system_pct" not in named  # 0 in both
    assert max(map(len, named.splitlines())) <= 100
    alike = changes_text(replace(variant, named=()))
    assert alike == f"changed by more than chance ({test}): no figure\n"


@pytest.mark.parametrize(("runs", "said"), [(1, "1 replication"), (2, "2 replications")])
def test_fewer_than_three_runs_cannot_tell_a_change(runs: int, said: str) -> None:
    told = changes_text(study(runs, "tmpfs").variants[1])
    assert told == f"changed by more than chance ({said}, of at least 3): too few to tell\n"


def test_a_single_replication_shows_no_intervals() -> None:
    found = study(1, "tmpfs")
    lines = plain(compare_table(found, found.variants[1])).splitlines()
    row = next(line for line in lines if line.startswith("port_refused_s"))
    expected = "port_refused_s s 60.00 some minutes 0.00 never -60.00 -100 %"
    assert " ".join(row.split()) == expected


def test_a_disk_figure_that_is_always_zero_has_no_row() -> None:
    found = study(1, "tmpfs")
    assert "disk.sdb.r_per_s" in found.variants[0].metrics
    assert "disk.sdb.r_per_s" not in plain(compare_table(found, found.variants[1]))
