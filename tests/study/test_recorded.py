"""Recorded figures: what the folder says, what the raw text says, and when a run agrees."""

import hashlib
import os
from pathlib import Path
from statistics import fmean

import pytest

from sim.scenario import RecordedSpec
from sim.scenario.cases import data_sets
from sim.study.recorded import DatasetError, load_figures

BEFORE = RecordedSpec(figures="before", folder=data_sets()["sendmail"])
RAW = data_sets()["sendmail"] / "iostat.txt"


def reports(device: str) -> list[dict[str, float]]:
    """Return one device's rows of the raw recording, by column heading."""
    found: list[dict[str, float]] = []
    heading: list[str] = []
    for line in RAW.read_text().splitlines():
        words = line.split()
        if words[:1] in (["Device:"], ["avg-cpu:"]):
            heading = words
        elif words[:1] == [device]:
            found.append(dict(zip(heading[1:], map(float, words[1:]), strict=True)))
        elif device == "avg-cpu:" and heading[:1] == [device] and words:
            found.append(dict(zip(heading[1:], map(float, words), strict=True)))
            heading = []
    return found


COLUMNS = {
    "w_per_s": "w/s",
    "wrqm_per_s": "wrqm/s",
    "avgrq_sectors": "avgrq-sz",
    "await_ms": "await",
    "svctm_ms": "svctm",
    "avgqu_sz": "avgqu-sz",
    "util_pct": "%util",
}


def test_device_figures_are_the_mean_of_the_first_two_reports() -> None:
    for name, figure in load_figures(BEFORE).figures.items():
        _family, _dot, rest = name.partition(".")
        device, _dot, column = rest.partition(".")
        if name.startswith("disk."):
            values = [report[COLUMNS[column]] for report in reports(device)[:2]]
            assert figure.value == pytest.approx(fmean(values), rel=2e-3), name
            assert figure.low <= min(values) and max(values) <= figure.high, name


def test_cpu_figures_are_the_mean_of_the_first_two_reports() -> None:
    figures = load_figures(BEFORE).figures
    rows = reports("avg-cpu:")
    assert len(rows) == 3
    for state in ("user", "system", "iowait"):
        mean = fmean(row[f"%{state}"] for row in rows[:2])
        assert figures[f"cpu.{state}_pct"].value == pytest.approx(mean, rel=2e-3)


def test_the_raw_text_is_untouched() -> None:
    shared = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "cases" / "sendmail"
    if not shared.is_dir():
        pytest.skip("the recorded cases are not beside this checkout (IOTWIN_SHARED)")
    original = (shared / "iostat.txt").read_bytes()
    assert hashlib.sha256(RAW.read_bytes()).digest() == hashlib.sha256(original).digest()


def test_a_figure_within_its_bounds_agrees() -> None:
    figures = load_figures(BEFORE).figures
    assert figures["throughput_per_s"].verdict(10.0, "/s") == "agrees"
    assert figures["throughput_per_s"].verdict(22.0, "/s") == "off by +100 %"
    assert figures["cpu_idle_pct_min"].verdict(73.0, "%") == "agrees"
    assert figures["port_refused_s"].verdict(20.0, "s") == "off by -40 s"


def test_both_states_of_the_server_are_marked_as_reproduction() -> None:
    after = load_figures(RecordedSpec(figures="after", folder=data_sets()["sendmail"]))
    assert (after.kind, after.figures["messages_accepted"].value) == ("reproduction", 2000)


def test_an_unknown_state_names_the_nearest() -> None:
    with pytest.raises(DatasetError, match="did you mean 'before'"):
        load_figures(RecordedSpec(figures="befor", folder=data_sets()["sendmail"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[figures.a", "not valid TOML"),
        ('[figures.a]\nkind = "guess"\n', "kind is one of"),
        ('[figures.a]\nkind = "prediction"\nmetrics.x = { value = 1 }\n', "needs value and within"),
        ('[figures.a]\nkind = "prediction"\nmetrics.x = { value = 1, within = "1 s" }\n', "needs"),
    ],
)
def test_a_wrong_data_set_is_explained(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "dataset.toml").write_text(text)
    with pytest.raises(DatasetError, match=message):
        load_figures(RecordedSpec(figures="a", folder=tmp_path / "d"))
