"""A trial: one simulation that is asked for, and the key by which its outcome is known again.

Models: a line of a laboratory's plan.
Linux counterpart: none.
Invariants: the key is a hash of what decides the outcome: the resolved server, links, processes,
 run and measure, those of the neighbours, the seed, the sources that simulate or measure, and the
 programs of the scenario's own; where the power is cut, the moments, and the source that tells what
 is left. A title, a comment or the source of a value is in none of these; any value is. Code that
 reads text is not: what it returns is. So one key means one outcome, on every machine, compiled or
 interpreted.
Left out: what a simulation reads besides, since it reads nothing.

Hand estimate: reading three megabytes of sources takes 10 ms, once in a process; hashing a scenario
of some 400 values takes less than a millisecond.
"""

import hashlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from sim.observation import Observation
from sim.scenario.cases import scenario_files
from sim.scenario.fitted import fit_layer
from sim.scenario.load import ScenarioFile, open_scenario
from sim.scenario.spec import Scenario
from sim.study import promises
from sim.study.promises import ending_at

Figures = Mapping[str, float]
Measure = Callable[[Observation], Figures]

SIM: Final = Path(__file__).resolve().parents[1]
# Folders of sim/ that neither simulate nor measure, and what does in them all the same. How text is
# read is not in the key, but what comes out of it: all values of a trial are.
_NEITHER: Final = ("cli", "lab", "lesson", "report", "scenario", "serve", "study", "toml")
MEASURING: Final = ("scenario/spec.py", "study/block_dump.py", "study/metrics.py")
_KEY_DIGITS: Final = 32
_RESOLVED: Final = ("server", "links", "processes", "run", "measure", "neighbours")


class NoSourcesError(RuntimeError):
    """The sources of the model are not there; the message says where they should be."""


@dataclass(frozen=True)
class Trial:
    """One simulation to be done: a variant of a scenario, with a seed.

    `values` are fitted parameters by path, a member of an ensemble for one; `duration_ns` ends the
    run earlier than the scenario does. A scenario that was read already is `given`; then the other
    fields only say how it is asked for again. With `cuts_ns` the run ends at the last of these
    moments, and its outcome says what a power cut at each of them would leave.
    """

    scenario: str
    what_if: str | None
    values: tuple[tuple[str, str], ...]
    seed: int
    sets: tuple[str, ...] = ()
    duration_ns: int | None = None
    given: Scenario | None = None
    keep: bool = False  # the readings are wanted, not only the figures
    cuts_ns: tuple[int, ...] = ()

    def resolve(self, opened: Callable[[str], ScenarioFile] = open_scenario) -> Scenario:
        """Return the scenario to run; `opened` gives its file by name. Raise ScenarioError."""
        scenario = self.given
        if scenario is None:
            layer = fit_layer(dict(self.values), "fit: design") if self.values else None
            file = opened(self.scenario)
            scenario = file.read(self.what_if, sets=self.sets, seed=self.seed, fit=layer)
        if self.cuts_ns:
            return ending_at(scenario, self.cuts_ns)
        if self.duration_ns is None or self.duration_ns >= scenario.run.duration_ns:
            return scenario
        return replace(scenario, run=replace(scenario.run, duration_ns=self.duration_ns))

    @property
    def command(self) -> str:
        """The command that does this simulation alone."""
        parts = ["iotwin", "run", self.scenario]
        parts += ["--what-if", self.what_if] if self.what_if else []
        for path, value in self.values:
            parts += ["--set", f"{path}={value}"]
        for text in self.sets:
            parts += ["--set", text]
        if self.duration_ns is not None:
            parts += ["--set", f"run.duration={self.duration_ns} ns"]
        if self.cuts_ns:
            parts += ["--crash-at", f"{max(self.cuts_ns)} ns"]
        return shlex.join([*parts, "--seed", str(self.seed)])


def trial_of(
    scenario: Scenario,
    seed: int,
    *,
    sets: tuple[str, ...] = (),
    keep: bool = False,
    cuts_ns: tuple[int, ...] = (),
) -> Trial:
    """Return the trial of a scenario that was read already."""
    what_if = scenario.what_if.name if scenario.what_if else None
    shipped = scenario_files().get(scenario.name) == scenario.path
    name = scenario.name if shipped else str(scenario.path)
    return Trial(name, what_if, (), seed, sets, given=scenario, keep=keep, cuts_ns=cuts_ns)


