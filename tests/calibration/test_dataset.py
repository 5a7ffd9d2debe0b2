"""Data sets: every recording of a case conforms, and a wrong one is explained."""

import os
from pathlib import Path

import pytest

from calibration.dataset import (
    DATASET,
    load_data_set,
    open_source,
    recorded_files,
    sha256_of,
)
from calibration.record import HOST, PROC
from sim.scenario import RecordedSpec
from sim.scenario.calibrate import recorded_metrics
from sim.scenario.cases import data_sets
from sim.study.recorded import DatasetError, Figure, load_figures

CASES = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "cases"
TEN_CASES = {
    "sendmail",
    "factomd",
    "exim-io",
    "amavisd",
    "cacti",
    "lvm-snapshot",
    "ec2-volumes",
    "r3-swap",
    "web-governor",
    "mysql-oom",
    "nfs-backup",
    "tunnel",
}


def figures(name: str) -> list[tuple[str, str, Figure]]:
    """Return (set, metric, figure) of every figure of a data set."""
    return [
        (found.name, metric, one)
        for chosen in recorded_metrics(data_sets()[name])
        for found in [load_figures(RecordedSpec(figures=chosen, folder=data_sets()[name]))]
        for metric, one in found.figures.items()
    ]


def test_every_case_is_a_data_set() -> None:
    assert set(data_sets()) >= TEN_CASES


@pytest.mark.parametrize("name", data_sets())
def test_every_raw_file_is_as_it_was_recorded(name: str) -> None:
    data = load_data_set(data_sets()[name])
    there = {path.name for path in data.folder.iterdir()} - {DATASET}
    assert there == {*data.files, *data.attachments} == set(data.sha256)
    assert {file: sha256_of(data.folder / file) for file in there} == dict(data.sha256)


@pytest.mark.parametrize("name", data_sets())
def test_every_line_of_the_raw_files_is_understood(name: str) -> None:
    for recording in load_data_set(data_sets()[name]).recordings():
        assert recording.problems == ()
        assert recording.samples


@pytest.mark.parametrize("name", data_sets())
def test_every_figure_has_bounds_around_it_or_is_words_or_withheld(name: str) -> None:
    assert figures(name)
    for chosen, metric, one in figures(name):
        where = f"{chosen}.{metric}"
        if one.low is None or one.high is None:
            assert one.value is None, where
            assert one.text, where
        else:
            assert one.low <= (one.low if one.value is None else one.value) <= one.high, where


@pytest.mark.parametrize("name", data_sets())
def test_a_withheld_figure_asks_and_is_for_prediction(name: str) -> None:
    for chosen, metric, one in figures(name):
        if one.withheld:
            assert one.withheld.endswith("?"), metric
            assert (
                load_figures(RecordedSpec(figures=chosen, folder=data_sets()[name])).kind
                == "prediction"
            )


@pytest.mark.parametrize("name", ["sendmail", "factomd", "exim-io"])
def test_raw_files_are_those_of_the_cases(name: str) -> None:
    if not CASES.is_dir():
        pytest.skip(f"no {CASES}: set IOTWIN_SHARED")
    for path in (CASES / name).iterdir():
        assert (data_sets()[name] / path.name).read_bytes() == path.read_bytes()


def test_figures_of_factomd_are_means_of_its_three_reports() -> None:
    read = load_data_set(data_sets()["factomd"]).recordings()[0]
    known = {metric: one for _set, metric, one in figures("factomd") if metric.startswith("disk.")}
    assert len(known) == 30
    for metric, one in known.items():
        _disk, device, column = metric.split(".")
        values = [sample.value for sample in read.select(column, device)]
        assert len(values) == 3
        assert one.value == pytest.approx(sum(values) / 3, rel=1e-3, abs=1e-9), metric
        assert one.low is not None and one.high is not None
        assert one.low == pytest.approx(0.9 * min(values), rel=1e-3, abs=1e-9), metric
        assert one.high == pytest.approx(min(1.1 * max(values), 1e12), rel=1e-3, abs=1e-9), metric


def test_nothing_agrees_with_words_or_with_what_is_withheld() -> None:
    words = Figure(value=None, text="drastic decrease", low=None, high=None)
    kept = Figure(value=None, text="withheld", low=None, high=None, withheld="how fast?")
    assert words.verdict(1.0, "s") == "words only"
    assert kept.verdict(1.0, "s") == "withheld"


# -- A folder of one's own.

