"""Runs, tables, tools and pictures of lessons, on a small server."""

from pathlib import Path

import pytest

from sim.cli.main import cli
from sim.lesson import (
    READING,
    compare,
    cut,
    ensemble,
    look,
    plot,
    printed,
    recording,
    run,
    table,
    tool,
    twin,
)
from sim.lesson.runs import Quantity, UnknownFigureError
from tests.cli.small import SMALL, small_file


@pytest.fixture
def small(tmp_path: Path) -> str:
    return small_file(tmp_path)


def test_a_quantity_is_a_number_with_its_unit() -> None:
    service = Quantity(5.6, "ms")
    assert str(service) == "5.60 ms"
    assert f"{service:.1f}" == "5.6"
    assert type(2 * service) is float


def test_a_run_has_the_figures_of_the_command(small: str) -> None:
    found = run(small)
    assert found["messages_accepted"] == 60
    assert found["disk.sda.util_pct"].unit == "%"
    assert "messages_accepted" in str(found)
    assert len(found.marks("storm_end")) == 1


def test_what_is_asked_twice_is_simulated_once(small: str) -> None:
    first, again = run(small), run(small)
    assert first.result is again.result
    assert compare(small, "slow")["base"].result is first.result


def test_an_edited_file_is_simulated_again(small: str, tmp_path: Path) -> None:
    before = run(small)
    Path(small).write_text(SMALL.replace("messages = 60", "messages = 30"))
    assert before["messages_accepted"] == 60
    assert run(small)["messages_accepted"] == 30


def test_a_change_is_what_set_is_on_the_command_line(small: str) -> None:
    assert run(small, set={"process.blast.messages": 20})["messages_accepted"] == 20


def test_what_programs_count_is_a_rate_from_a_time_on(small: str) -> None:
    # 5000 uses a second as long as none faults: ten times 500 and a tenth of a second's sleep.
    server = run("mysql-oom")
    assert server.per_s("work_done", since="20 s") == pytest.approx(5000, rel=0.01)
    assert server.per_s("work_done", since="20 s").unit == "/s"
    with pytest.raises(ValueError, match="storm_end was noted 1 times from 1 s on"):
        run(small).per_s("storm_end", since="1 s")


def test_variants_stand_beside_each_other(small: str) -> None:
    both = compare(small, "slow")
    assert list(both) == ["base", "slow"]
    assert both["slow"]["disk.sda.await_ms"] > both["base"]["disk.sda.await_ms"]
    assert "slow: A slower disk" in str(both)
    assert "changed by more than chance" not in str(both)


def test_of_several_runs_it_is_told_what_is_more_than_chance(small: str) -> None:
    assert "changed by more than chance" in str(compare(small, "slow", runs=3))


def test_a_figure_that_is_not_there_is_told_with_the_nearest(small: str) -> None:
    with pytest.raises(UnknownFigureError, match=r"no 'messages_acepted' - did you mean 'messages"):
        run(small)["messages_acepted"]
    with pytest.raises(UnknownFigureError, match="the comparison has no 'slwo'"):
        compare(small, "slow")["slwo"]
    with pytest.raises(UnknownFigureError, match=r"known: .*storm_end"):
        run(small).marks("storm_and")


def test_a_table_has_a_row_for_each_value(small: str) -> None:
    rows = table(small, "process.blast.messages", [10, 20], of=["messages_accepted"])
    assert rows.column("messages_accepted") == [10, 20]
    assert "messages_accepted, messages" in str(rows)
    with pytest.raises(UnknownFigureError, match="the table has no"):
        rows.column("messages")


def test_a_table_of_what_ifs_begins_with_the_base(small: str) -> None:
    rows = table(small, what_ifs=["slow"], of=["messages_accepted"])
    assert rows.column("what-if") == ["base", "slow"]


def test_a_table_says_of_what(small: str) -> None:
    with pytest.raises(TypeError, match=r"of=\[...\] names the figures"):
        table(small, what_ifs=["slow"], of=[])


