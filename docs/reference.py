"""What the code says of itself, as Markdown: commands, registries, scenarios, predictions, fits.

Models: a manual that cannot be wrong, because it is read off the thing.
Invariants: no run is needed; the order is that of the code's own tables.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

import click

from calibration.evidence.stored import read as read_compared
from calibration.validate.page import BLOCKS as VALIDATION
from calibration.validate.page import family_table
from calibration.validate.stored import Stored
from calibration.validate.stored import read as read_validation
from docs.declared import TOP, DeclarationError, Reference, read
from docs.evidence import Cases, cases, cases_table, overview_table
from docs.releases import releases_text
from docs.render import markdown_table
from docs.runs import Store
from sim.block.queue import QueueParams
from sim.block.throttle import ThrottleParams
from sim.cli.main import COMMANDS, cli
from sim.drivers.disk import PROFILES, profile_names
from sim.param import params_of
from sim.registry import lookup, names
from sim.report.tables import figure, interval
from sim.scenario.cases import shipped_fit, use_all
from sim.scenario.load import headlines
from sim.scenario.server import CORE
from sim.sched.generation import GENERATIONS
from sim.units import format_quantity

VALIDATED: Final = TOP / "docs" / "runs" / "validation.json"
COMPARED: Final = TOP / "docs" / "runs" / "compared.json"
WITHHELD: Final = TOP / "calibration" / "predictions" / "withheld.json"


def reference_text(block: Reference) -> str:
    """Return the text of a block; raise DeclarationError."""
    if block.of not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise DeclarationError(f"reference.{block.name}: of = '{block.of}' (known: {known})")
    try:
        return _WRITERS[block.of](block.given)
    except KeyError as error:
        raise DeclarationError(f"reference.{block.name}: lacks {error}") from None


def _commands(given: Mapping[str, Any]) -> str:
    """Return the help of every command, as `iotwin COMMAND --help` prints it."""
    parts = [f"```text\n{_help(cli, ())}\n```\n"]
    for name, (module, _line) in COMMANDS.items():
        command = import_module(module).command
        parts.append(f"## {name}\n\n```text\n{_help(command, (name,))}\n```\n")
    return "\n".join(parts)


def _help(command: click.Command, names: tuple[str, ...]) -> str:
    context = click.Context(
        command,
        info_name=" ".join(("iotwin", *names)),
        help_option_names=["-h", "--help"],
        terminal_width=100,
        max_content_width=100,
    )
    return command.get_help(context)


def _registry(given: Mapping[str, Any]) -> str:
    """Return what is registered under a kind: name, a line, the releases that have it."""
    use_all()
    entries = [lookup(given["kind"], name) for name in names(given["kind"])]
    rows = [[f"`{one.name}`", one.doc, one.releases()] for one in entries]
    return markdown_table(["name", "what it is", "Linux"], rows, 3)


def _profiles(given: Mapping[str, Any]) -> str:
    """Return the profiles of devices that come along."""
    rows = []
    for name in profile_names():
        content = tomllib.loads((PROFILES / f"{name}.toml").read_text(encoding="utf-8"))
        rows.append([f"`{name}`", f"`{content.get('device', '')}`", str(content.get("doc", ""))])
    return markdown_table(["profile", "device", "what it is"], rows, 3)


# What the table of generations shows: its heading, table and key in the file.
_COSTS: Final = (
    ("code", "cpu", "code"),
    ("entry", "syscall", "entry"),
    ("with PTI", "cpu", "pti"),
    ("page copied", "vfs", "page_copy"),
    ("page added", "vm", "page_add"),
    ("switch", "sched", "context_switch"),
    ("packet", "syscall", "packet"),
)


def _generations(given: Mapping[str, Any]) -> str:
    """Return the generations of processors that come along, the dearest first."""
    rows = []
    for name in GENERATIONS.names():
        path = GENERATIONS.folder / f"{name}.toml"
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        values = [_plain(content.get(table, {}).get(key, "")) for _, table, key in _COSTS]
        rows.append([f"`{name}`", str(content["doc"]), *map(str, values)])
    rows.sort(key=lambda row: -float(row[2]))
    return markdown_table(["generation", "machine", *(head for head, _, _ in _COSTS)], rows, 2)


def _plain(given: Any) -> Any:
    """Return a value of TOML without its source."""
    return given["value"] if isinstance(given, dict) else given


def _parameters(given: Mapping[str, Any]) -> str:
    """Return the parameters of all that is registered under a kind."""
    use_all()
    kind = given["kind"]
    tables = {name: lookup(kind, name).params for name in names(kind)}
    return _parameter_table(kind, tables)


def _kernel_parameters(given: Mapping[str, Any]) -> str:
    """Return the parameters of parts of the kernel, by the table of a scenario."""
    found = {f"machine.{name}": cls for name, cls in CORE.items()}
    for name in names("component"):
        entry = lookup("component", name)
        cls: Any = entry.cls
        found[f"machine.{name}.NAME" if cls.named else f"machine.{name}"] = entry.params
    found = dict(sorted(found.items()))
    found["machine.disk.NAME.queue"] = QueueParams
    found["machine.disk.NAME.throttle"] = ThrottleParams
    return _parameter_table("table", found)


def _parameter_table(heading: str, tables: Mapping[str, type]) -> str:
    rows = []
    for name, cls in tables.items():
        # The name stands in the first of its rows.
        for number, one in enumerate(params_of(cls)):
            shown = "" if one.default is None else format_quantity(one.default, one.dim)
            default = "must be given" if one.required else f"`{shown}`" if shown else "none"
            first = f"`{name}`" if number == 0 else ""
            rows.append([first, f"`{one.key}`", default, _cell(one.doc)])
    return markdown_table([heading, "key", "default", "what it means"], rows, 4)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _scenarios(given: Mapping[str, Any]) -> str:
    """Return every scenario with its what-ifs."""
    rows = []
    for one in headlines():
        rows.append([f"`{one.name}`", "", one.title])
        rows += [["", f"`{name}`", title] for name, title in one.what_ifs.items()]
    return markdown_table(["scenario", "what-if", "title"], rows, 3)


def _withheld(given: Mapping[str, Any]) -> str:
    """Return the predictions of withheld figures whose names begin with one of the prefixes."""
    rows = [
        [f"`{row['figure']}`", row["unit"], figure(row["median"]), interval(row["lo"], row["hi"])]
        for row in json.loads(WITHHELD.read_text(encoding="utf-8"))
        if row["figure"].startswith(tuple(given["prefixes"]))
    ]
    table = markdown_table(["figure", "unit", "median", "90 % interval"], rows, 2)
    return f"{table}\n*Made by* `python -m calibration withheld`\n"


def _fit(given: Mapping[str, Any]) -> str:
    """Return what fits of one scenario found, side by side, beside the priors."""
    fits = {name: content_of_fit(name) for name in given["fits"]}
    headings = [
        "parameter",
        "prior",
        *(f"fitted to {one['fit']['against']}" for one in fits.values()),
    ]
    paths = dict.fromkeys(path for one in fits.values() for path in one["parameter"])
    rows = []
    for path in paths:
        found = [one["parameter"].get(path) for one in fits.values()]
        first = next(one for one in found if one is not None)
        rows.append(
            [f"`{path}`", f"{first['prior_low']} .. {first['prior_high']}", *map(_fitted, found)]
        )
    return markdown_table(headings, rows)


def content_of_fit(name: str) -> dict[str, Any]:
    """Return what the file of a fit that comes along says."""
    return tomllib.loads(shipped_fit(name).read_text(encoding="utf-8"))


def _fitted(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    if not found["identified"]:
        return "not identified: the prior"
    return f"{found['median']} ({found['low']} .. {found['high']})"


def _validation(given: Mapping[str, Any]) -> str:
    """Return a block of the validation report, from the runs that `validate --store` has kept."""
    return VALIDATION[given["block"]](stored_validation())


def _families(given: Mapping[str, Any]) -> str:
    """Return the rows of some families, which a chapter on the model shows."""
    return family_table(stored_validation(), given["families"])


def _evidence(given: Mapping[str, Any]) -> str:
    """Return all that the twin is compared with, a row each."""
    return overview_table(_stored_cases(), stored_validation(), read_compared(COMPARED))


def _cases(given: Mapping[str, Any]) -> str:
    """Return the recorded cases, each with its errors."""
    return cases_table(_stored_cases())


@cache
def _stored_cases() -> Cases:
    return cases(read(), Store())


@cache
def stored_validation() -> list[Stored]:
    """Return the recorded runs that `validate --store` has kept, with what was simulated."""
    return read_validation(VALIDATED)


_WRITERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "releases": releases_text,
    "commands": _commands,
    "registry": _registry,
    "profiles": _profiles,
    "generations": _generations,
    "parameters": _parameters,
    "kernel parameters": _kernel_parameters,
    "scenarios": _scenarios,
    "withheld": _withheld,
    "fit": _fit,
    "validation": _validation,
    "families": _families,
    "evidence": _evidence,
    "cases": _cases,
}
