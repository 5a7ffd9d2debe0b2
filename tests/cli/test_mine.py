"""`iotwin mine`: a known server, told, twinned and asked; its doubled load is the true one."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from calibration.dataset import open_source
from calibration.look import Look, look
from calibration.look.brief import LINES_MAX, brief
from calibration.look.checks import Finding
from calibration.look.tasks import LOAD_AVERAGE, SAMPLES, Active, settled
from calibration.record import held, record
from calibration.twin.answers import (
    CPU_BUSY,
    LOAD_MEAN,
    WRITTEN_LATER,
    Answer,
    Answers,
    answers_table,
    limits_of,
    outside_limits,
    sentence,
)
from calibration.twin.columns import figures_of
from calibration.twin.draft import EXPIRE_S, Draft
from calibration.twin.fitting import draw_draft
from calibration.twin.questions import Question, QuestionError, offered, read_question
from calibration.twin.verdict import Miss, Verdict
from sim.cli import mining
from sim.cli.main import cli
from sim.study.trial import Figures
from tests.calibration.recorded_twin import record_run, run_truth
from tests.calibration.test_twin_draft import NEW, new_row, seen_of, text

VMSTAT = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
"""
# figure -> how far the prediction of twice the load may be from the server that really bears it
DOUBLED = {
    "sda r_per_s": 0.08,
    "sda w_per_s": 0.2,
    "sda r_await_ms": 0.25,
    "sda w_await_ms": 0.35,
    "sda util_pct": 0.2,
}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record the known server."""
    return record_run(run_truth(), tmp_path_factory.mktemp("mine") / "known")


@pytest.fixture(scope="module")
def seen(known: Path) -> Look:
    """Look at it."""
    return look(open_source([str(known)]))


@pytest.fixture(scope="module")
def draft(seen: Look) -> Draft:
    """Draft its twin."""
    return draw_draft(seen, 1)


def mine(folder: Path, *arguments: str) -> Result:
    """Run `iotwin mine` so that its twin goes into a folder."""
    place = str(folder / "mine.toml")
    return CliRunner().invoke(cli, ["mine", *arguments, "-o", place], prog_name="iotwin")


@pytest.fixture(scope="module")
def told(known: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, dict[str, Any]]:
    """Ask it for twice the load; return what is printed, and the JSON."""
    folder = tmp_path_factory.mktemp("told")
    path = folder / "mine.json"
    options = ("--simulations", "32", "--members", "8", "--json", str(path))
    result = mine(folder, str(known), "--what-if", "load=2", *options)
    return result, json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("column", DOUBLED)
def test_twice_the_load_is_what_the_true_server_shows(
    told: tuple[Result, dict[str, Any]], column: str
) -> None:
    name = "disk." + column.replace(" ", ".")
    found = told[1]["metrics"][name]
    true = figures_of(run_truth("double_load"))[column]
    assert found["median"] == pytest.approx(true, rel=DOUBLED[column])
    assert found["lo"] <= found["median"] <= found["hi"]


def test_a_load_that_nobody_recorded_is_called_the_twins(seen: Look, draft: Draft) -> None:
    runs = [{"disk.sda.util_pct": 40.0, LOAD_MEAN: 3.0}]
    today = answered(question=None, runs=runs)
    then = answered(question=read_question("load=2", draft), runs=runs)
    bare = replace(seen, system=replace(seen.system, tasks=None))
    assert "the twin's load average (none was recorded) settles" in sentence(
        then, today, bare, draft
    )
    assert ", and the load average settles" in sentence(then, today, seen, draft)
    heads = [
        [one.heading for one in answers_table(Answers(today=today, asked=[then]), of).columns][-1]
        for of in (bare, seen)
    ]
    assert heads == ["twin's load", "load"]


def test_programs_that_wait_for_longer_do_not_make_a_load_too_high(
    seen: Look, draft: Draft
) -> None:
    """Requests that come are all served; of as many programs each gets less done. It holds."""
    question = read_question("load=2", draft)
    today = answered(question=None, runs=[asked_for(100), asked_for(100)])
    then = answered(question=question, runs=[asked_for(200), asked_for(150)], waits=[False, True])
    assert " It holds. " in sentence(then, today, seen, draft)
    full = replace(then, served=[1.5, 1.5])
    assert " It does not hold: 1.5 times today's load is served. " in sentence(
        full, today, seen, draft
    )


@pytest.mark.parametrize(
    ("question", "utils", "told"),
    [
        ("load=2", (70, 80), "It holds."),
        ("load=2", (92, 99), "All of it is served; how much more sda can do, its %util does not"),
        ("nvme+load=2", (92, 99), "All of it is served; how much more sda can do, its %util does"),
        ("disk_7200+load=2", (70, 80), "It holds."),
        ("disk_7200+load=2", (70, 96), "but sda may be at its limit, up to 96 % busy."),
        ("disk_7200+load=2", (92, 99), "All of it is served, but sda is at its limit, 96 % busy."),
    ],
)
def test_nothing_holds_that_is_at_its_limit(
    seen: Look, draft: Draft, question: str, utils: tuple[float, float], told: str
) -> None:
    """The known disk serves two at a time: busy all the time, it may have room for more."""
    today = answered(question=None, runs=[asked_for(100)] * 2)
    runs = [asked_for(200) | {"disk.sda.util_pct": float(one)} for one in utils]
    said = sentence(
        answered(question=read_question(question, draft), runs=runs), today, seen, draft
    )
    assert told in said
    assert ("It holds" in said) == (told == "It holds.")


def test_no_load_holds_that_fills_the_cpus(seen: Look, draft: Draft) -> None:
    """Time of niced tasks makes room; all other time does not."""
    today = answered(question=None, runs=[asked_for(100)])
    for name, holds in (("nice_pct", True), ("system_pct", False)):
        run = asked_for(200) | {"cpu.user_pct": 40.0, f"cpu.{name}": 55.0}
        then = answered(question=read_question("load=2", draft), runs=[run])
        said = sentence(then, today, seen, draft)
        assert ("It holds." in said) == holds
        assert ("but the CPUs are at their limit, 95 % busy." in said) != holds


def test_cpus_are_no_busier_than_all_of_their_time(seen: Look, draft: Draft) -> None:
    """User and system are tied to their recorded shares one by one."""
    today = answered(question=None, runs=[asked_for(100)])
    run = asked_for(200) | {"cpu.user_pct": 70.0, "cpu.system_pct": 40.0}
    then = answered(question=read_question("load=2", draft), runs=[run])
    assert "the CPUs are at their limit, 100 % busy." in sentence(then, today, seen, draft)


def test_an_answer_without_fsync_says_what_its_run_has_not(seen: Look, draft: Draft) -> None:
    """A flusher writes what is 30 s old; a run that waits for that in its warm-up has it."""
    runs = [asked_for(100)]
    today = answered(question=None, runs=runs)
    then = answered(question=read_question("no_fsync", draft), runs=runs)
    assert draft.settle_s < EXPIRE_S
    assert sentence(then, today, seen, draft).endswith(WRITTEN_LATER)
    assert WRITTEN_LATER not in sentence(then, today, seen, replace(draft, settle_s=EXPIRE_S))
    other = answered(question=read_question("nvme", draft), runs=runs)
    assert WRITTEN_LATER not in sentence(other, today, seen, draft)


@pytest.mark.parametrize("question", ["double_cpus", "half_cpus", "fast_cpus", "cpus=8"])
def test_an_answer_about_cpus_says_how_busy_they_are(
    seen: Look, draft: Draft, question: str
) -> None:
    today = answered(question=None, runs=[asked_for(100) | {CPU_BUSY: 32.0}])
    runs = [asked_for(100) | {CPU_BUSY: 16.0}]
    then = answered(question=read_question(question, draft), runs=runs)
    assert ": the CPUs are 16 % busy (16 .. 16) instead of 32 %, sda" in sentence(
        then, today, seen, draft
    )
    other = answered(question=read_question("nvme", draft), runs=runs)
    assert "the CPUs" not in sentence(other, today, seen, draft)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, "the twin's load average (none was recorded) settles at 4 (4 .. 4) instead of 2."),
        (Active(mean=1.95, error=0.1, source=LOAD_AVERAGE, readings=24), "4) instead of 2."),
        (
            Active(mean=1.5, error=0.5, source=LOAD_AVERAGE, readings=24),
            "4) instead of 2, where the readings found 1.5.",
        ),
        (
            Active(mean=1.5, error=0.5, source=SAMPLES, readings=120),
            "(none was recorded: vmstat's r and b, and who else waits in the twin) settles at 4 (",
        ),
    ],
)
def test_an_answer_says_where_its_load_average_is_from(
    seen: Look, draft: Draft, told: Active | None, said: str
) -> None:
    """Below it the recorded one is another number: the sentence says why."""
    recorded = replace(seen, system=replace(seen.system, tasks=told))
    today = answered(question=None, runs=[asked_for(100) | {LOAD_MEAN: 2.0}])
    runs = [asked_for(200) | {LOAD_MEAN: 4.0}]
    then = answered(question=read_question("load=2", draft), runs=runs)
    assert said in sentence(then, today, recorded, draft)


@pytest.mark.parametrize(("name", "same"), [("double_load", "load=2"), ("half_load", "load=0.5")])
def test_a_load_is_asked_in_one_way_whatever_it_is_called(
    draft: Draft, name: str, same: str
) -> None:
    assert replace(read_question(name, draft), name=same) == read_question(same, draft)


def test_what_is_no_twin_for_one_column_may_be_asked_for_the_others() -> None:
    far, near = (Miss(metric=f"sda {name}", off=9.0, trusts=9.0) for name in ("util_pct", "x"))
    fair = Miss(metric="sda r_per_s", off=0.0, trusts=0.0)
    told = mining.warning_about(Verdict(misses=(far, fair)))
    assert told == "Not to plan by where they tell of sda util_pct:"
    assert "what is not a twin" in mining.warning_about(Verdict(misses=(far, near, fair)))


def test_what_is_left_out_and_what_is_wrong_is_told(seen: Look) -> None:
    lines = brief(replace(seen, outliers={3: "sda 900 reads/s, usually 150"}))
    assert lines[-1] == (
        "Interval 4 is unlike the others (sda 900 reads/s, usually 150): the twin is made without"
        " it."
    )
    assert "Intervals 4, 6 are unlike" in brief(replace(seen, outliers={3: "a", 5: "b"}))[-1]
    wrong = Finding(check="little", severity="wrong", where="sda", text="no")
    for findings, told in (((wrong,), "One finding contradicts"), ((wrong,) * 2, "2 findings")):
        assert brief(replace(seen, outliers={}, findings=findings))[-1].startswith(told)


def test_transactions_that_share_commits_are_all_done(seen: Look, draft: Draft) -> None:
    """Twice as many of them need not be twice the bytes: it holds nevertheless."""
    today = answered(question=None, runs=[asked_for(100)])
    then = answered(question=read_question("load=2", draft), runs=[asked_for(150)])
    assert "It does not hold" in sentence(then, today, seen, draft)
    assert " It holds. " in sentence(replace(then, served=[2.0]), today, seen, draft)


@pytest.mark.parametrize(("util", "holds"), [(40.0, True), (99.0, False)])
def test_a_flushers_bytes_say_that_a_load_is_too_high_only_if_something_may_be_full(
    util: float, *, holds: bool
) -> None:
    """A checkpoint may write as much as today: then twice the load is not twice the bytes."""
    seen = seen_of(text(new_row("sda", w=50, size_kib=128, flushes=0), heading=NEW, reports=20))
    draft = draw_draft(seen, 1)
    today = answered(question=None, runs=[asked_for(100)])
    runs = [asked_for(150) | {"disk.sda.util_pct": util}]
    then = replace(
        answered(question=read_question("load=2", draft), runs=runs), served=[2.0], waits=[False]
    )
    assert ("It does not hold: 1.5" in sentence(then, today, seen, draft)) is not holds


def test_what_is_full_first_is_said_of_the_server_that_was_recorded(
    seen: Look, draft: Draft
) -> None:
    """Its disk is: not with another disk in its place, and not first at five times the load."""
    today = answered(question=None, runs=[asked_for(100)])

    def said(question: str) -> str:
        then = answered(question=read_question(question, draft), runs=[asked_for(1000)])
        return sentence(then, today, seen, draft)

    most = min(limits_of(seen).values())
    assert f"full first, at {most:.2g} times today's load" in said("load=1.1")
    assert f"full from {most:.2g} times today's load on" in said("load=5")
    assert "All of it is served. " in said("load=5")
    assert "It holds." not in said("load=5")
    assert "full" not in said("nvme+load=5")


@pytest.mark.parametrize(
    ("device", "asked", "is_told"),
    [("vda", ["load=2"], True), ("vda", ["load=0.5", "nvme"], False), ("sda", ["load=2"], False)],
)
def test_a_limit_that_is_set_on_a_virtual_disk_from_outside_is_in_no_recording(
    draft: Draft, device: str, asked: list[str], *, is_told: bool
) -> None:
    [load] = draft.loads
    here = replace(draft, loads=[replace(load, device=replace(load.device, name=device))])
    questions = [read_question(text, draft) for text in asked]
    told = outside_limits([answered(question=one, runs=[]) for one in questions], here)
    assert (f" A limit that {device} may have from outside" in told) is is_told


def test_what_is_full_today_is_called_so(seen: Look, draft: Draft) -> None:
    cpu = replace(seen.cpu, shares_pct={"user_pct": 80.0, "system_pct": 8.0}, busy=0.88)
    today = answered(question=None, runs=[asked_for(100)])
    then = answered(question=read_question("load=2", draft), runs=[asked_for(200)])
    said = sentence(then, today, replace(seen, cpu=cpu), draft)
    assert " All of it is served. The CPUs are full today. " in said
    shares = {"user_pct": 30.0, "system_pct": 15.0, "nice_pct": 55.0}
    cpu = replace(seen.cpu, shares_pct=shares, busy=1.0)
    beside = replace(seen, cpu=cpu, devices=())
    said = sentence(then, today, beside, draft)
    assert "first, at 2 times today's load, if niced programs make room. Whether" in said


def answered(
    *, question: Question | None, runs: Sequence[Figures], waits: Sequence[bool] = ()
) -> Answer:
    """Return an answer whose transactions each read as much, where today's read 100 MB a second."""
    served = [one.get("disk.sda.r_bytes_per_s", 0.0) / 1e8 for one in runs]
    return Answer(question=question, runs=runs, waits=waits, served=served)


