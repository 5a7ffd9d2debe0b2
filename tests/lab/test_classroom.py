"""A class: seeds from a key, sheets for a list, marks for a pile of which some are broken."""

import csv
import hashlib
import hmac
import itertools

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.lab import classroom
from sim.lab.classroom import class_sheet, design_seeds, grades_csv, student_seed
from sim.lab.labs import lab_files
from sim.lab.sheet import sheet_text

KEY = bytes(range(1, 33))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "KEY").write_bytes(KEY)
    (tmp_path / "KEY").chmod(0o600)
    (tmp_path / "class.csv").write_text("student,name\nada,Ada L.\nbob,Bob B.\ncyd,Cyd C.\n")
    return tmp_path


def lab(*words):
    return CliRunner().invoke(cli, ["lab", *words], prog_name="iotwin")


def hand_out(*words):
    return lab("hand-out", "iowait", "--roster", "class.csv", "--key", "KEY", "-o", "DIR", *words)


def grade(*words):
    return lab("grade", "DIR", "--key", "KEY", "--executor", "here", "--store", "none", *words)


def test_a_seed_is_an_hmac_of_lab_and_student():
    digest = hmac.new(KEY, b"student\0iowait\0ada", hashlib.sha256).hexdigest()
    assert student_seed(KEY, "iowait", "ada") == int(digest, 16) % 10**9


def test_seeds_of_students_labs_keys_and_designs_are_apart():
    seeds = [
        student_seed(key, name, student)
        for key, name, student in itertools.product(
            (KEY, KEY[::-1]), lab_files(), ("ada", "bob", "0", "1")
        )
    ]
    seeds += [seed for name in lab_files() for seed in design_seeds(KEY, name)]
    assert len(set(seeds)) == len(seeds)


def test_every_student_has_a_sheet_and_it_can_be_made_again(folder):
    result = hand_out()
    assert result.exit_code == 0
    assert "3 sheets of lab iowait are written to DIR" in result.output
    sheets = {path.name: path.read_text() for path in (folder / "DIR").iterdir()}
    assert sorted(sheets) == ["iowait-ada.toml", "iowait-bob.toml", "iowait-cyd.toml"]
    assert sheets["iowait-ada.toml"] == class_sheet("iowait", "ada", KEY)
    assert len({text.split("seed = ")[1].split()[0] for text in sheets.values()}) == 3
    again = hand_out()
    assert again.exit_code == 2
    assert "it is there already" in again.output


def test_broken_sheets_are_told_and_the_others_are_marked(folder):
    hand_out()
    (folder / "DIR" / "iowait-ada.toml").write_text("lab = ")
    other = sheet_text("iowait", 5, "dan")  # of a seed that the key did not give
    (folder / "DIR" / "dan.toml").write_text(other)
    (folder / "DIR" / "zed.toml").write_text(class_sheet("iowait", "bob", KEY))
    (folder / "DIR" / "alone.toml").write_text(sheet_text("iowait", 5))
    cyd = folder / "DIR" / "iowait-cyd.toml"
    cyd.write_text(cyd.read_text().replace('tasks_d = ""', 'tasks_d = "0.001"'))
    for name, answer in {"many": f'"{"9" * 5000}"', "hex": f"0x{'F' * 5000}"}.items():
        text = class_sheet("iowait", name, KEY).replace('tasks_d = ""', f"tasks_d = {answer}")
        (folder / "DIR" / f"{name}.toml").write_text(text)
    result = grade("--csv", "grades.csv")
    assert result.exit_code == 1
    assert "error: not valid TOML" in result.output
    assert "seed 5 is not the one that this key gives 'dan'" in result.output
    assert "a second sheet of 'bob': DIR/iowait-bob.toml is marked" in result.output
    assert "alone.toml:1:1: error: no sheet of a class" in result.output
    assert "tasks_d is a number of tasks: expected a number, not 5000 digits" in result.output
    assert "'tasks_d' is a whole number of 20000 bits" in result.output
    assert "6 of 8 files have no marks" in result.output
    rows = list(csv.DictReader((folder / "grades.csv").open()))
    assert [(row["student"], row["points"], row["of"]) for row in rows] == [
        ("bob", "0", "4"),
        ("cyd", "0", "4"),
    ]
    assert list(rows[0]) == ["student", "lab", "points", "of", "tasks_d", "tasks_iowait", "iowait"]


