"""What a study varies: a parameter by its path, and its values or its range, as the user wrote it.

Models: an axis of an experiment. PATH is a parameter of the scenario, as `iotwin params` lists it;
 SPEC is one of

    1,2,4                 these values; ssd,hdd and true,false for texts and switches
    1..64*2               from 1 on, each twice the last, as far as 64
    10..50+5              from 10 on, each 5 more than the last, as far as 50
    1..100 msg/s          all values between: a range, of which a method takes its own points

 A number without a unit has the next unit to its right: `1..16 GiB*2` begins with 1 GiB.
By hand: 1..64*2 has 1 + log2(64 / 1) = 7 values, 10..50+5 has 1 + (50 - 10) / 5 = 9.
Linux counterpart: none.
Invariants: values rise from LOW, and HIGH is one of them exactly if a step arrives there; where
 only whole numbers make sense they are whole, and none comes twice. A value is written so that
 `--set PATH=VALUE` reads it back: each point can be run alone.
Left out: a parameter that the scenario does not have yet, such as a disk that only a what-if adds;
 several parameters that move together.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from sim.registry import nearest
from sim.scenario.spec import Scenario
from sim.toml.errors import Place, Problem, ScenarioError
from sim.toml.layers import set_value, split_assignment
from sim.toml.lines import split_key
from sim.toml.reading import Parameter
from sim.units import INTEGER, UnitError, Value, format_quantity, parse_quantity

T = TypeVar("T")

SPEC: Final = "PATH=1,2,4 or PATH=1..64*2 or PATH=10..50+5"
RANGE: Final = "PATH=LOW..HIGH, such as process.normal.rate=1..100 msg/s"
VALUES_MAX: Final = 1_000_000  # of one parameter: more can only be a slip
RUNS_MAX: Final = 100_000  # of a study, unless --yes says that they are meant
_SLIP: Final = 1e-12  # of a number that was reckoned in binary fractions

_NUMBER: Final = r"\s*[+-]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*"
_HIGH: Final = re.compile(rf"(?P<high>{_NUMBER}[^*+]*)(?:(?P<kind>[*+])(?P<step>.*))?")
_UNIT: Final = re.compile(rf"{_NUMBER}(?P<unit>[^\s\d._]\S*)\s*")
_COMMA: Final = re.compile(r""",(?=(?:[^"]*"[^"]*")*[^"]*$)""")  # a comma outside quotes


@dataclass(frozen=True, kw_only=True)
class Path:
    """A parameter that is varied, and where the user said so."""

    path: str
    dim: str
    place: Place
    spec: str

    def text(self, value: Value) -> str:
        """Return a value as people write it, with its unit."""
        return format_quantity(value, self.dim)

    def setting(self, value: Value) -> str:
        """Return PATH=VALUE, for --set."""
        text = self.text(value)
        if self.dim == "text" and set_value(text) != text:
            text = json.dumps(text, ensure_ascii=False)  # else "2.6" would be read as a number
        return f"{self.path}={text}"


@dataclass(frozen=True, kw_only=True)
class Listed(Path):
    """A parameter and the values that it takes, in canonical units."""

    values: tuple[Value, ...]

    def at(self, share: float) -> Value:
        """Return the value at a share of the list, 0 to 1; all are equally likely."""
        return self.values[min(math.floor(share * len(self.values)), len(self.values) - 1)]


@dataclass(frozen=True, kw_only=True)
class Range(Path):
    """A parameter and between what it lies, both ends in, in canonical units."""

    low: int | float
    high: int | float

    def at(self, share: float) -> int | float:
        """Return the value at a share of the range, 0 to 1; whole numbers are equally likely."""
        if self.dim not in INTEGER:
            return self.low + share * (self.high - self.low)
        return min(int(self.low) + math.floor(share * (self.high - self.low + 1)), int(self.high))

    def near(self, number: float) -> int | float:
        """Return the value nearest to a number, inside the range, and whole where it must be.

        Others have four digits, so that they can be typed again.
        """
        inside = min(max(number, self.low), self.high)
        if self.dim in INTEGER:
            return round(inside)
        if inside in (self.low, self.high):
            return inside
        return min(max(float(f"{inside:.4g}"), self.low), self.high)


def read_listed(text: str, scenarios: Sequence[Scenario], option: str = "--over") -> Listed:
    """Return what PATH=SPEC says; each of the scenarios must have the parameter.

    Raise ScenarioError.
    """
    found = read_over(text, scenarios, option)
    if isinstance(found, Range):
        problem = "a range alone has no values: say by what they grow, *FACTOR or +STEP"
        raise ScenarioError([Problem(found.place, problem, found.spec, SPEC)])
    return found


def read_range(text: str, scenarios: Sequence[Scenario], option: str = "--over") -> Range:
    """Return what PATH=LOW..HIGH says; each of the scenarios must have the parameter.

    Raise ScenarioError.
    """
    found = read_over(text, scenarios, option, RANGE)
    if isinstance(found, Listed):
        problem = "not a range alone: the points are chosen between LOW and HIGH"
        raise ScenarioError([Problem(found.place, problem, found.spec, RANGE)])
    return found


def read_over(
    text: str, scenarios: Sequence[Scenario], option: str = "--over", allowed: str = SPEC
) -> Listed | Range:
    """Return a range if PATH=SPEC is one alone, else the values; raise ScenarioError."""
    path = _taken_apart(text, scenarios, option, allowed)
    dim, place, spec = path.dim, path.place, path.spec
    if dim in ("text", "bool") or ".." not in spec:
        values = _list(spec, dim, place)
        return Listed(path=path.path, dim=dim, place=place, spec=spec, values=values)
    low, high, step = _ends(spec, dim, place)
    if step is None:
        return Range(path=path.path, dim=dim, place=place, spec=spec, low=low, high=high)
    values = _stepped(low, high, step, dim, place)
    return Listed(path=path.path, dim=dim, place=place, spec=spec, values=values)


def read_path(text: str, scenario: Scenario, option: str) -> Path:
    """Return the parameter that PATH names, without any values; raise ScenarioError."""
    file = f"{option} {text}"
    whole = Place(file, 0, 1, len(text), text)
    parts = _parts(text)
    if parts is None:
        given_values = split_assignment(text)[1] >= 0
        problem = "not PATH alone: the values are not given here" if given_values else "not a path"
        raise ScenarioError([Problem(whole, problem, "", "PATH, such as process.normal.rate")])
    found = _parameter(parts, text.strip(), scenario, whole)
    return Path(path=found.path, dim=found.dim, place=whole, spec="")


def check_once(paths: Sequence[Path], sets: Sequence[str] = ()) -> None:
    """Refuse a path that is varied twice, or that --set gives as well; raise ScenarioError."""
    seen: dict[str, str] = {}
    for text in sets:
        parts = _parts(split_assignment(text)[0])
        if parts is not None:
            seen[_joined(parts)] = f"--set {text}"
    problems = []
    for one in paths:
        name = _joined(split_key(one.path))
        if name in seen:
            problem = f"{one.path} is given twice: by {seen[name]}, too"
            problems.append(Problem(one.place, problem, "", "each parameter once"))
        seen[name] = one.place.file
    if problems:
        raise ScenarioError(problems)


def setting_of(path: str, sets: Sequence[str]) -> str | None:
    """Return the --set that gives a parameter, None if none does."""
    wanted = split_key(path)
    given = (text for text in sets if _parts(split_assignment(text)[0]) == wanted)
    return next(given, None)


def check_runs(runs: int, *, meant: bool) -> None:
    """Refuse a study of very many runs unless they are meant; raise ScenarioError."""
    if runs > RUNS_MAX and not meant:
        place = Place(f"{runs:,} runs", 0, 1, 1, "")
        problem = f"more than {RUNS_MAX:,} need --yes"
        raise ScenarioError([Problem(place, problem)])


@contextmanager
def blaming(paths: Sequence[Path]) -> Iterator[None]:
    """Tell the mistakes of a --set PATH=VALUE that a study made where the user gave the values."""
    try:
        yield
    except ScenarioError as error:
        raise ScenarioError([_blamed(problem, paths) for problem in error.problems]) from None


def _blamed(problem: Problem, paths: Sequence[Path]) -> Problem:
    for one in paths:
        if problem.place.file.startswith(f"--set {one.path}="):
            return replace(problem, place=one.place)
    return problem


# -- PATH


def _taken_apart(text: str, scenarios: Sequence[Scenario], option: str, allowed: str) -> Path:
    """Return the parameter with SPEC, and where that stands."""
    file = f"{option} {text}"
    whole = Place(file, 0, 1, len(text), text)
    path_text, equals = split_assignment(text)
    spec = text[equals + 1 :].strip() if equals >= 0 else ""
    parts = _parts(path_text)
    if parts is None or equals < 0 or not spec:
        problem = "no values" if parts and equals >= 0 else "not PATH=VALUES"
        raise ScenarioError([Problem(whole, problem, "", allowed)])
    key = Place(file, 0, 1, len(path_text.rstrip()), text)
    at = Place(file, 0, text.index(spec, equals + 1) + 1, len(spec), text)
    found = [_parameter(parts, path_text.strip(), one, key) for one in scenarios]
    return Path(path=found[0].path, dim=found[0].dim, place=at, spec=spec)


def _parts(text: str) -> tuple[str, ...] | None:
    try:
        return split_key(text.strip())
    except ValueError:
        return None


def _joined(parts: tuple[str, ...]) -> str:
    return "\0".join(parts)


def _parameter(parts: tuple[str, ...], given: str, scenario: Scenario, place: Place) -> Parameter:
    for one in scenario.parameters:
        if split_key(one.path) == parts:
            return one
    known = [one.path for one in scenario.parameters]
    problem = f"{scenario.label} has no parameter of that path"
    allowed = f"what `iotwin params {scenario.name}` lists"
    raise ScenarioError([Problem(place, problem, given, allowed, nearest(given, known))])


# -- SPEC


def _list(spec: str, dim: str, at: Place) -> tuple[Value, ...]:
    texts = [text.strip() for text in _COMMA.split(spec)]
    if not all(texts):
        raise ScenarioError([Problem(at, "nothing between two commas", spec, SPEC)])
    values: list[Value] = []
    for text in _with_units(texts, dim):
        value = _read(text, dim, at)
        if value in values:
            raise ScenarioError([Problem(at, f"{format_quantity(value, dim)} comes twice", spec)])
        values.append(value)
    return tuple(values)


def _ends(
    spec: str, dim: str, at: Place
) -> tuple[int | float, int | float, tuple[str, int | float] | None]:
    """Return LOW, HIGH, and the step with its kind, in canonical units."""
    low_text, _dots, rest = spec.partition("..")
    match = _HIGH.fullmatch(rest)
    if match is None or not low_text.strip():
        raise ScenarioError([Problem(at, "not a range", spec, "LOW..HIGH, LOW..HIGH*F or +S")])
    texts = [low_text.strip(), match["high"].strip()]
    step_text = (match["step"] or "").strip()
    if match["kind"] == "+":
        texts.append(step_text if _unit_of(step_text) else _like(step_text, texts[1]))
    low, high, *steps = (_number(text, dim, at) for text in _with_units(texts, dim))
    if low >= high:
        ends = f"{format_quantity(low, dim)} to {format_quantity(high, dim)}"
        raise ScenarioError([Problem(at, "LOW must be below HIGH", ends)])
    if match["kind"] is None:
        return low, high, None
    step = steps[0] if steps else _number(step_text, "number", at)
    if step == int(step):
        step = int(step)  # and whole numbers stay exact
    if match["kind"] == "+" and step <= 0:
        problem = "never arrives: STEP must be above 0"
        raise ScenarioError([Problem(at, problem, f"+{step_text}", "such as 10..50+5")])
    if match["kind"] == "*" and (step <= 1 or low <= 0):
        problem = "never arrives: FACTOR must be above 1, and LOW above 0"
        raise ScenarioError([Problem(at, problem, spec, "such as 1..64*2")])
    return low, high, (match["kind"], step)


def _like(text: str, other: str) -> str:
    """Return a number with the unit of another text, if that has one."""
    unit = _unit_of(other)
    return f"{text} {unit}" if unit and text else text


def _unit_of(text: str) -> str:
    """Return the unit of a quantity, "" for none."""
    match = None if re.fullmatch(_NUMBER, text) else _UNIT.fullmatch(text)
    return match["unit"] if match else ""


def _with_units(texts: Sequence[str], dim: str) -> list[str]:
    """Return texts of which each without a unit has the next one to its right."""
    if dim in ("text", "bool"):
        return list(texts)
    found: list[str] = []
    for text in reversed(texts):
        bare = re.fullmatch(_NUMBER, text) is not None
        found.append(_like(text, found[-1]) if bare and found else text)
    return found[::-1]


def _stepped(
    low: int | float, high: int | float, step: tuple[str, int | float], dim: str, at: Place
) -> tuple[Value, ...]:
    """Return the values from LOW on, as far as HIGH."""
    kind, by = step
    steps = (math.log(high) - math.log(low)) / math.log(by) if kind == "*" else (high - low) / by
    last = math.floor(steps * (1 + _SLIP) + _SLIP)
    if last >= VALUES_MAX:
        problem = f"{last + 1:,} values, and a parameter takes at most {VALUES_MAX:,}"
        raise ScenarioError([Problem(at, problem, "", "a larger step")])
    numbers = [low * by**k if kind == "*" else low + k * by for k in range(last + 1)]
    found = [low, *(_tidy(number, dim) for number in numbers[1:])]
    if abs(numbers[-1] - high) <= _SLIP * abs(high):
        found[-1] = high
    return tuple(dict.fromkeys(found))


def _tidy(number: int | float, dim: str) -> int | float:
    """Return a whole number where one is needed, else one without the slips of binary fractions."""
    return round(number) if dim in INTEGER else float(f"{number:.12g}")


def _number(text: str, dim: str, at: Place) -> int | float:
    value = _read(text, dim, at)
    assert not isinstance(value, str)
    return value


def _read(text: str, dim: str, at: Place) -> Value:
    if dim in ("text", "bool"):
        given = set_value(text)
        return _told(
            lambda: parse_quantity(given if dim == "bool" else _as_text(given, text), dim), at
        )
    return _told(lambda: parse_quantity(text, dim), at)


def _as_text(given: object, text: str) -> str:
    return given if isinstance(given, str) else text


def _told(read: Callable[[], T], at: Place) -> T:
    try:
        return read()
    except UnitError as error:
        raise ScenarioError([Problem(at, error.problem, error.given, error.allowed)]) from None