def asked_for(mb_per_s: float) -> dict[str, float]:
    """Return a run's figures."""
    return {"disk.sda.util_pct": 40.0, "disk.sda.r_bytes_per_s": 1e6 * mb_per_s}


def test_a_change_that_begins_with_an_article_is_within_the_sentence(
    seen: Look, draft: Draft
) -> None:
    runs = [asked_for(100)]
    today = answered(question=None, runs=runs)
    then = answered(question=read_question("nvme+load=3", draft), runs=runs)
    assert sentence(then, today, seen, draft).startswith("With an NVMe SSD and 3 times the load, ")


@pytest.mark.slow
def test_the_answer_comes_as_lines_sentence_and_table(
    told: tuple[Result, dict[str, Any]],
) -> None:
    result, content = told
    assert result.exit_code == 0
    first, *_rest = content["server"]
    assert result.stdout.startswith(first)
    assert f"- {content['what_ifs']['load=2']['sentence']}\n" in result.stdout
    assert content["sentence"].startswith("With twice the load, sda is ")
    assert "It holds." in content["sentence"]
    table = result.stdout.partition("what if")[2].splitlines()
    assert [line.split()[0] for line in table[1:]] == ["today", "load=2"]
    assert content["metrics"]["load_mean"]["unit"] == "tasks"


