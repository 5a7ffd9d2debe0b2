"""iotwin import: what it finds out, what it asks for, and that it never leaves half a folder."""

import gzip
import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from calibration import importing
from calibration.dataset import load_data_set, open_source
from calibration.importing import ASKED, Draft, examine, write
from sim.cli.main import cli
from sim.scenario.cases import data_sets
from sim.study.recorded import DatasetError

FACTOMD = data_sets()["factomd"]
RAW = sorted(path for path in FACTOMD.iterdir() if path.suffix == ".txt")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["import", *arguments], prog_name="iotwin")


def refused(*arguments: str) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    return result.stderr


def test_the_texts_say_what_they_can() -> None:
    draft = examine(RAW)
    found = draft.found
    assert draft.name == "ip-10-185-21-116"
    assert (found["kernel"], found["cpus"]) == ("2.6.32-131.17.1.el6.x86_64", 1)
    assert (found["arch"], found["hostname"]) == ("x86_64", "ip-10-185-21-116")
    assert found["memory"] == "1695600 KiB"
    assert {"xvdj", "xvde", "xvdk"} <= set(draft.devices)
    assert set(draft.missing) == {"hardware", "command", "interval"}


def test_an_imported_folder_is_a_data_set_with_the_same_recording(tmp_path: Path) -> None:
    place = write(examine(RAW, name="mine", title="a storm"), tmp_path)
    data = load_data_set(place)
    assert (data.name, data.title, data.attachments) == ("mine", "a storm", ())
    for path in RAW:
        assert (place / path.name).read_bytes() == path.read_bytes()
    ours = [s for one in open_source([str(place)]).recordings for s in one.samples]
    before = [s for one in load_data_set(FACTOMD).recordings() for s in one.samples]
    assert {(s.column, s.value) for s in ours} == {(s.column, s.value) for s in before}


def test_what_is_not_in_the_text_stands_as_a_comment_that_may_be_uncommented(
    tmp_path: Path,
) -> None:
    raw = tmp_path / "uptime.log"
    raw.write_text(" 05:11:56 up 3 days, 4:05,  1 user,  load average: 1.55, 1.73, 1.67\n")
    place = write(examine([raw], name="mine"), tmp_path)
    text = (place / "dataset.toml").read_text()
    for key in examine([raw]).missing:
        example = ASKED[key].partition(", as")[0]
        assert f"\n# {key} = {ASKED[key]}  # not in the text" in text
        assert tomllib.loads(f"{key} = {example}")


def test_a_compressed_file_is_copied_as_it_is(tmp_path: Path) -> None:
    raw = tmp_path / "iostat.txt.gz"
    raw.write_bytes(gzip.compress((FACTOMD / "iostat.txt").read_bytes()))
    place = write(examine([raw], name="mine"), tmp_path)
    assert (place / "iostat.txt.gz").read_bytes() == raw.read_bytes()
    assert open_source([str(place)]).facts["cpus"] == "1"


def test_a_file_that_nobody_understands_is_kept_for_people(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("the disk was slow that day\n")
    result = invoke(str(tmp_path / "notes.md"), str(RAW[1]), "-o", str(tmp_path), "--name", "mine")
    assert result.exit_code == 0
    assert "notes.md: kept, but not read: nothing in it is understood" in result.stderr
    assert load_data_set(tmp_path / "mine").attachments == ("notes.md",)


def test_the_command_says_what_it_found_and_what_to_edit(tmp_path: Path) -> None:
    result = invoke(*map(str, RAW), "-o", str(tmp_path), "--name", "mine")
    assert result.exit_code == 0
    assert "kernel       2.6.32-131.17.1.el6.x86_64\n" in result.stdout
    assert "Not in the text: hardware, command, interval." in result.stdout
    assert f"{tmp_path / 'mine' / 'dataset.toml'}: the lines are there" in result.stdout


def test_the_json_says_the_same(tmp_path: Path) -> None:
    result = invoke(*map(str, RAW), "-o", str(tmp_path), "--name", "mine", "--json", "-")
    content = json.loads(result.stdout)
    assert content["found"]["cpus"] == 1
    assert content["missing"] == ["hardware", "command", "interval"]
    assert content["files"]["iostat.txt"] == ["iostat"]


def test_what_is_there_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    told = refused(str(RAW[0]), "-o", str(tmp_path), "--name", "mine")
    assert f"{tmp_path / 'mine'} is there already; name another with --name" in told
    assert list((tmp_path / "mine").iterdir()) == []


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    other = tmp_path / RAW[0].name
    other.write_bytes(RAW[0].read_bytes())
    told = refused(str(RAW[0]), str(other), "-o", str(tmp_path), "--name", "mine")
    assert "two files of the same name" in told


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "it is empty"), (b"\x00\x01\x02" * 100, "it is binary"), (b"hello\n", "nothing in it")],
)
def test_a_file_without_a_recording_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    told = refused(str(tmp_path / "a.txt"), "-o", str(tmp_path), "--name", "mine")
    assert message in told
    assert not (tmp_path / "mine").exists()


def test_mistakes_of_the_command_line_are_told(tmp_path: Path) -> None:
    assert "no file" in refused(str(tmp_path / "nope.txt"))
    assert "no name of a data set: 'A B'" in refused(str(RAW[0]), "--name", "A B")
    assert "no folder" in refused(str(RAW[0]), "-o", str(tmp_path / "nope"))


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_draft: Draft, _folder: Path) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(importing, "_toml", full)
    with pytest.raises(OSError, match="No space"):
        write(examine(RAW, name="mine"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_text_that_toml_must_escape_is_escaped(tmp_path: Path) -> None:
    title = 'a "storm"\\ \x7f\ttab'
    assert load_data_set(write(examine(RAW, name="mine", title=title), tmp_path)).title == title


def test_an_unreadable_name_is_no_name() -> None:
    with pytest.raises(DatasetError, match="accepted: a-z"):
        examine(RAW, name="../mine")


def test_a_command_that_the_user_tells_gives_the_unit_and_is_kept(tmp_path: Path) -> None:
    raw = tmp_path / "memory.log"
    raw.write_text("   total used free shared buffers cached\nMem: 5 2 3 0 1 1\nSwap: 1 0 1\n")
    typed = ("--name", "mine", "--command", "free -m -s 5", "-o", str(tmp_path))
    assert invoke(str(raw), *typed).exit_code == 0
    [read] = open_source([str(tmp_path / "mine")]).recordings
    assert [one.value for one in read.select("swap_total_bytes")] == [1 << 20]
    assert read.facts["command"] == "free -m -s 5"
    assert "none of: cat, date" in refused(str(raw), "--command", "vnstat 5")