class Keys:
    """The keys of trials; what they share is hashed once."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._last: tuple[Scenario, str] | None = None  # replications follow each other

    def of(self, scenario: Scenario, trial: Trial) -> str:
        """Return the key of a trial, given what it resolves to."""
        if self._last is None or self._last[0] is not scenario:
            self._last = scenario, _hash_of(scenario)
        return _key(self._last[1], trial.seed, self._measure, trial.cuts_ns)


def _key(scenario_hash: str, seed: int, measure: Measure, cuts_ns: tuple[int, ...]) -> str:
    parts = (scenario_hash, seed, model(), f"{measure.__module__}.{measure.__qualname__}")
    outside = "" if measure.__module__.startswith("sim.") else _package_hash(measure.__module__)
    cuts = (cuts_ns, _promises_hash()) if cuts_ns else ()
    return _hash(repr((*parts, outside, *cuts)))


def _hash_of(scenario: Scenario) -> str:
    """Return the hash of what a scenario resolves to, and of the programs of its own."""
    own = [hashlib.sha256(path.read_bytes()).hexdigest() for path in scenario.uses]
    text = "\n".join(_lines(_resolved(scenario), ""))
    return _hash("\n".join([text, *own]))


def _resolved(scenario: Scenario) -> dict[str, object]:
    found: dict[str, object] = {name: getattr(scenario, name) for name in _RESOLVED[:-1]}
    guests = {name: _resolved(guest) for name, guest in scenario.neighbours.items()}
    return found | ({_RESOLVED[-1]: guests} if guests else {})


def _lines(value: object, path: str) -> Iterator[str]:
    """Yield a line for each plain value, with its path; the order of a mapping counts."""
    if is_dataclass(value) and not isinstance(value, type):
        yield f"{path}: {type(value).__qualname__}"
        for one in fields(value):
            yield from _lines(getattr(value, one.name), f"{path}.{one.name}")
    elif isinstance(value, Mapping):
        for name, below in value.items():
            yield from _lines(below, f"{path}[{name!r}]")
    elif isinstance(value, frozenset):
        yield f"{path} = {sorted(value)!r}"
    elif isinstance(value, tuple | list):
        yield f"{path}: {len(value)}"
        for number, below in enumerate(value):
            yield from _lines(below, f"{path}[{number}]")
    elif value is None or isinstance(value, bool | int | float | str):
        yield f"{path} = {value!r}"
    else:
        raise TypeError(f"{path}: a {type(value).__name__} in a scenario has no key")


def digest_of(scenario: Scenario) -> str:
    """Return the hash of the model and of a server: where it is another one, so are the figures."""
    return _hash(f"{model()} {_hash_of(scenario)}")


# -- The sources


@cache
def model() -> str:
    """Return the hash of all sources below sim/ that simulate or measure.

    Every way to install brings the sources along, also beside what is compiled. Raise
    NoSourcesError where somebody has taken them away: two models would have one hash.
    """
    sources = simulating_files()
    if not set(MEASURING) <= {path.relative_to(SIM).as_posix() for path in sources}:
        raise NoSourcesError(f"{SIM}: the sources are not there, which tell one model from another")
    return _hash_of_files(sources, SIM)


def simulating_files() -> list[Path]:
    """Return the sources that model() covers."""
    return list(_simulating(SIM))


def _simulating(top: Path) -> Iterator[Path]:
    for path in sorted(top.rglob("*.py")):
        inside = path.relative_to(top)
        if inside.parts[0] not in _NEITHER or inside.as_posix() in MEASURING:
            yield path


@cache
def _promises_hash() -> str:
    """Return the hash of what tells the figures of a power cut."""
    return _hash_of_files([Path(promises.__file__)], SIM)


@cache
def _package_hash(module: str) -> str:
    """Return the hash of the package that a measure of its own is in."""
    name = module.partition(".")[0]
    top = SIM.parent / name
    return _hash_of_files(sorted(top.rglob("*.py")), top) if top.is_dir() else ""


def _hash_of_files(paths: Iterable[Path], top: Path) -> str:
    total = hashlib.sha256()
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(top).as_posix()} {content}\n".encode())
    return total.hexdigest()[:_KEY_DIGITS]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]
