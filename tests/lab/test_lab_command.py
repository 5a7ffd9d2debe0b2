"""`iotwin lab`: the student's way through a lab, and what is refused with its place."""

import json
import os
from dataclasses import replace

import pytest
from click.testing import CliRunner

import sim
from sim.cli.main import cli
from sim.lab.labs import open_lab
from sim.lab.sheet import SIZE_MAX, check_sum, sheet_text
from sim.study import trial
from sim.study.store import Store
from tests.lab.sheets import filled


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return str(tmp_path_factory.mktemp("store") / "runs.db")


def lab(*words):
    return CliRunner().invoke(cli, ["lab", *words], prog_name="iotwin")


def check(*words, store="none"):
    return lab("check", *words, "--executor", "here", "--store", store)


def test_start_writes_a_sheet_once(folder):
    first = lab("start", "iowait", "-s", "4711")
    assert first.exit_code == 0
    assert "iotwin lab check iowait-4711.toml" in first.output
    text = (folder / "iowait-4711.toml").read_text()
    assert text == sheet_text("iowait", 4711)
    assert text.startswith("# Lab iowait: ")
    assert 'tasks_d = ""' in text
    again = lab("start", "iowait", "-s", "4711")
    assert again.exit_code == 2
    assert "it is there already" in again.output
    assert lab("start", "iowait", "-s", "4711", "-o", "other.toml").exit_code == 0


def test_the_commands_of_a_sheet_name_its_own_file(folder):
    assert lab("start", "sick", "-s", "99", "-o", "mine.toml").exit_code == 0
    text = (folder / "mine.toml").read_text()
    assert " mine.toml" in text
    assert "sick-99.toml" not in text


def test_a_sheet_prints_values_as_they_are_typed():
    assert "input_nocache: false, true" in sheet_text("cache", 1) or (
        "input_nocache: true, false" in sheet_text("cache", 1)
    )
    assert '176 MiB"' in sheet_text("swap", 1)
    assert 'from "' in sheet_text("swap", 1)


def test_a_lab_that_is_none_is_told_with_the_nearest():
    result = lab("start", "iowayt")
    assert result.exit_code == 2
    assert "no lab 'iowayt' - did you mean 'iowait'?" in result.output
    assert lab("start", "../iowait").exit_code == 2


def test_a_sheet_of_blanks_is_marked_without_a_run(folder):
    lab("start", "iowait")
    result = check("iowait-1.toml")
    assert result.exit_code == 1
    assert result.output.count("a blank") == 3
    assert "score: 0 of 4" in result.output
    assert "What you saw" not in result.output


def test_a_prediction_is_judged_only_when_the_answers_are_shown(folder, store):
    path = filled(folder, "iowait", 3, {"iowait": "999 %"}).path
    before = check(path.name, store=store)
    assert before.exit_code == 1
    assert "--    iowait (predict), 0 of 2\n      typed; it is judged" in before.output
    assert "[predicted]" not in path.read_text()
    shown = check(path.name, "-c", store=store)
    assert "FAIL  iowait (predict), 0 of 2" in shown.output
    assert "accepted" in shown.output
    assert "What you saw" in shown.output
    assert path.read_text().endswith('[predicted]\niowait = "999 %"\n')
    # What is typed now comes too late: the prediction that is kept counts.
    path.write_text(path.read_text().replace('iowait = "999 %"\n\n', 'iowait = "1 %"\n\n'))
    late = check(path.name, store=store)
    assert "FAIL  iowait (predict), 0 of 2" in late.output


def test_nothing_is_shown_before_the_predictions_are_typed(folder):
    lab("start", "iowait")
    result = check("iowait-1.toml", "-c")
    assert result.exit_code == 2
    assert "predict iowait first" in result.output


