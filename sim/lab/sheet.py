"""The student's file: a lab's question with blanks, written and read again.

Models: the sheet that is handed out and handed in.
Linux counterpart: none.
Invariants: a sheet says which lab, seed, version and model it is of, and a check sum says whether
 one of these was changed. A sheet of another model, whose runs give other figures, is refused.
 Every mistake in it is told with its place. What was predicted is kept in it when the answers are
 first shown, and counts from then on.
Left out: proof against forgery. A class's seeds come from the teacher's key (`classroom`). Who
 deletes what was predicted may predict again; nothing in a student's own file could prevent that.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sim
from sim.lab.kinds import KINDS
from sim.lab.labs import UnknownLab, lab_files, open_lab
from sim.lab.task import ANSWER, Lab, Task, comment
from sim.scenario.load import SEED_MAX
from sim.toml.errors import Place, Problem, ScenarioError, unknown, unreadable
from sim.toml.layers import Layer, Leaf, Table, read_table
from sim.units import given_text

SIZE_MAX: Final = 256 * 1024
_HEAD: Final = ("lab", "seed", "version", "model", "student", "check")
_SECTIONS: Final = tuple(dict.fromkeys((ANSWER, *(one.section for one in KINDS.values()))))
_KEPT: Final = "predicted"
_KEYS: Final = (*_HEAD, *_SECTIONS, _KEPT)
_KEPT_HEAD: Final = f"""
# What you had predicted when the answers were first shown. It counts from now on.
[{_KEPT}]
"""

Child = Leaf | Table


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A student's file that is whole: its lab, as drawn by its seed, and what was filled in."""

    path: Path
    lab: Lab
    seed: int
    student: str
    typed: Mapping[str, Child]  # by task
    predicted: Mapping[str, Child] | None  # None: the answers were not shown yet

    def handed_in(self, task: Task) -> Child | None:
        """Return what counts for a task, None for a blank."""
        kept = self.predicted if task.is_kept else None
        child = (self.typed if kept is None else kept).get(task.name)
        return None if isinstance(child, Leaf) and child.value == "" else child


# -- Writing

THIS_FILE: Final = "THIS_FILE"  # in a lab's commands: the sheet itself


def sheet_name(lab: str, whose: str | int) -> str:
    """Return the name of a student's file, or of a seed's."""
    return f"{lab}-{whose}.toml"


def sheet_text(name: str, seed: int, student: str = "", path: str = "") -> str:
    """Return a lab's sheet for a seed: question, commands and blanks.

    The commands name the file `path`, where it is given.
    """
    lab = open_lab(name).drawn(seed)
    return "\n".join(_lines(lab, seed, student, path)) + "\n"


def _lines(lab: Lab, seed: int, student: str, path: str) -> Iterator[str]:
    yield from comment(f"Lab {lab.name}: {lab.title}")
    yield "#"
    yield from comment(lab.question)
    yield "#"
    here = shlex.quote(path) if path else sheet_name(lab.name, student or seed)
    commands = (one.replace(THIS_FILE, here) for one in commands_of(lab, seed))
    yield from (f"#   {command}" for command in commands)
    yield "#"
    yield from comment("Fill in the blanks. An answer stands in quotes, with its unit.")
    yield ""
    model = lab.model(seed)
    yield from (f'lab = "{lab.name}"', f"seed = {seed}")
    yield from (f'version = "{sim.__version__}"', f'model = "{model}"')
    if student:
        yield f'student = "{student}"'
    yield f'check = "{check_sum(lab.name, seed, sim.__version__, model, student)}"'
    yield ""
    yield f"[{ANSWER}]"
    for section in _SECTIONS:
        for task in lab.tasks:
            if task.section == section:
                yield from task.lines(lab)
                yield ""


def commands_of(lab: Lab, seed: int) -> Iterator[str]:
    """Yield the commands to begin with, for the server of a drawn lab."""
    for command in lab.commands:
        yield command.replace("{base}", command_words(lab, seed))


def command_words(lab: Lab, seed: int) -> str:
    """Return the words of a command that name a drawn lab's server."""
    sets = (f"--set '{text}'" for text in lab.settings)
    return " ".join((lab.scenario, *sets, f"--seed {seed}"))


def check_sum(lab: str, seed: int, version: str, model: str, student: str) -> str:
    """Return what tells whether one of these was changed."""
    text = "\n".join((lab, str(seed), version, model, student))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def with_answers(text: str, answers: Mapping[str, str]) -> str:
    """Return a sheet's text with other answers to its tasks; what is none of these stays."""
    for name, answer in answers.items():
        line = f"{name} = {json.dumps(answer, ensure_ascii=False)}"
        # The first of that name: a prediction that was kept stands below.
        text = re.sub(rf"(?m)^{re.escape(name)} = .*$", lambda _: line, text, count=1)  # noqa: B023
    return text


def with_predictions(text: str, sheet: Sheet) -> str:
    """Return a sheet's text with its predictions kept, as they are when the answers are shown."""
    lines = []
    for task in sheet.lab.tasks:
        child = sheet.handed_in(task)
        if task.is_kept and isinstance(child, Leaf):
            lines.append(f"{task.name} = {json.dumps(child.value, ensure_ascii=False)}\n")
    return text.rstrip("\n") + "\n" + _KEPT_HEAD + "".join(lines)