def test_a_load_average_tells_the_tasks_that_made_it() -> None:
    """Three tasks for 5 s, 50 s and an hour, from any average; by hand: 2.0, then 2.79, 3.25."""
    for length_s in (5.0, 50.0, 3600.0):
        left = 2.718281828459045 ** (-length_s / 60)
        after = 7.0 * left + 3.0 * (1 - left)
        assert settled(7.0, after, length_s) == pytest.approx(3.0)
    assert settled(2.0, 2.79, 60.0) == pytest.approx(3.25, abs=0.01)


def test_the_server_is_told_in_ten_lines_of_the_looks_figures(seen: Look) -> None:
    lines = brief(seen)
    assert len(lines) <= LINES_MAX
    assert lines[0].startswith("known: Linux 6.1, 2 CPUs, 2 GiB of memory, ")
    [disk] = [line for line in lines if line.startswith("sda ")]
    row = seen.devices[0].row
    assert f"{row['r_per_s']:.1f} reads/s of {row['rareq_bytes'] / 1024:.2f} KiB" in disk
    assert lines[-1].startswith("Short of: ")


def test_a_question_is_a_what_if_and_values_over_it(draft: Draft) -> None:
    one = read_question("nvme+load=3+cpus=8", draft)
    assert (one.what_if, one.load) == ("nvme", 3.0)
    assert one.sets == (
        "process.sda-reads.load_scale=3",
        "process.sda-fsyncs.load_scale=3",
        "machine.cpus=8",
    )
    assert one.words == "An NVMe SSD and 3 times the load and 8 CPUs"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("load=0", "so many times today's, from 0.05 to 100"),
        ("load=twice", "so many times today's"),
        ("load=2+load=3", "'load' is asked twice"),
        ("cpus=2.5", "a whole one from 1 to 1024"),
        ("memory=4 parsec", "memory=4 parsec"),
        ("nvmee", "did you mean 'nvme'?"),
        ("laod=2", "did you mean 'load'?"),
        ("", "known: load=2"),
    ],
)
def test_what_is_no_question_is_refused(draft: Draft, text: str, told: str) -> None:
    with pytest.raises(QuestionError) as caught:
        read_question(text, draft)
    assert told in str(caught.value)