def test_gradescope_s_results(folder, store):
    path = filled(folder, "iowait", 3, {"tasks_d": "0.001 tasks"}).path
    assert check(path.name, "--results", "results.json", store=store).exit_code == 1
    content = json.loads((folder / "results.json").read_text())
    assert content["score"] == sum(one["score"] for one in content["tests"]) == 0
    assert [one["max_score"] for one in content["tests"]] == [1, 1, 2]
    assert {one["status"] for one in content["tests"]} == {"failed"}
    assert "io_schedule" not in content["tests"][2]["output"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('tasks_d = ""', 'tasks_d = "nan"', "tasks_d is a number of tasks: "),
        ('tasks_d = ""', 'tasks_d = "1e999"', "tasks_d is a number of tasks: "),
        ('tasks_d = ""', 'tasks_d = "12 ms"', "tasks_d is a number of tasks: "),
        ('tasks_d = ""', 'tasks_d = ["12"]', "tasks_d: one number"),
        ('tasks_d = ""', "tasks_d = true", "tasks_d: one number"),
        ('tasks_d = ""', 'tasks_d = " "', "tasks_d is a number of tasks: "),
        ('iowait = ""', 'iowait = "9,5 %"', "a decimal point, no comma"),
        ('tasks_d = ""', 'tasks_e = "3"', "did you mean 'tasks_d'?"),
        ('lab = "iowait"', 'lab = "iowayt"', "did you mean 'iowait'?"),
        ('lab = "iowait"', 'lab = "../iowait"', "unknown lab '../iowait'"),
        ('lab = "iowait"', 'lab = "quota"', "was changed since the file was made"),
        ("seed = 1\n", "seed = 2\n", "was changed since the file was made"),
        ("seed = 1\n", 'seed = "1"\n', "'seed' is a whole number"),
        ("seed = 1\n", "", "'seed' is missing"),
        (f'version = "{sim.__version__}"', 'version = "0.0.0"', "was changed since"),
        ("model =", "# model =", "of an older iotwin: start the lab again"),
        ("[answer]", "[answers]", "did you mean 'answer'?"),
        ("[answer]", "[answer", "not valid TOML"),
    ],
)
def test_a_mistake_is_told_with_its_line(folder, old, new, told):
    path = folder / "sheet.toml"
    path.write_text(sheet_text("iowait", 1).replace(old, new))
    assert new in path.read_text()
    result = check("sheet.toml")
    assert result.exit_code == 2
    assert "sheet.toml:" in result.output
    assert told in result.output


@pytest.mark.parametrize(
    "answer",
    [
        '"' + "9" * 5000 + '"',
        '"' + "9 " * 2500 + '"',
        "[" + "12, " * 2500 + "]",
        '"' + "x" * 5000 + '"',
    ],
)
def test_of_a_long_answer_the_beginning_is_shown(folder, answer):
    text = sheet_text("iowait", 1).replace('tasks_d = ""', f"tasks_d = {answer}")
    (folder / "sheet.toml").write_text(text)
    result = check("sheet.toml")
    assert result.exit_code == 2
    assert "sheet.toml:" in result.output
    assert "..." in result.output
    assert len(result.output) < 1000


def test_what_is_no_sheet_at_all(folder):
    (folder / "big.toml").write_text("#" * (SIZE_MAX + 1))
    (folder / "bytes.toml").write_bytes(b"lab = \xff\n")
    (folder / "empty.toml").write_text("")
    os.mkdir(folder / "folder.toml")
    told = {
        "big.toml": "too large for a lab's file",
        "bytes.toml": "not in UTF-8",
        "empty.toml": "'lab' is missing",
        "folder.toml": "cannot be read: Is a directory",
        "none.toml": "cannot be read: No such file",
    }
    for name, words in told.items():
        result = check(name)
        assert result.exit_code == 2
        assert words in result.output


@pytest.mark.parametrize(
    ("design", "told"),
    [
        ({"machine.memory": '"8 GiB"'}, "unknown path 'machine.memory': p95 may not set it"),
        ({'machine.cgroup."pods/web".cpu_bust': '"9 ms"'}, "cpu_burst'?"),
        ({'machine.cgroup."pods/web".cpu_burst': '"900 ms"'}, 'from "0 ms" to "100 ms"'),
        ({'machine.cgroup."pods/web".cpu_burst': '"many"'}, 'machine.cgroup."pods/web".cpu_burst'),
        ({"process.batch.policy": '"fifo"'}, "process.batch.policy"),
        ({"process.batch.nice": "-5"}, "process.batch.nice: p95 may not set it so"),
        ({"process.batch.nice": '"five"'}, "process.batch.nice: p95 may not set it so"),
        ({"process.batch.policy": '"../fifo"'}, 'accepted: "other", "batch", "idle"'),
        ({"process.web.nice": "-21"}, "process.web.nice"),
        ({"machine.cgroup.pods.cpu_weight": "0"}, "machine.cgroup.pods.cpu_weight"),
    ],
)
def test_a_design_that_may_not_be_is_told_with_its_line(folder, design, told):
    result = None
    path = folder / "sheet.toml"
    [(key, value)] = design.items()
    path.write_text(
        sheet_text("quota", 1).replace("[design.p95]\n", f"[design.p95]\n{key} = {value}\n")
    )
    result = check("sheet.toml")
    assert result.exit_code == 2
    assert f"{key} = {value}" in result.output
    assert told in result.output