# -- Reading


def read_sheet(path: Path) -> Sheet:
    """Return a student's file; raise ScenarioError with all that is wrong with it."""
    return sheet_of(_text_of(path), path)


def sheet_of(text: str, path: Path) -> Sheet:
    """Return the sheet that a text is; `path` names it. Raise ScenarioError as read_sheet()."""
    root = read_table(text, str(path), Layer.SET)
    problems: list[Problem] = []
    lab, seed, student = _identity(root, problems)
    if lab is None or problems:
        raise ScenarioError(problems)
    for name, child in root.children.items():
        if name not in _KEYS:
            problems.append(unknown(_key_of(child), "key", name, _KEYS))
    typed: dict[str, Child] = {}
    for section in _SECTIONS:
        asked = [task for task in lab.tasks if task.section == section]
        typed |= _typed(root, section, asked, problems) or {}
    kept = [task for task in lab.tasks if task.is_kept]
    predicted = _typed(root, _KEPT, kept, problems)
    if problems:
        raise ScenarioError(problems)
    return Sheet(path=path, lab=lab, seed=seed, student=student, typed=typed, predicted=predicted)


def _text_of(path: Path) -> str:
    try:
        if path.is_file() and path.stat().st_size > SIZE_MAX:
            size = f"{path.stat().st_size / 1024:,.0f} KiB"
            place = Place(str(path), 1, 1, 1, "")
            allowed = f"at most {SIZE_MAX // 1024} KiB"
            raise ScenarioError([Problem(place, "too large for a lab's file", size, allowed)])
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError([unreadable(str(path), error)]) from None


def _identity(root: Table, problems: list[Problem]) -> tuple[Lab | None, int, str]:
    """Return lab, as drawn, seed and student of a sheet's head, if they belong together."""
    told = _head(root, problems)
    if problems:
        return None, 0, ""
    name, version, model, student, check = (
        str(told[key]) for key in ("lab", "version", "model", "student", "check")
    )
    seed = told["seed"]
    assert isinstance(seed, int)
    try:
        lab = open_lab(name)
    except UnknownLab:
        problems.append(unknown(root.place_of("lab"), "lab", name, lab_files()))
        return None, 0, ""
    if not 0 <= seed <= SEED_MAX:
        message = f"a seed is from 0 to {SEED_MAX}"
        problems.append(Problem(root.place_of("seed"), message, str(seed)))
        return None, 0, ""
    lab = lab.drawn(seed)
    here = lab.model(seed)
    if check != check_sum(name, seed, version, model, student):
        message = "lab, seed, version, model or student was changed since the file was made"
        allowed = "the lines as `iotwin lab start` or your teacher wrote them"
        given = f"{name}, seed {seed}, of iotwin {version}" + (f", {student}" if student else "")
        problems.append(Problem(root.place_of("lab"), message, given_text(given), allowed))
    elif (version, model) != (sim.__version__, here):
        problems.append(_of_another_model(root, version, f"{name} -s {seed}", student, here))
    return lab, seed, student


def _head(root: Table, problems: list[Problem]) -> dict[str, object]:
    """Return what the head of a sheet says, by key."""
    told: dict[str, object] = {}
    for name in _HEAD:
        kind = int if name == "seed" else str
        leaf = root.leaf(name)
        if leaf is None and name == "student":
            told[name] = ""
        elif leaf is None and name == "model" and root.leaf("check") is not None:
            message = "'model' is missing: the file is of an older iotwin: start the lab again"
            problems.append(Problem(root.place, message))
        elif leaf is None:
            message = f"'{name}' is missing: this is no file of `iotwin lab start`"
            problems.append(Problem(root.place, message))
        elif not isinstance(leaf.value, kind) or isinstance(leaf.value, bool):
            what = "a whole number" if kind is int else "a text"
            problems.append(Problem(leaf.at, f"'{name}' is {what}", given_text(leaf.value)))
        else:
            told[name] = leaf.value
    return told


def _of_another_model(root: Table, version: str, lab: str, student: str, here: str) -> Problem:
    """Return what to say of a sheet whose runs would give other figures."""
    leaf = root.leaf("model")
    assert leaf is not None
    made = f"the sheet was made by iotwin {version} with another model of this lab"
    what = (
        "with that one, or ask your teacher for a new sheet"
        if student
        else (f"with that one, or make a new sheet (iotwin lab start {lab} -o NEW.toml)")
    )
    message = f"{made}, whose runs give other figures: check it {what}"
    allowed = f'"{here}" (iotwin {sim.__version__})'
    return Problem(leaf.at, message, given_text(leaf.value), allowed)


def _typed(
    root: Table, section: str, asked: Iterable[Task], problems: list[Problem]
) -> dict[str, Child] | None:
    """Return what a table has, by task; None if there is no such table."""
    table = root.children.get(section)
    if isinstance(table, Leaf):
        problems.append(Problem(table.key, f"[{section}] is a table"))
        return None
    known = {task.name: task for task in asked}
    found = None if table is None else dict(table.children)
    for name, child in (found or {}).items():
        if name in known:
            problems += known[name].wrong(child)
        else:
            problems.append(unknown(_key_of(child), "task", name, known, f" in [{section}]"))
    return found


def _key_of(child: Child) -> Place:
    return child.key if isinstance(child, Leaf) else child.place
