"""The student's file: a lab's question with blanks, written and read again.

Models: the sheet that is handed out and handed in.
Linux counterpart: none.
Invariants: a sheet says which lab, seed, version and model it is of, and a check sum says whether
 one of these was changed. A sheet of another model, whose runs give other figures, is refused.
 Every mistake in it is told with its place. What was predicted is kept in it when the answers are
 first shown, and counts from then on.
Left out: proof against forgery. A class's seeds come from the teacher's key (`classroom`).
"""

import hashlib
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sim
from sim.lab.labs import DESIGN, NAME, PREDICT, Lab, Task, UnknownLab, lab_files, open_lab
from sim.scenario.load import SEED_MAX
from sim.study.levels import in_unit
from sim.toml.errors import Place, Problem, ScenarioError, unknown, unreadable
from sim.toml.layers import Layer, Leaf, Table, quoted, read_table
from sim.toml.lines import split_key
from sim.units import UnitError, given_text

SIZE_MAX: Final = 256 * 1024
WIDTH: Final = 96
_HEAD: Final = ("lab", "seed", "version", "model", "student", "check")
_KEYS: Final = (*_HEAD, "answer", "design", "predicted")
_PREDICTED: Final = """
# What you had predicted when the answers were first shown. It counts from now on.
[predicted]
"""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A student's file that is whole: its lab, as drawn by its seed, and what was filled in."""

    path: Path
    lab: Lab
    seed: int
    student: str
    answers: Mapping[str, Leaf]
    designs: Mapping[str, Table]
    predicted: Mapping[str, Leaf] | None  # None: the answers were not shown yet

    def answer(self, task: Task) -> Leaf | None:
        """Return what counts as the answer to a task, None for a blank."""
        kept = self.predicted if task.kind == PREDICT else None
        answers = self.answers if kept is None else kept
        leaf = answers.get(task.name)
        return None if leaf is None or leaf.value == "" else leaf


# -- Writing


def sheet_text(name: str, seed: int, student: str = "") -> str:
    """Return a lab's sheet for a seed: question, commands and blanks."""
    lab = open_lab(name).drawn(seed)
    return "\n".join(_lines(lab, seed, student)) + "\n"


def _lines(lab: Lab, seed: int, student: str) -> Iterator[str]:
    yield from _comment(f"Lab {lab.name}: {lab.title}")
    yield "#"
    yield from _comment(lab.question)
    yield "#"
    yield from (f"#   {command}" for command in commands_of(lab, seed))
    yield "#"
    yield from _comment("Fill in the blanks. An answer stands in quotes, with its unit.")
    yield ""
    model = lab.model(seed)
    yield from (f'lab = "{lab.name}"', f"seed = {seed}")
    yield from (f'version = "{sim.__version__}"', f'model = "{model}"')
    if student:
        yield f'student = "{student}"'
    yield f'check = "{check_sum(lab.name, seed, sim.__version__, model, student)}"'
    yield ""
    yield "[answer]"
    asked = [task for task in lab.tasks if task.kind != DESIGN]
    for task in asked:
        yield from _comment(f"{task.kind.capitalize()}, {_points(task)}: {task.question}")
        if task.kind == NAME:
            yield from _comment(f"One of: {', '.join(lab.choices(task))}")
        yield f'{task.name} = ""'
        yield ""
    for task in lab.tasks:
        if task.kind == DESIGN:
            yield f"[design.{task.name}]"
            yield from _comment(f"Design, {_points(task)}: {task.question}")
            yield from _comment("It must hold with each of three seeds:")
            yield from (f"#   {goal}" for goal in task.goals)
            if task.as_healthy:
                yield f"#   {task.as_healthy} within 10 % of that of a healthy server"
            yield from (f"#   {goal}, {cuts_text(task)}" for goal in task.cut_goals)
            most = f", at most {task.most}" if task.most else ""
            yield from _comment(f"You may set, as PATH = VALUE on lines of their own{most}:")
            for path, values in task.allow.items():
                yield f"#   {path}: {allowed_text(values)}"
            yield ""


def _points(task: Task) -> str:
    return f"{task.points} {'point' if task.points == 1 else 'points'}"


def cuts_text(task: Task) -> str:
    """Return when the power is cut."""
    return f"with the power cut at {', '.join(task.cuts)}"


def allowed_text(values: tuple[str, ...] | str) -> str:
    """Return the values that a path may have, as they would be written."""
    if isinstance(values, str):
        low, _dots, high = values.partition("..")
        return f"from {low} to {high}"
    return ", ".join(f'"{one}"' for one in values)


