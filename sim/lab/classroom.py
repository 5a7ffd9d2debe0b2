"""A class: a sheet for each student of a list, and the marks of what is handed in.

Models: the lecturer's office: a list, a key in a drawer, a pile of sheets.
Linux counterpart: none. Seeds by HMAC-SHA-256 (RFC 2104).
Invariants: a student's seed follows from key, lab and student alone, so nobody can hand in a sheet
 of another server, and a lost sheet can be made again. Designs are run with seeds of the key, which
 no student knows. A sheet that cannot be marked is told, and the others are marked.
Left out: who really wrote a sheet. Marks of designs are safe from a look into the source, not from
 a friend.
"""

import csv
import hashlib
import hmac
import io
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sim.lab.kinds.design import RUNS
from sim.lab.labs import open_lab
from sim.lab.marking import mark, score
from sim.lab.sheet import Sheet, read_sheet, sheet_text
from sim.lab.task import Mark
from sim.study.laboratory import Laboratory
from sim.toml.errors import Place, Problem, ScenarioError, unreadable

KEY_BYTES_MIN: Final = 16
SEED_END: Final = 10**9  # of a class's seeds: short enough to be typed
ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,63}")
_ID_WORDS: Final = "letters, digits and . _ @ + -, 64 at most, no dot or sign in front"
_COLUMN: Final = "student"


class BadKeyError(ValueError):
    """A key that cannot be used; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Graded:
    """A sheet that was handed in, and its marks."""

    sheet: Sheet
    marks: tuple[Mark, ...]

    @property
    def score(self) -> tuple[float, int]:
        """The points that were got, and those that there are."""
        return score(self.marks)


# -- The key, and what follows from it


def read_key(path: Path) -> tuple[bytes, str]:
    """Return a key, and what its owner should know of its file; raise BadKeyError."""
    make = f"make one: head -c 32 /dev/urandom > {path} && chmod 600 {path}"
    try:
        key = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as error:
        raise BadKeyError(f"{path}: cannot be read: {error.strerror} ({make})") from None
    if len(key.strip()) < KEY_BYTES_MIN:
        size = f"{len(key.strip())} bytes, of at least {KEY_BYTES_MIN}"
        raise BadKeyError(f"{path}: too short for a key: {size} ({make})")
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        return key, f"{path} can be read by others: chmod 600 {path}"
    return key, ""


def student_seed(key: bytes, lab: str, student: str) -> int:
    """Return the seed of a student's sheet."""
    return _number(key, "student", lab, student)


def design_seeds(key: bytes, lab: str) -> tuple[int, ...]:
    """Return the seeds with which the designs of a class are run."""
    return tuple(_number(key, "design", lab, str(number)) for number in range(RUNS))


def _number(key: bytes, *words: str) -> int:
    digest = hmac.new(key, "\0".join(words).encode(), hashlib.sha256).digest()
    return int.from_bytes(digest, "big") % SEED_END


# -- Handing out


def read_roster(path: Path) -> list[str]:
    """Return the students of a CSV file's column `student`; raise ScenarioError with its lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError([unreadable(str(path), error)]) from None
    lines = text.splitlines()
    rows = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    problems: list[Problem] = []
    found: dict[str, int] = {}
    if _COLUMN not in (rows.fieldnames or ()):
        first = lines[0] if lines else ""
        message = f"no column '{_COLUMN}' in the first line"
        place = Place(str(path), 1, 1, len(first), first)
        raise ScenarioError([Problem(place, message, "", "student,name,...")])
    for row in _rows(rows, path):
        number = rows.line_num
        line = lines[number - 1] if number <= len(lines) else ""
        place = Place(str(path), number, 1, len(line), line)
        student = (row[_COLUMN] or "").strip()
        if student in found:
            message = f"student '{student}' is there already, in line {found[student]}"
            problems.append(Problem(place, message))
        elif not ID.fullmatch(student):
            message = "an empty id" if not student else f"no id: '{student}'"
            problems.append(Problem(place, message, "", _ID_WORDS))
        found.setdefault(student, number)
    if not found:
        problems.append(Problem(Place(str(path), 1, 1, 1, ""), "no students"))
    if problems:
        raise ScenarioError(problems)
    return list(found)


def _rows(rows: "csv.DictReader[str]", path: Path) -> Iterator[dict[str, str]]:
    try:
        yield from rows
    except csv.Error as error:
        place = Place(str(path), rows.line_num, 1, 1, "")
        raise ScenarioError([Problem(place, f"not valid CSV: {error}")]) from None


def class_sheet(lab: str, student: str, key: bytes) -> str:
    """Return a student's sheet."""
    return sheet_text(lab, student_seed(key, lab, student), student)


# -- Marking


def grade(
    paths: Sequence[Path], key: bytes, laboratory: Laboratory
) -> Iterator[Graded | ScenarioError]:
    """Yield the marks of each sheet, or what is wrong with it."""
    seen: dict[tuple[str, str], Path] = {}
    for path in paths:
        try:
            sheet = read_sheet(path)
            _check_owner(sheet, key, seen)
            seeds = design_seeds(key, sheet.lab.name)
            yield Graded(sheet=sheet, marks=tuple(mark(sheet, laboratory, seeds, is_final=True)))
        except ScenarioError as error:
            yield error
        except Exception as error:  # one sheet must not cost the others their marks
            why = f"a mistake of the program, not of the student: {type(error).__name__}: {error}"
            yield ScenarioError([Problem(Place(str(path), 1, 1, 1, ""), why)])


def _check_owner(sheet: Sheet, key: bytes, seen: dict[tuple[str, str], Path]) -> None:
    """Refuse a sheet that was not handed out, and a student's second one."""
    place = Place(str(sheet.path), 1, 1, 1, "")
    name = sheet.lab.name
    if not sheet.student:
        raise ScenarioError([Problem(place, "no sheet of a class: it names no student")])
    if sheet.seed != student_seed(key, name, sheet.student):
        message = f"seed {sheet.seed} is not the one that this key gives '{sheet.student}'"
        raise ScenarioError([Problem(place, message)])
    first = seen.setdefault((name, sheet.student), sheet.path)
    if first != sheet.path:
        message = f"a second sheet of '{sheet.student}': {first} is marked"
        raise ScenarioError([Problem(place, message)])


def grades_csv(graded: Sequence[Graded]) -> str:
    """Return a line for each sheet: student, lab, points, and those of each task."""
    out = io.StringIO(newline="")
    labs = dict.fromkeys(one.sheet.lab.name for one in graded)
    tasks = dict.fromkeys(task.name for lab in labs for task in open_lab(lab).tasks)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_COLUMN, "lab", "points", "of", *tasks])
    for one in graded:
        points = {each.task.name: f"{each.points:g}" for each in one.marks}
        got, most = one.score
        row = [one.sheet.student, one.sheet.lab.name, f"{got:g}", most]
        writer.writerow([*row, *(points.get(task, "") for task in tasks)])
    return out.getvalue()