def test_a_mistake_of_the_program_costs_one_sheet_its_marks_and_not_the_others(monkeypatch):
    def mark(sheet, *_rest, **_more):
        if sheet.student == "bob":
            raise ZeroDivisionError("division by zero")
        return ()

    hand_out()
    monkeypatch.setattr(classroom, "mark", mark)
    result = grade()
    assert result.exit_code == 1
    assert (
        "iowait-bob.toml:1:1: error: a mistake of the program, not of the student" in result.output
    )
    assert "1 of 3 files have no marks" in result.output


def test_a_pile_of_blanks_has_marks_and_no_error():
    hand_out()
    result = grade()
    assert result.exit_code == 0
    assert [line.split()[:3] for line in result.output.splitlines()[1:]] == [
        [student, "iowait", "0"] for student in ("ada", "bob", "cyd")
    ]


def test_no_marks_are_a_head_alone():
    assert grades_csv([]) == "student,lab,points,of\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name\nada\n", "class.csv:1:1: error: no column 'student'"),
        ("", "no column 'student'"),
        ("student\n", "no students"),
        (
            "student\nada\nbob\nada\n",
            "class.csv:4:1: error: student 'ada' is there already, in line 2",
        ),
        ("student,name\n,Ada\n", "class.csv:2:1: error: an empty id"),
        ("student\nada/bob\n", "class.csv:2:1: error: no id: 'ada/bob'"),
        ("student\n..\n", "class.csv:2:1: error: no id: '..'"),
        ("student\n../../etc\n", "no id: '../../etc'"),
        ('student\n"a\nb"\n', "class.csv:3:1: error: no id"),
        ("student\n" + "a" * 65 + "\n", "no id: "),
    ],
)
def test_a_list_that_is_none_is_told_with_its_line(folder, text, told):
    (folder / "class.csv").write_text(text)
    result = hand_out()
    assert result.exit_code == 2
    assert told in result.output
    assert not (folder / "DIR").exists()


def test_a_list_in_another_encoding_or_absent(folder):
    (folder / "class.csv").write_bytes(b"student\n\xe4da\n")
    assert "not in UTF-8" in hand_out().output
    (folder / "class.csv").unlink()
    result = hand_out()
    assert result.exit_code == 2
    assert "cannot be read: No such file" in result.output


def test_a_key_that_is_none(folder):
    (folder / "KEY").write_bytes(b"")
    result = hand_out()
    assert result.exit_code == 2
    assert "too short for a key: 0 bytes, of at least 16 (make one: head -c 32" in result.output
    (folder / "KEY").unlink()
    result = hand_out()
    assert result.exit_code == 2
    assert "KEY: cannot be read: No such file or directory (make one: head -c 32" in result.output


def test_a_key_that_others_can_read_is_warned_of(folder):
    (folder / "KEY").chmod(0o644)
    result = hand_out()
    assert result.exit_code == 0
    assert "KEY can be read by others: chmod 600 KEY" in result.output


def test_grade_wants_a_folder_with_sheets(folder):
    assert "DIR: no such folder" in grade().output
    (folder / "DIR").mkdir()
    result = grade()
    assert result.exit_code == 2
    assert "DIR: no .toml file in it" in result.output


def test_a_student_cannot_take_another_server(folder):
    """With a sheet made anew for another seed, which anybody can, the key still tells."""
    hand_out()
    (folder / "DIR" / "iowait-ada.toml").write_text(sheet_text("iowait", 7, "ada"))
    result = grade()
    assert result.exit_code == 1
    assert "seed 7 is not the one that this key gives 'ada'" in result.output
