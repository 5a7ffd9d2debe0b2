"""What an address asks: ?scenario=NAME&what_if=NAME&set=PATH=VALUE&seed=N&of=FIGURE.

Models: the same words as `iotwin run NAME --what-if NAME --set PATH=VALUE --seed N`.
Linux counterpart: none.
Invariants: an address names no file. A scenario is one of those that come along, by its name, or
 the one that was given on the command line; `set` takes only what is a number. So no value of an
 address is ever opened, whatever it says.
Left out: texts and switches as settings; what-ifs of the scenario stand for these.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sim.scenario.load import (
    JOINED,
    SEED_MAX,
    Headline,
    ScenarioFile,
    UnknownScenario,
    headlines,
    open_scenario,
)
from sim.scenario.spec import Scenario
from sim.serve.controls import controls_of, is_number
from sim.serve.study import Asked
from sim.study.bounds import response_of
from sim.study.metrics import metrics_of, own_figures
from sim.toml.errors import Place, Problem, ScenarioError, unknown
from sim.toml.layers import split_assignment

SCENARIO: Final = "scenario"
WHAT_IF: Final = "what_if"
SET: Final = "set"
SEED: Final = "seed"
OF: Final = "of"
KEYS: Final = (SCENARIO, WHAT_IF, SET, SEED, OF)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, as texts that were not looked at yet."""

    scenario: str
    what_ifs: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    seed: str | None = None
    of: str | None = None

    def query(self) -> list[tuple[str, str]]:
        """Return the parts of the address that asks this."""
        found = [(SCENARIO, self.scenario)]
        found += [(WHAT_IF, name) for name in self.what_ifs]
        found += [(SET, text) for text in self.sets]
        found += [(SEED, self.seed)] if self.seed is not None else []
        return found + ([(OF, self.of)] if self.of is not None else [])


def read_query(items: Iterable[tuple[str, str]]) -> Question:
    """Return what the parts of an address ask; raise ScenarioError for a part that is none."""
    found: dict[str, list[str]] = {key: [] for key in KEYS}
    problems = []
    for key, text in items:
        if key not in found:
            problems.append(unknown(_place(key, text), "part of the address", key, KEYS))
        elif found[key] and key not in (WHAT_IF, SET):
            problems.append(Problem(_place(key, text), f"{key} comes twice"))
        else:
            found[key].append(text)
    if not found[SCENARIO]:
        problems.append(Problem(_place(SCENARIO, ""), "no scenario is named"))
    if problems:
        raise ScenarioError(problems)
    return Question(
        scenario=found[SCENARIO][0],
        what_ifs=tuple(found[WHAT_IF]),
        sets=tuple(found[SET]),
        seed=next(iter(found[SEED]), None),
        of=next(iter(found[OF]), None),
    )