def test_what_may_not_be_set_is_told_before_what_would_come_of_it(folder):
    """A RAID 0 with a disk missing is no array at all; but the lab does not offer it anyway."""
    text = sheet_text("raid", 1)
    line = 'machine.array.md0.level = "raid0"'
    text = text.replace("[design.level]\n", f"[design.level]\n{line}\n")
    (folder / "sheet.toml").write_text(text)
    result = check("sheet.toml")
    assert result.exit_code == 2
    assert "machine.array.md0.level: level may not set it so" in result.output
    assert 'accepted: "raid1", "raid5", "raid10"' in result.output
    assert line in result.output


def test_the_check_sum_covers_all_that_decides_a_server():
    one = ("iowait", 1, "0.1.0", "abc", "ada")
    others = [("quota", *one[1:]), ("iowait", 2, *one[2:]), (*one[:2], "2", *one[3:])]
    others += [(*one[:3], "abd", "ada"), (*one[:4], "")]
    assert check_sum(*one) not in [check_sum(*other) for other in others]


@pytest.mark.parametrize(
    ("student", "what"),
    [("", "make a new sheet (iotwin lab start iowait -s 7 -o"), ("ada", "ask your teacher for a")],
)
def test_a_sheet_of_another_model_is_told_which_and_what_to_do(folder, monkeypatch, student, what):
    """Two checkouts of one release whose runs give other figures."""
    (folder / "sheet.toml").write_text(sheet_text("iowait", 7, student))
    made = open_lab("iowait").drawn(7).model(7)
    monkeypatch.setattr(trial, "model", lambda: "of another checkout")
    here = open_lab("iowait").drawn(7).model(7)
    result = check("sheet.toml")
    assert result.exit_code == 2
    told = " ".join(result.output.split())
    assert f"made by iotwin {sim.__version__} with another model of this lab" in told
    assert what in told
    assert f'"{made}"' in told
    assert f'"{here}" (iotwin {sim.__version__})' in told
    assert made != here


def test_a_model_s_digest_has_all_that_decides_figures_and_no_words():
    lab = open_lab("iowait").drawn(7)
    [first, *others] = lab.tasks
    more = replace(lab, settings=(*lab.settings, "machine.memory=8 GiB"))
    task = replace(lab, tasks=(replace(first, figure="tasks_r"), *others))
    words = replace(lab, told="", tasks=(replace(first, question="?", hint="!"), *others))
    assert lab.model(7) not in (more.model(7), task.model(7))
    assert lab.model(7) == words.model(7)


def test_a_second_check_simulates_nothing(folder, store):
    path = filled(folder, "iowait", 3, {"tasks_d": "0.001 tasks"}).path
    check(path.name, store=store)
    with Store(folder / store) as kept:
        number = len(kept)
    assert number > 0
    check(path.name, store=store)
    with Store(folder / store) as kept:
        assert len(kept) == number


def test_a_tool_is_typed_on_a_server_whose_fault_is_named_nowhere(folder):
    lab("start", "sick")
    fault, decoy = open_lab("sick").drawn(1).sick["a"]
    text = (folder / "sick-1.toml").read_text()
    assert not [one for one in (*fault.settings, *decoy.settings) if one in text]
    shown = lab("tool", "sick-1.toml", "a", "--", "cat", "/sys/fs/cgroup/database/cpu.stat")
    assert shown.exit_code == 0
    counts = dict(line.split() for line in shown.output.splitlines())
    assert fault.name == "quota"
    assert int(counts["nr_throttled"]) > int(counts["nr_periods"]) / 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sick-1.toml", "d", "--", "iostat"), "has no server 'd' (known: a, b, c)"),
        (("sick-1.toml", "a"), "Missing argument"),
        (("sick-1.toml", "a", "--at", "2h", "--", "iostat"), "not within the run of 40 s"),
        (("sick-1.toml", "a", "--", "rm"), "rm"),
        (("iowait-1.toml", "a", "--", "iostat"), "has no server 'a' (known: none"),
    ],
)
def test_what_cannot_be_typed_there_is_refused(words, told):
    for name in ("sick", "iowait"):
        lab("start", name)
    result = lab("tool", *words)
    assert result.exit_code == 2
    assert told in result.output + str(result.exception)