GOOD = """\
title = "a host"
kernel = "2.6.32-1"
cpus = 2
memory = "8 GiB"
interval = "5 s"
files = ["uptime.txt"]

[sha256]
"uptime.txt" = "{sha256}"
"""
UPTIME = " 05:11:56 up 3 days, 4:05,  1 user,  load average: 1.55, 1.73, 1.67\n"


def folder(path: Path, text: str = GOOD) -> Path:
    """Make a data set."""
    path.mkdir(exist_ok=True)
    (path / "uptime.txt").write_text(UPTIME)
    (path / DATASET).write_text(text.format(sha256=sha256_of(path / "uptime.txt")))
    return path


def test_what_the_text_lacks_is_taken_from_the_description(tmp_path: Path) -> None:
    source = open_source([str(folder(tmp_path / "mine"))])
    expected = {"kernel": "2.6.32-1", "cpus": "2", "interval_s": "5", "memory_bytes": str(8 << 30)}
    assert {name: source.facts[name] for name in expected} == expected


def test_the_command_of_the_description_tells_the_readers_units(tmp_path: Path) -> None:
    path = folder(tmp_path / "mine", GOOD.replace("cpus = 2", 'command = "iostat 5; free -m"'))
    (path / "uptime.txt").write_text("   total used free shared buffers cached\nMem: 5 2 3 0 1 1\n")
    text = (path / DATASET).read_text().splitlines(keepends=True)
    hashed = f'"uptime.txt" = "{sha256_of(path / "uptime.txt")}"\n'
    (path / DATASET).write_text("".join([*text[:-1], hashed]))
    [read] = open_source([str(path)]).recordings
    assert [one.value for one in read.select("mem_total_bytes")] == [5 << 20]
    assert read.facts["command"] == "iostat 5; free -m"


def test_a_changed_raw_file_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "mine")
    (path / "uptime.txt").write_text(UPTIME.replace("1.55", "1.65"))
    with pytest.raises(DatasetError, match=r"uptime\.txt: changed since it was recorded"):
        open_source([str(path)])


MISTAKES = [
    ("cpus = 2", "cpsu = 2", "3:1: error: unknown key 'cpsu' - did you mean 'cpus'?"),
    ("cpus = 2", 'cpus = "two"', "3:1: error: cpus is a whole number"),
    ('"8 GiB"', '"8 s"', "4:1: error: expected a size, but 's' is a unit of a time"),
    ('"2.6.32-1"', '"SLES"', "2:1: error: no kernel release, got"),
    ('title = "a host"\n', "", "1:1: error: a data set needs a title"),
    ('["uptime.txt"]', '["../uptime.txt"]', "6:1: error: '../uptime.txt' is not the name of a"),
    ('["uptime.txt"]', '["other.txt"]', "6:1: error: 'other.txt' has no SHA-256 in [sha256]"),
    ('["uptime.txt"]', "[1]", "6:1: error: files is a list of texts"),
    ("cpus = 2", "cpus = = 2", "not valid TOML"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    path = folder(tmp_path / "mine", GOOD.replace(old, new))
    with pytest.raises(DatasetError) as caught:
        load_data_set(path)
    assert str(caught.value).startswith(str(path / DATASET))
    assert message in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    path = folder(tmp_path / "mine")
    (path / "uptime.txt").unlink()
    with pytest.raises(DatasetError, match=r"no file uptime\.txt beside it"):
        open_source([str(path)])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sendmial", "no file, folder or data set 'sendmial' - did you mean 'sendmail'?"),
        (".", "neither a data set (no dataset.toml) nor of iotwin record"),
    ],
)
def test_a_place_without_a_recording_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError) as caught:
        open_source([name])
    assert message in str(caught.value)


def test_what_lies_beside_a_recording_is_no_part_of_it(tmp_path: Path) -> None:
    """A folder where twins are made: scratch files come and go, and a FIFO would never end."""
    for name in (PROC, HOST, ".iotwin.scratch", "here.twin.toml"):
        (tmp_path / name).write_text("")
    assert recorded_files([str(tmp_path)]) == [tmp_path / HOST, tmp_path / PROC]


def test_the_files_of_a_case_are_those_of_its_data_set() -> None:
    folder = data_sets()["sendmail"]
    found = {path.name for path in recorded_files(["sendmail"])}
    assert found == {DATASET, *load_data_set(folder).files} | (
        {HOST} if (folder / HOST).is_file() else set()
    )