def test_what_is_offered_can_be_asked(draft: Draft) -> None:
    for busy in (None, 0.2, 0.9):
        names = offered(draft, cpu_busy=busy)
        assert names[0] == "load=2"
        assert [read_question(name, draft).name for name in names] == list(names)
        assert ("double_cpus" in names) == (busy == 0.9)


def test_the_cpus_are_full_when_the_utilisation_law_says(seen: Look) -> None:
    shares = seen.cpu.shares_pct
    limits = limits_of(seen)
    assert limits["the CPUs"] == pytest.approx(90 / (shares["user_pct"] + shares["system_pct"]))
    assert "sda" not in limits  # it serves two at a time


@pytest.mark.parametrize(
    ("user_pct", "nice_pct", "stolen_pct", "times"),
    [
        (2, 0, 0, 30),
        (2, 0, 3, 15),  # half of the time in which there was work
        (2, 3, 6, 15),  # niced work makes room, and has its part of what was stolen
    ],
)
def test_what_is_stolen_fills_the_cpus_sooner(
    seen: Look, user_pct: float, nice_pct: float, stolen_pct: float, times: float
) -> None:
    """By hand: 90 / (user + system + their part of the steal)."""
    shares = {"user_pct": user_pct, "nice_pct": nice_pct, "system_pct": 1, "steal_pct": stolen_pct}
    cpu = replace(seen.cpu, shares_pct=shares, busy=sum(shares.values()) / 100)
    assert limits_of(replace(seen, cpu=cpu))["the CPUs"] == pytest.approx(times)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name what was recorded of the server, or --here"),
        (("--for", "1m", "x"), "--for goes with --here"),
        (("--here", "a", "b"), "--here records into one folder"),
        (("nowhere.txt",), "nowhere.txt"),
    ],
)
def test_what_cannot_be_mined_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    result = mine(tmp_path, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr + str(result.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["mine", "twin"])
def test_of_a_recording_without_a_twin_the_recording_is_named_not_the_options(
    tmp_path: Path, command: str
) -> None:
    path = tmp_path / "vmstat.txt"
    row = " 1  0      0 100000   1000  50000    0    0    10    20  100  200  5  2 93  0  0\n"
    path.write_text(VMSTAT + row * 4, encoding="utf-8")
    result = CliRunner().invoke(cli, [command, str(path), "-o", str(tmp_path / "t.toml")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"iotwin: error: {path}: no busy device: the text (vmstat)")


def test_a_wrong_question_is_refused_before_anything_is_simulated(
    known: Path, tmp_path: Path
) -> None:
    result = mine(tmp_path, str(known), "--what-if", "laod=2")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean 'load'?" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/proc/diskstats"), reason="records a Linux host")
