"""The answer in sentences: the numbers of the tables, with what is not known said."""

from dataclasses import replace

from sim.report.answer_text import answer, answer_table, told_figures
from sim.scenario import load
from sim.study.levels import MET, MISSED, NO_DATA, UNDECIDED, Judged, Level
from sim.study.outcome import Study
from sim.study.summary import Summary, summarise
from tests.report.studies import study


def level(figure: str, verdict: str, seen: float | None = None) -> Judged:
    asked = Level(
        figure=figure,
        relation="<",
        limit=12.0,
        share=None,
        unit="tasks",
        quantile=None,
        text=f"{figure} < 12",
    )
    interval = None if seen is None else (seen - 1, seen + 1)
    return Judged(level=asked, verdict=verdict, runs=3, asked=3, seen=seen, interval=interval)


def judged(of: Study, *levels: tuple[Judged, ...]) -> Study:
    """Return the study with levels for each variant."""
    pairs = zip(of.variants, levels, strict=True)
    return replace(of, variants=tuple(replace(one, levels=found) for one, found in pairs))


def told(of: Study, name: str, *summaries: Summary) -> Study:
    """Return the study with one figure for each variant; the change is from the first."""
    variants = [
        replace(one, metrics={name: summary})
        for one, summary in zip(of.variants, summaries, strict=True)
    ]
    return replace(of, variants=tuple(variants))


def test_a_change_is_told_with_both_means_its_interval_and_what_was_recorded() -> None:
    """Storms of 187 s and 34 s and of a millisecond more each seed, on both sides alike."""
    [text] = answer(study(3, "tmpfs"), ["duration_s"])
    assert text == (
        'With "The queue on tmpfs" duration_s is 34.01 s instead of 187.0 s: -153 s, -82 %'
        " (the same in all 3 runs). Recorded: 187 before, 34 after."
    )


def test_a_change_that_scatters_has_the_interval_of_the_change() -> None:
    found = study(3, "tmpfs")
    base, variant = found.variants
    change = {"duration_s": summarise([-150.0, -152.0, -154.0], "s")}
    found = replace(found, variants=(base, replace(variant, change=change, named=())))
    [text] = answer(found, ["duration_s"])
    # Standard deviation 2, three runs: 2.92 x 2 / sqrt(3) = 3.4 to either side.
    assert "-152 s, -81 % (90 % interval of the change: -155.4 .. -148.6)." in text
    assert "That is no more than chance can do." in text


def test_one_run_has_no_interval_and_says_so() -> None:
    [text] = answer(study(1, "tmpfs"), ["duration_s"])
    assert "(1 replication: fewer than 3 have no interval)" in text
    assert "chance" not in text


def test_a_variant_alone_is_told_beside_what_was_recorded() -> None:
    [text] = answer(study(3), ["load1_peak"])
    assert text == ("As it is, load1_peak is 37.00 tasks (the same in all 3 runs); recorded: 37.")


def test_several_what_ifs_are_told_by_their_ends_and_a_row_each() -> None:
    found = study(3, "tmpfs", "tmpfs")
    values = [summarise([value, value + 2e6, value + 4e6], "B/s") for value in (8e6, 2e6, 3e9)]
    found = told(found, "transfer_bytes_per_s", *values)
    [text] = answer(found, ["transfer_bytes_per_s"])
    assert text.startswith("As it is, transfer_bytes_per_s is 10.00 MB/s (90 % interval of the")
    assert "; 4.00 MB/s (0.63 .. 7.37) with" in text
    assert " and 3.00 GB/s (3.00 .. 3.01) with" in text
    assert text.endswith("the least and the greatest of 2 what-ifs.")
    table = answer_table(found, "transfer_bytes_per_s")
    assert [row[2] for row in table.rows] == ["0.01", "0.00", "3.00"]
    assert table.columns[2].heading == "transfer_bytes_per_s, GB/s"


def test_a_figure_that_no_run_has_is_said_to_lack() -> None:
    assert answer(study(3), ["swap_used_bytes"]) == [
        "As it is, no run has the figure swap_used_bytes."
    ]
    [text] = answer(study(3, "tmpfs"), ["swap_used_bytes"])
    assert "no change of swap_used_bytes, which no run has as it is" in text
    assert answer_table(study(3, "tmpfs", "tmpfs"), "swap_used_bytes").rows[1][2:4] == ("-", "-")


def test_a_level_that_all_variants_have_comes_first_in_one_sentence() -> None:
    found = judged(
        study(3, "tmpfs"),
        (level("load1_peak", MISSED, 37.0),),
        (level("load1_peak", MET, 3.0),),
    )
    first, second = answer(found, ["duration_s"])
    assert first == (
        "load1_peak < 12 is missed as it is: 37.00 tasks (36.00 .. 38.00);"
        ' met with "The queue on tmpfs": 3.00 tasks (2.00 .. 4.00) (in brackets: 90 % interval).'
    )
    assert "duration_s" in second


def test_of_several_levels_those_that_are_not_met_are_named() -> None:
    found = judged(
        study(3, "tmpfs"),
        (level("load1_peak", NO_DATA), level("tasks_d", MET, 3.0)),
        (level("load1_peak", UNDECIDED, 12.0), level("tasks_d", MET, 3.0)),
    )
    [text] = answer(found, [])
    assert text == (
        "As it is 1 of 2 service levels are missed, load1_peak < 12: in 3 of 3 runs;"
        ' with "The queue on tmpfs" 1 of 2 service levels are undecided,'
        " load1_peak < 12: 12.00 tasks (11.00 .. 13.00) (in brackets: 90 % interval)."
    )
    [text] = answer(judged(study(3), (level("a", MET, 1.0), level("b", MET, 1.0))), [])
    assert "2 of 2 service levels are met" in text


def test_the_figure_told_by_itself_is_a_time_or_a_rate_and_no_count() -> None:
    scenario = study(1).variants[0].scenario
    assert told_figures(scenario) == ("duration_s",)
    nothing = replace(scenario.measure, programs=(), families=("load",))
    assert told_figures(replace(scenario, measure=nothing)) == ("load1_peak",)


def test_a_response_time_is_told_instead_of_a_rate_which_an_open_stream_only_offers() -> None:
    assert told_figures(load("generic")) == ("transaction_p95_ms",)
    assert told_figures(load("tunnel")) == ("transfer_bytes_per_s",)  # it reports no time