class Catalogue:
    """The scenarios that may be asked for: those that come along, and one that was given."""

    def __init__(self, given: str | None = None) -> None:
        """Open the scenario that is given by name or path; raise what open_scenario() raises."""
        self._known = {one.name: one for one in headlines()}
        self._typed = {name: name for name in self._known}  # as `iotwin run` takes it
        self._opened: dict[str, ScenarioFile] = {}
        self.first: str | None = None
        if given is not None:
            file = open_scenario(given)
            scenario = file.read()
            titles = {one.name: one.title for one in scenario.what_ifs}
            self._known[scenario.name] = Headline(scenario.name, scenario.title, titles)
            self._typed[scenario.name] = given
            self._opened[scenario.name] = file
            self.first = scenario.name

    def titles(self) -> Mapping[str, str]:
        """Return the scenarios by name, with their titles."""
        return {name: one.title for name, one in sorted(self._known.items())}

    def variant(self, question: Question, beneath: Sequence[str] = ()) -> Scenario:
        """Return the scenario with its what-ifs alone; raise UnknownScenario or ScenarioError.

        `beneath` are settings of the page's own, of anything, under those of the question.
        """
        seed = _seed(question.seed)
        what_if = JOINED.join(question.what_ifs) or None
        return self._file(question.scenario).read(what_if, sets=beneath, seed=seed)

    def asked(self, question: Question, beneath: Sequence[str] = ()) -> tuple[Scenario, Asked]:
        """Return the variant, and it under the settings; raise UnknownScenario, ScenarioError."""
        own = self.variant(question, beneath)
        now, sets = own, tuple(beneath)
        if question.sets:
            check_sets(question.sets, own)
            paths = {split_assignment(text)[0] for text in question.sets}
            kept = (text for text in beneath if split_assignment(text)[0] not in paths)
            sets = (*kept, *question.sets)
            what_if = own.what_if.name if own.what_if else None
            now = self._file(question.scenario).read(what_if, sets=sets, seed=own.seed)
        command = self.command(question.scenario, now, sets)
        return own, Asked(scenario=now, figure=_figure(question.of, now), command=command)

    def command(self, name: str, scenario: Scenario, sets: Sequence[str]) -> str:
        """Return the command that does the first run of a study alone."""
        words = ["iotwin", "run", self._typed[name]]
        words += ["--what-if", scenario.what_if.name] if scenario.what_if else []
        for text in sets:
            words += ["--set", text]
        return shlex.join([*words, "--seed", str(scenario.seed)])

    def _file(self, name: str) -> ScenarioFile:
        if name not in self._known:
            raise UnknownScenario("no scenario", name, sorted(self._known))
        if name not in self._opened:
            self._opened[name] = open_scenario(name)
        return self._opened[name]


def controls_json(own: Scenario, asked: Asked) -> dict[str, Any]:
    """Return what a page shows of a variant before it runs; `own` is without the settings."""
    return {
        "scenario": own.name,
        "title": own.title,
        "doc": own.doc,
        "seed": own.seed,
        "what_ifs": [asdict(one) for one in own.what_ifs],
        "controls": [asdict(one) for one in controls_of(own, asked.scenario)],
        "figures": [one.name for one in metrics_of(own.measure)],
        "figure": asked.figure,
        "command": asked.command,
    }


def mistakes_json(error: Exception) -> list[dict[str, str | None]]:
    """Return what is wrong with a question, for a page: what was given, what is allowed."""
    if not isinstance(error, ScenarioError):
        return [{"message": str(error)}]
    return [
        {
            "where": one.place.file,
            "message": one.message,
            "given": one.given,
            "allowed": one.allowed,
            "nearest": one.nearest,
        }
        for one in error.problems
    ]


def check_sets(sets: Sequence[str], scenario: Scenario) -> None:
    """Refuse settings of anything but numbers of a scenario; raise ScenarioError."""
    numbers = [one.path for one in scenario.parameters if is_number(one)]
    problems = []
    seen: set[str] = set()
    for text in sets:
        path, equals = split_assignment(text)
        if equals < 0:
            problems.append(Problem(_place(SET, text), "not PATH=VALUE", text))
        elif path not in numbers:
            problems.append(unknown(_place(SET, text), "number", path, numbers))
        elif path in seen:
            problems.append(Problem(_place(SET, text), f"{path} is set twice"))
        seen.add(path)
    if problems:
        raise ScenarioError(problems)


def _place(key: str, text: str) -> Place:
    return Place(f"{key}={text}", 0, 1, 1, "")


def _seed(text: str | None) -> int | None:
    if text is None:
        return None
    # Not isdecimal(): digits of other scripts are decimal, too.
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= SEED_MAX):
        problem = Problem(_place(SEED, text), "not a seed", text, f"0 to {SEED_MAX}")
        raise ScenarioError([problem])
    return int(text)


def _figure(wanted: str | None, scenario: Scenario) -> str:
    """Return the figure that decides when to stop.

    If none is asked for, the first of times, else the first of the programs, else of the server.
    """
    measure = scenario.measure
    known = [one.name for one in metrics_of(measure)]
    if wanted is None:
        own = [one.name for one in own_figures(measure)]
        return response_of(measure) or next(iter((*own, *known)))
    if wanted not in known:
        raise ScenarioError([unknown(_place(OF, wanted), "figure", wanted, known)])
    return wanted