def test_an_interrupted_recording_goes_on_and_a_whole_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mining, "INTERVAL_S", 0.1)
    folder = str(tmp_path / "here")
    record(folder, 0.1, 0.1)
    assert held(folder).samples == 2
    assert mining.record_here((folder,), 0.4) == folder
    assert held(folder).samples == 5
    assert mining.record_here((folder,), 0.4) == folder
    assert held(folder).samples == 5
    told = capsys.readouterr().err
    assert f"{folder} is recorded, 5 samples from 2" in told
    assert "s); a longer --for goes on with it, another folder is recorded anew\n" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--what-if", "WRONG"), "no what-if 'WRONG' (known: load=2, cpus=8, memory=32 GiB, ssd, "),
        (("--what-if", "nvmee"), "no what-if 'nvmee' - did you mean 'nvme'?"),
        (("--what-if", "nvme", "--what-if", "load=none"), "load=none: a load is so many times"),
        (("--what-if", "double_load+load=3"), "'load' is asked twice"),
        (("--what-if", "cpus=0"), "cpus=0: a number of CPUs is a whole one from 1 to 1024"),
        (("--what-if", "memory=2 s"), "memory=2 s: expected a size"),
        (("--json", "/nope/x.json"), "cannot write /nope/x.json: no folder /nope"),
    ],
)
def test_what_no_recording_makes_right_is_refused_before_one(
    tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    folder = tmp_path / "here"
    result = mine(tmp_path, "--here", str(folder), "--for", "10m", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert not folder.exists()


def test_a_question_that_the_recording_alone_refuses_keeps_it(known: Path, tmp_path: Path) -> None:
    """Its file system has a journal; that a twin may be asked for one is known before."""
    result = mine(tmp_path, "--here", str(known), "--for", "4s", "--what-if", "journal")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{known} is recorded, " in result.stderr
    assert "no what-if 'journal'" in result.stderr
    assert result.stderr.endswith(f"; what was recorded is kept: iotwin mine {known}\n")
    assert (known / "proc.txt").exists()
