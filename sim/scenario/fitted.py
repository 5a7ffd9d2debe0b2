"""Fitted parameters: the file that a calibration leaves, and its layer over a scenario.

Models: a set of parameter values with its pedigree, and the ensemble that says how sure they are.
Linux counterpart: none.
Invariants: values are texts with units, as a scenario has them, so that a fit is read by the same
 rules as the file that it lies on; every member of the ensemble has a value for every parameter.
Left out: making one (calibration.fit).
"""

import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.registry import did_you_mean
from sim.toml.errors import Place, unreadable
from sim.toml.layers import Layer, Leaf, Table
from sim.toml.lines import split_key

TWIN_MAKERS: Final = ("twin", "mine")  # commands whose options each have a value
KINDS: Final = ("prediction", "reproduction")


class FitError(ValueError):
    """A file of fitted parameters that is missing, or not one."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a fit file says: of which scenario, fitted to what, the best member and all members.

    `unidentified` are parameters of which the recording tells little more than their priors do.
    """

    file: str
    scenario: str
    kind: str  # "prediction" where no figure after the change was used
    against: str
    variants: tuple[str, ...]  # what-ifs (and "base") whose figures were fitted to
    parameters: tuple[str, ...]
    best: Mapping[str, str]
    members: tuple[tuple[str, ...], ...]
    header: Mapping[str, Any]
    unidentified: tuple[str, ...] = ()

    def member(self, number: int) -> dict[str, str]:
        """Return the values of one member, by parameter."""
        return dict(zip(self.parameters, self.members[number], strict=True))

    def layer(self, values: Mapping[str, str]) -> Table:
        """Return values of parameters as a layer over a scenario, with this file as the source."""
        return fit_layer(values, f"fit: {self.file}")


def fit_layer(values: Mapping[str, str], source: str) -> Table:
    """Return values by parameter path as a table of the layer "fit"."""
    place = Place(source, 0, 1, 1, "")
    root = Table(place, Layer.FIT)
    for path, value in values.items():
        line = f"{path} = {value}"
        here = Place(source, 0, 1, len(line), line)
        *parts, last = split_key(path)
        table = root
        for part in parts:
            below = table.children.setdefault(part, Table(here, Layer.FIT))
            assert isinstance(below, Table)
            table = below
        table.children[last] = Leaf(value, Layer.FIT, here, here, source)
    return root


def read_fit(path: Path, scenario: str | None = None) -> Fit:
    """Return the fit of a file; raise FitError if it is none, or of another scenario."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise FitError(f"no fit {path}{_hint(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FitError(unreadable(str(path), error).render()) from None
    except ValueError as error:
        raise FitError(f"{path}: cannot be read: {error}") from None
    fit = _fit(content, path)
    if scenario is not None and fit.scenario != scenario:
        raise FitError(f"{path}: a fit of scenario '{fit.scenario}', not of '{scenario}'")
    return fit


def twin_fit(scenario: Path) -> Path:
    """Return where `iotwin twin` and `mine` put the ensemble of a twin (it need not be there)."""
    return scenario.with_suffix(".fit.toml")


def recording_of_twin(scenario: Path) -> tuple[str, ...]:
    """Return what a twin was made of, as it was typed; nothing if the scenario is no twin."""
    place = twin_fit(scenario)
    if not place.is_file():
        return ()
    try:
        words = shlex.split(str(read_fit(place).header.get("command", "")))
    except (FitError, ValueError):
        return ()
    if words[:1] != ["iotwin"] or not words[1:] or words[1] not in TWIN_MAKERS:
        return ()
    options = {i + off for i, word in enumerate(words) if word.startswith("--") for off in (0, 1)}
    return tuple(word for i, word in enumerate(words) if i > 1 and i not in options)


def _hint(path: Path) -> str:
    known = sorted(one.name for one in path.parent.glob("*.toml") if one.is_file())
    hint = did_you_mean(path.name, known)
    return f"{hint} (there: {', '.join(known) or 'none'}; `iotwin calibrate` makes one)"


def _fit(content: Mapping[str, Any], path: Path) -> Fit:
    header = _want(content, "fit", dict, path)
    ensemble = _want(content, "ensemble", dict, path)
    names = tuple(_texts(_want(ensemble, "parameters", list, path), path, "parameters"))
    best = _want(content, "best", dict, path)
    members = [
        tuple(_texts(row, path, "members")) for row in _want(ensemble, "members", list, path)
    ]
    kind = _want(header, "kind", str, path)
    if kind not in KINDS:
        raise FitError(f"{path}: kind '{kind}' (accepted: {', '.join(KINDS)})")
    widths = {len(row) for row in members}
    if sorted(best) != sorted(names) or widths != {len(names)}:
        raise FitError(f"{path}: 'best' and every row of 'members' need a value for each parameter")
    for name in names:
        _check_path(name, path)
    return Fit(
        file=path.name,
        scenario=_want(header, "scenario", str, path),
        kind=kind,
        against=_want(header, "against", str, path),
        variants=tuple(_texts(_want(header, "variants", list, path), path, "variants")),
        parameters=names,
        best={name: str(best[name]) for name in names},
        members=tuple(members),
        header=header,
        unidentified=_unidentified(content, names),
    )


def _unidentified(content: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters that the file's [parameter] says are not identified."""
    rows = content.get("parameter", {})
    found = {name: rows.get(name, {}) for name in names} if isinstance(rows, dict) else {}
    return tuple(
        name
        for name, row in found.items()
        if isinstance(row, dict) and row.get("identified") is False
    )


def _want(table: Mapping[str, Any], key: str, kind: type, path: Path) -> Any:
    value = table.get(key)
    if not isinstance(value, kind):
        raise FitError(f"{path}: lacks the {kind.__name__} '{key}': not a file of a fit")
    return value


def _texts(values: object, path: Path, where: str) -> Sequence[str]:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise FitError(f"{path}: '{where}' must hold texts")
    return values


def _check_path(name: str, path: Path) -> None:
    try:
        split_key(name)
    except ValueError:
        raise FitError(f"{path}: '{name}' is no path of a parameter") from None