def _comment(text: str) -> Iterator[str]:
    wrapped = textwrap.wrap(" ".join(text.split()), WIDTH - 2, break_on_hyphens=False)
    yield from (f"# {line}" for line in wrapped)


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
        leaf = sheet.answer(task)
        if task.kind == PREDICT and leaf is not None:
            lines.append(f"{task.name} = {json.dumps(leaf.value, ensure_ascii=False)}\n")
    return text.rstrip("\n") + "\n" + _PREDICTED + "".join(lines)


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
    asked = [task.name for task in lab.tasks if task.kind != DESIGN]
    designs = [task.name for task in lab.tasks if task.kind == DESIGN]
    answers = _answers(root, "answer", asked, problems) or {}
    predicted = _answers(root, "predicted", asked, problems)
    tables = {}
    for name, child in _children(root, "design", problems).items():
        if name not in designs:
            problems.append(unknown(_key_of(child), "task", name, designs, " in [design]"))
        elif isinstance(child, Leaf):
            problems.append(Problem(child.key, f"[design.{name}] is a table of PATH = VALUE"))
        else:
            _check_design(child, lab.task(name), problems)
            tables[name] = child
    if problems:
        raise ScenarioError(problems)
    return Sheet(
        path=path,
        lab=lab,
        seed=seed,
        student=student,
        answers=answers,
        designs=tables,
        predicted=predicted,
    )


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
        problems.append(Problem(root.place_of("check"), message, given_text(check), allowed))
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


def _children(root: Table, name: str, problems: list[Problem]) -> dict[str, Leaf | Table]:
    child = root.children.get(name)
    if isinstance(child, Leaf):
        problems.append(Problem(child.key, f"[{name}] is a table"))
        return {}
    return {} if child is None else child.children


def _answers(
    root: Table, name: str, asked: list[str], problems: list[Problem]
) -> dict[str, Leaf] | None:
    """Return the answers of a table by task; None if there is no such table."""
    if name not in root.children:
        return None
    found = {}
    for task, child in _children(root, name, problems).items():
        if task not in asked:
            problems.append(unknown(_key_of(child), "task", task, asked, f" in [{name}]"))
        elif isinstance(child, Table) or isinstance(child.value, list | bool):
            place = child.place if isinstance(child, Table) else child.at
            given = "a table" if isinstance(child, Table) else given_text(child.value)
            problems.append(Problem(place, f"{task}: one number, with its unit", given))
        else:
            found[task] = child
    return found


def value_of(leaf: Leaf, task: Task, unit: str) -> float:
    """Return an answer in the unit of its figure; raise ScenarioError."""
    text = str(leaf.value).strip()
    try:
        return in_unit(text, unit)
    except UnitError as error:
        wanted = f"a number of {unit}" if unit else "a bare number"
        message = f"{task.name} is {wanted}: {error.problem}"
        if "," in text:
            message += " (a decimal point, no comma)"
        problem = Problem(leaf.at, message, given_text(leaf.value), error.allowed)
        raise ScenarioError([problem]) from None


def named(leaf: Leaf, task: Task, lab: Lab) -> str:
    """Return an answer that is one of a lab's names; raise ScenarioError."""
    known = lab.choices(task)
    text = str(leaf.value).strip()
    if text not in known:
        raise ScenarioError([unknown(leaf.at, task.of, text, known, f" for {task.name}")])
    return text


def _check_design(table: Table, task: Task, problems: list[Problem]) -> None:
    """Refuse what a design may not set; its values are checked against the server."""
    known = {split_key(path): path for path in task.allow}
    number = len(list(leaves_of(table)))
    if task.most and number > task.most:
        message = f"{task.name}: too many values: find what is wrong, and set that"
        problems.append(Problem(table.place, message, str(number), f"at most {task.most}"))
    for path, leaf in leaves_of(table):
        if path not in known:
            given = ".".join(quoted(part) for part in path)
            where = f": {task.name} may not set it"
            problems.append(unknown(leaf.key, "path", given, known.values(), where))


def leaves_of(table: Table, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yield every value of a table with its path."""
    for name, child in table.children.items():
        if isinstance(child, Leaf):
            yield (*above, name), child
        else:
            yield from leaves_of(child, (*above, name))


def _key_of(child: Leaf | Table) -> Place:
    return child.key if isinstance(child, Leaf) else child.place