def test_a_tool_prints_what_exec_prints(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    tool("iostat -x 1 2", run(small), at="5 s")
    shown = capsys.readouterr().out
    cli(["exec", small, "--at", "5 s", "--", "iostat", "-x", "1", "2"], standalone_mode=False)
    assert shown == capsys.readouterr().out
    assert shown.count("Device") == 2


def test_a_tool_sees_the_what_if_of_the_run(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    tool("free -m", run(small, set={"machine.memory": "2 GiB"}))
    wide = capsys.readouterr().out
    tool("free -m", small)
    assert wide != capsys.readouterr().out


def test_dd_is_a_tool_as_well(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    tool("dd if=/dev/zero of=/file bs=1M count=2", small)
    assert "2097152 bytes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "at", "message"),
    [("", None, "got an empty one"), ("iostat", "2 h", "not within the run: 0 to 60 s")],
)
def test_a_tool_that_cannot_be_typed_is_told(
    small: str, command: str, at: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tool(command, small, at=at)


def test_a_recording_is_as_it_was_recorded() -> None:
    assert recording("sendmail", "iostat.txt").startswith("Time: ")
    with pytest.raises(LookupError, match="no recording 'sendmial' - did you mean 'sendmail'"):
        recording("sendmial", "iostat.txt")
    with pytest.raises(LookupError, match=r"no text 'iostat' of sendmail - did you mean 'iostat\."):
        recording("sendmail", "iostat")


def test_pictures_are_shown_and_saved(small: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lines = plot(run(small))
    assert lines._repr_png_().startswith(b"\x89PNG")
    curves = plot({"by hand": [(1, 2), (2, 4)], "simulated": [(1, 2), (2, 3)]}, x="load", y="ms")
    [axes] = curves.figure.axes
    assert [line.get_label() for line in axes.get_lines()] == ["by hand", "simulated"]
    curves.save(str(tmp_path / "curves.png"))
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_an_ensemble_has_members_that_can_be_simulated_and_read() -> None:
    members = ensemble("sendmail.before")
    assert len(members) > 100
    think_s = members[0].number("process.blast.think_time", "s")
    assert members[0].number("process.blast.think_time", "ms") == pytest.approx(1000 * think_s)
    with pytest.raises(ValueError, match="not measured in 'GHz'"):
        members[0].number("process.blast.think_time", "GHz")
    with pytest.raises(ValueError, match=r"no fit 'sendmail'.*known: .*sendmail\.before"):
        ensemble("sendmail")


def test_a_power_cut_says_what_is_left(small: str) -> None:
    left = cut(small, at="20 s")
    assert left["messages_accepted"] == sum(
        left[f"messages_{name}"] for name in ("handed_on", "in_mailboxes", "in_queue", "lost")
    )
    assert "the power goes after 20 s" in str(left)
    with pytest.raises(UnknownFigureError, match="did you mean 'messages_lost'"):
        left["message_lost"]
    with pytest.raises(ValueError, match="12"):
        cut(small, at="12")
    with pytest.raises(ValueError, match="not within the run: more than 0, at most"):
        cut(small, at="2 h")


def test_what_is_printed_is_kept_as_a_text(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("iostat -x 1 2", run(small), at="5 s")
    assert capsys.readouterr().out == ""
    tool("iostat -x 1 2", run(small), at="5 s")
    assert capsys.readouterr().out == text


def test_a_look_is_that_of_the_command_and_names_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = recording("sendmail", "iostat.txt")
    monkeypatch.chdir(tmp_path)
    Path("server.txt").write_text(text, encoding="utf-8")
    cli(["look", "server.txt"], standalone_mode=False)
    assert look(text) == capsys.readouterr().out
    with pytest.raises(ValueError, match=r"server\.txt"):
        look("nothing that a reader knows")


def test_a_twin_is_made_once_and_can_be_run_and_asked() -> None:
    pytest.importorskip("scipy")
    text = printed("iostat -t -x 2 6", run("generic", set=READING), at="15 s")
    mine = twin(text)
    assert twin(text) is mine
    assert f"verdict: {mine.verdict}" in str(mine)
    both = compare(mine.scenario, "double_load", set=mine.members[0])
    ratio = both["double_load"]["disk.sda.r_per_s"] / both["base"]["disk.sda.r_per_s"]
    assert ratio == pytest.approx(2, rel=0.1)
