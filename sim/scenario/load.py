"""Find a scenario, lay it over what it extends, and its what-if and --set over it; read it.

Models: the way from a name on the command line to a frozen Scenario. A file that extends another
 scenario is a what-if of it that is kept: it says what is different, and may have what-ifs of its
 own beside those that it inherits.
Linux counterpart: none.
Invariants: base and every what-if are read in full, whichever is asked for, so that a mistake
 shows the first time the file is used; all problems are reported together.
 A what-if inherits neither [recorded] nor [calibrate]: what was recorded was the base. Nor does
 an extension that changes anything.
 What-ifs that are laid over each other, such as day+ssd, are read from left to right: where two
 change the same value, the later one counts. What was recorded was none of these sums.
Left out: several files laid over each other side by side, and expressions.
"""

import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sim.origin import Origin
from sim.registry import did_you_mean
from sim.scenario.calibrate import CalibrateSpec, read_calibrate
from sim.scenario.cases import (
    SCENARIO,
    BadPart,
    data_sets_beside,
    name_of,
    part_file,
    scenario_files,
    use,
)
from sim.scenario.levels import read_levels
from sim.scenario.omissions import omissions_of
from sim.scenario.options import OWN_KEYS, read_options
from sim.scenario.server import is_kernel, read_server
from sim.scenario.spec import Option, Scenario, WhatIf
from sim.scenario.workload import (
    check_hosts,
    check_interval,
    check_marks,
    check_references,
    check_storms,
    check_terms,
    read_links,
    read_measure,
    read_neighbours,
    read_processes,
    read_recorded,
    read_run,
)
from sim.sched.version import kernel_version
from sim.toml.errors import Place, Problem, ScenarioError, unknown, unreadable
from sim.toml.layers import Layer, Leaf, Table, merge, read_assignment, read_table
from sim.toml.reading import Parameter, Reading

_TOP_KEYS = (
    "title",
    "doc",
    "seed",
    "uses",
    "extends",
    "machine",
    "link",
    "process",
    "run",
    "measure",
    "slo",
    "recorded",
    "what_if",
    "option",
    "calibrate",
    "neighbour",
)
_NOT_IN_LAYERS = ("seed", "uses", "extends", "what_if", "option")
SEED_MAX = 2**63 - 1
JOINED = "+"  # between the names of what-ifs that are laid over each other


class UnknownScenario(LookupError):
    """No scenario, or no what-if of it, has that name; `problem` says so, up to the name."""

    def __init__(self, problem: str, name: str, known: Sequence[str]) -> None:
        hint = did_you_mean(name, known)
        super().__init__(f"{problem} '{name}'{hint} (known: {', '.join(known) or 'none'})")


def find(name: str) -> Path:
    """Return the file of a scenario given by name, or by path of a file or a case's folder.

    Raise UnknownScenario.
    """
    if name.endswith(".toml") or "/" in name or Path(name).name == "":
        for path in (Path(name), Path(name) / SCENARIO):
            if path.is_file():
                return path
        raise _no_file(name)
    files = scenario_files()
    if name not in files:
        if (Path(name) / SCENARIO).is_file():
            return Path(name) / SCENARIO
        here = f" (a file is here: ./{name}.toml)" if Path(f"{name}.toml").is_file() else ""
        raise UnknownScenario(f"no scenario{here}", name, sorted(files))
    return files[name]


def _no_file(name: str) -> UnknownScenario:
    """Return what is wrong with a path, and the files and scenarios that may have been meant."""
    path = Path(name)
    folder = path if path.is_dir() else path.parent
    known = sorted(str(p) for p in folder.glob("*.toml") if p.is_file())
    known += [path.stem] if path.stem in scenario_files() else []
    if path.is_dir():
        return UnknownScenario("a folder, not a scenario file:", name, known)
    problem = "neither a file nor a scenario:" if path.exists() else "no scenario file"
    return UnknownScenario(problem, name, known)


def load(
    name: str,
    *,
    what_if: str | None = None,
    sets: Sequence[str] = (),
    seed: int | None = None,
    fit: Table | None = None,
) -> Scenario:
    """Return a scenario by name or path; raise UnknownScenario or ScenarioError.

    `fit` has fitted values (sim.scenario.fitted), to lie on the file's and under a what-if's. Of a
    file given by its path every what-if is checked. The scenarios that come along are checked by
    their tests: of them only what is asked for is read, which takes a tenth of the time.
    """
    return open_scenario(name).read(what_if, sets=sets, seed=seed, fit=fit)


def open_scenario(name: str) -> "ScenarioFile":
    """Return a scenario's file by name or path, to read variants of it.

    Raise UnknownScenario, or ScenarioError if it is no scenario.
    """
    path = find(name)
    document = _document(_text_of(path), path)
    return ScenarioFile(document, () if name in scenario_files() else document.own_variants)


class ScenarioFile:
    """A scenario's file: taken apart once, checked at the first reading, read as often as wanted.

    The first read() reads base and the `checked` what-ifs as well, to tell their mistakes. Each
    further one reads a single variant.
    """

    def __init__(self, document: "_Document", checked: tuple[str, ...]) -> None:
        self._document = document
        self._checked = checked
        self._plan: CalibrateSpec | None = None
        self._is_checked = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._document.path

    def read(
        self,
        what_if: str | None = None,
        *,
        sets: Sequence[str] = (),
        seed: int | None = None,
        fit: Table | None = None,
    ) -> Scenario:
        """Return a variant; raise UnknownScenario if there is none, ScenarioError.

        A name such as "day+ssd" lays what-ifs over each other, from left to right.
        """
        document = self._document
        if fit is not None:
            document = replace(document, base=merge(document.base, fit))
        document.check_variant(what_if)
        assignments = _assignments(sets)
        if not self._is_checked:
            chosen, self._plan = _checked(document, self._checked, what_if, assignments, seed)
            self._is_checked = True
        else:
            chosen = self._alone(document, what_if, assignments, seed)
        return replace(
            chosen, plan=self._plan, omissions=(*chosen.omissions, *omissions_of(chosen))
        )

    def _alone(
        self,
        document: "_Document",
        what_if: str | None,
        assignments: Sequence[Table],
        seed: int | None,
    ) -> Scenario:
        """Return a variant of a file whose base is known to be right."""
        table = _laid(document.table(what_if), assignments)
        keeps_plan = not any("calibrate" in one.children for one in assignments)
        if keeps_plan:
            table = table.without("calibrate")
        scenario, problems = _read(table, document, what_if, seed)
        if scenario is None or problems:
            raise ScenarioError(problems)
        return replace(scenario, calibrate=self._plan) if keeps_plan and not what_if else scenario


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError([unreadable(_shown(path), error)]) from None


def load_text(
    text: str,
    path: Path,
    *,
    what_if: str | None = None,
    sets: Sequence[str] = (),
    seed: int | None = None,
    fit: Table | None = None,
) -> Scenario:
    """Return the scenario of a TOML text; `path` names it and is where its own files lie."""
    document = _document(text, path)
    file = ScenarioFile(document, document.own_variants)
    return file.read(what_if, sets=sets, seed=seed, fit=fit)


def _checked(
    document: "_Document",
    checked: tuple[str, ...],
    what_if: str | None,
    assignments: Sequence[Table],
    seed: int | None,
) -> tuple[Scenario, CalibrateSpec | None]:
    """Return a variant and the base's plan; read base and the `checked` what-ifs as well."""
    found: list[Problem] = list(document.problems)
    chosen = None
    plan = None
    told: set[Place] = set()
    for variant in dict.fromkeys((None, *document.variants, what_if)):
        if variant not in (None, what_if, *checked):
            continue
        table = document.table(variant)
        if variant == what_if:
            table = _laid(table, assignments)
        scenario, problems = _read(table, document, variant, seed)
        if variant is None:
            plan = scenario.calibrate if scenario is not None else None
            told = {problem.place for problem in problems}
            found += problems
        else:
            found += _news(problems, document, variant, told)
        chosen = scenario if variant == what_if else chosen
    if found:
        raise ScenarioError(found)
    assert chosen is not None
    return chosen, plan


def _laid(table: Table, assignments: Sequence[Table]) -> Table:
    for assignment in assignments:
        table = merge(table, assignment)
    return table


def _guest(name: str, what_if: str | None) -> Scenario:
    """Return a scenario that is another's neighbour: one variant of it alone is read."""
    path = find(name)
    document = _document(_text_of(path), path)
    document.check_variant(what_if)
    table = document.table(what_if)
    if "neighbour" in table.children:
        message = "a neighbour has no [neighbour.NAME] of its own: name all guests in one scenario"
        raise ScenarioError([Problem(_top(path), message)])
    scenario, problems = _read(table, document, what_if, None)
    if problems or document.problems or scenario is None:
        raise ScenarioError([*document.problems, *problems])
    return scenario


def _news(
    problems: list[Problem], document: "_Document", what_if: str, told: set[Place]
) -> list[Problem]:
    """Return a what-if's problems where the base has `told` of none; name it if they are its own.

    A line of the base is read again under each what-if, where what it lies on may be smaller.
    """
    base = set(_places(document.base))
    news = []
    for problem in problems:
        if problem.place not in base:
            news.append(problem)
        elif problem.place not in told:
            message = f"in what-if '{what_if}': {problem.message}"
            news.append(replace(problem, message=message))
    return news


def _places(table: Table) -> Iterator[Place]:
    """Yield every place of a table."""
    yield table.place
    for child in table.children.values():
        if isinstance(child, Leaf):
            yield from (child.key, child.at)
        else:
            yield from _places(child)


@dataclass(frozen=True)
class _Document:
    """A scenario file taken apart: the base, and the what-ifs and options to lay over it."""

    path: Path
    below: tuple[Path, ...]  # the files that it extends, the next first
    base: Table
    variants: dict[str, Table]  # of what-ifs and options
    own_variants: tuple[str, ...]  # those that are not inherited
    what_ifs: tuple[WhatIf, ...]
    options: tuple[Option, ...]
    uses: tuple[Path, ...]
    problems: tuple[Problem, ...]

    def table(self, variant: str | None) -> Table:
        """Return base with a what-if, or several joined by a plus sign, laid over it."""
        if variant is None:
            return self.base
        table = self.base.without("recorded", "calibrate")
        parts = variant.split(JOINED)
        for name in parts:
            table = merge(table, self.variants[name])
        return table if len(parts) == 1 else table.without("recorded")

    def what_if(self, variant: str | None) -> WhatIf | None:
        """Return the record of a what-if; of several laid over each other one of all of them."""
        if variant is None:
            return None
        known = {one.name: one for one in self.what_ifs}
        known |= {one.name: one.what_if for one in self.options}
        parts = [known[name] for name in variant.split(JOINED)]
        return WhatIf(
            name=variant,
            title="; ".join(one.title for one in parts),
            doc="\n\n".join(one.doc for one in parts if one.doc),
        )

    def check_variant(self, variant: str | None) -> None:
        """Raise UnknownScenario if a what-if is not there, or is named twice in a sum."""
        parts = [] if variant is None else variant.split(JOINED)
        for name in parts:
            if name not in self.variants:
                problem = f"'{name_of(self.path)}' has no what-if"
                raise UnknownScenario(problem, name, sorted(self.variants))
        if len(set(parts)) < len(parts):
            others = [name for name in sorted(self.variants) if name not in parts]
            raise UnknownScenario("a what-if is in it twice:", str(variant), others)

    def fitted_paths(self) -> frozenset[str]:
        """Return the parameters that [calibrate] fits to the recording, in every variant."""
        calibrate = self.base.table("calibrate")
        priors = calibrate.table("parameter") if calibrate is not None else None
        return frozenset() if priors is None else frozenset(priors.children)


def _fitted(parameters: Sequence[Parameter], paths: Collection[str]) -> tuple[Parameter, ...]:
    """Return the parameters; those that the scenario calibrates are fitted, whatever they say.

    What a what-if or --set puts in their place is not.
    """
    return tuple(
        replace(one, origin=Origin.FIT) if one.path in paths and one.layer <= Layer.FIT else one
        for one in parameters
    )


def _top(path: Path) -> Place:
    return Place(_shown(path), 1, 1, 1, "")


def _document(text: str, path: Path, above: tuple[Path, ...] = ()) -> _Document:
    """Take a file apart; `above` has the files that extend it."""
    root = read_table(text, _shown(path), Layer.SCENARIO)
    reading = Reading("")
    extended = _extended(reading, root, (*above, path.resolve()), path.parent)
    uses = _uses(reading, root, path)
    if reading.problems:  # its processes would be of programs that nobody knows
        raise ScenarioError(reading.problems)
    variants: dict[str, Table] = {}
    what_ifs, _tables = _layers(reading, root, "what_if", "a what-if", variants)
    offered, tables = _layers(reading, root, "option", "an option", variants)
    inherited = () if extended is None else extended.options
    options = read_options(reading, tables, offered, inherited)
    for name in tables:
        variants[name] = variants[name].without(*OWN_KEYS)
    own = _Document(
        path=path,
        below=(),
        base=root.without("uses", "extends", "what_if", "option"),
        variants=variants,
        own_variants=tuple(variants),
        what_ifs=tuple(what_ifs),
        options=options,
        uses=uses,
        problems=tuple(reading.problems),
    )
    return own if extended is None else _laid_over(extended, own)


def _layers(
    reading: Reading, root: Table, key: str, kind: str, variants: dict[str, Table]
) -> tuple[list[WhatIf], dict[str, Table]]:
    """Return what-ifs, or options, and their tables; put the layers that they are into `variants`.

    `kind` is what one of them is called.
    """
    found, tables = [], {}
    for name, table, below in reading.named_tables(root, (), key):
        for one in _NOT_IN_LAYERS:
            if one in table.children:
                reading.error(table.place, f"{kind} has no '{one}'")
        if JOINED in name:
            message = f"the name of {kind} has no '{JOINED}': it joins the names of several"
            reading.error(table.place, message)
            continue
        if name in variants:
            reading.error(table.place, f"{kind} has the name of a what-if: '{name}'")
            continue
        title = _text(reading, table, "title", below) or name
        found.append(WhatIf(name=name, title=title, doc=_text(reading, table, "doc", below)))
        tables[name] = table
        variants[name] = _raised(table.without("title", "doc"))
    return found, tables


def _extended(
    reading: Reading, root: Table, files: tuple[Path, ...], folder: Path
) -> _Document | None:
    """Return the scenario that a file extends, given by name or by a path from its folder."""
    name = _text(reading, root, "extends", ())
    leaf = root.leaf("extends")
    if not name or leaf is None:
        return None
    try:
        path = find(str(folder / name) if name.endswith(".toml") or "/" in name else name)
    except UnknownScenario as error:
        reading.error(leaf.at, f"extends: {error}")
        return None
    if path.resolve() in files:
        reading.error(leaf.at, f"extends: '{name}' is, or extends, this file")
        return None
    return _document(_text_of(path), path, files)


def _laid_over(low: _Document, high: _Document) -> _Document:
    """Return a file laid over the one that it extends."""
    tells_only = high.base.children.keys() <= {"title", "doc", "seed"}
    base = low.base if tells_only else low.base.without("recorded", "calibrate")
    inherited = tuple(one for one in low.what_ifs if one.name not in high.variants)
    options = tuple(one for one in low.options if one.name not in high.variants)
    return replace(
        high,
        below=(low.path, *low.below),
        base=merge(base, _raised(high.base)),
        variants=low.variants | high.variants,
        what_ifs=(*inherited, *high.what_ifs),
        options=(*options, *high.options),
        uses=(*low.uses, *high.uses),
        problems=(*low.problems, *high.problems),
    )


def _uses(reading: Reading, root: Table, path: Path) -> tuple[Path, ...]:
    """Import the files of parts that a scenario names; return them."""
    found: list[Path] = []
    leaf = root.leaf("uses")
    for name in reading.texts(root, (), "uses") or ():
        assert leaf is not None
        try:
            found.append(part_file(name, path))
            use(found[-1])
        except BadPart as error:
            reading.error(leaf.at, f"uses: {error}")
    return tuple(found)


def _shown(path: Path) -> str:
    """Return the path as short as it can be written from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _raised(table: Table) -> Table:
    """Return the table with everything in it at the what-if layer."""
    children: dict[str, Leaf | Table] = {}
    for name, child in table.children.items():
        if isinstance(child, Table):
            children[name] = _raised(child)
        else:
            children[name] = Leaf(child.value, Layer.WHAT_IF, child.key, child.at, child.source)
    return Table(table.place, Layer.WHAT_IF, children)


def _assignments(sets: Sequence[str]) -> list[Table]:
    found: list[Table] = []
    problems: list[Problem] = []
    for text in sets:
        try:
            found.append(read_assignment(text))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return found


def _read(
    root: Table, document: _Document, variant: str | None, seed: int | None
) -> tuple[Scenario | None, list[Problem]]:
    """Read one variant completely."""
    machine = root.table("machine") or Table(root.place, Layer.SCENARIO)
    kernel = machine.leaf("kernel")
    release = str(kernel.text()) if kernel else ""
    known = is_kernel(release)
    reading = Reading(release, kernel_version(release)) if known else Reading("")
    for name, child in root.children.items():
        if name not in _TOP_KEYS:
            place = child.key if isinstance(child, Leaf) else child.place
            reading.problems.append(unknown(place, "key", name, _TOP_KEYS))
    reading.table(root, (), "machine")
    server, described = read_server(reading, machine, document.path.parent)
    links = read_links(reading, root)
    processes = read_processes(reading, root)
    neighbours = read_neighbours(reading, root, server, _guest)
    check_references(reading, root, processes)
    check_terms(reading, root, processes, server)
    check_hosts(reading, root, processes, server.all("mount") if server else {})
    check_marks(reading, root, processes)
    check_storms(reading, root, processes)
    run = read_run(reading, root)
    measure = read_measure(reading, root, described, processes)
    check_interval(reading, root, run, measure)
    sets = data_sets_beside(document.path)
    for path in document.below:
        sets = data_sets_beside(path) | sets
    recorded = read_recorded(reading, root, sets)
    slo = read_levels(reading, root)
    calibrate = read_calibrate(reading, root, reading.parameters, document.variants, sets)
    title = _text(reading, root, "title", ())
    doc = _text(reading, root, "doc", ())
    seed = _seed(reading, root) if seed is None else seed
    if reading.problems or server is None or run is None or measure is None:
        return None, reading.problems
    scenario = Scenario(
        name=name_of(document.path),
        title=title or name_of(document.path),
        doc=doc,
        path=document.path,
        uses=document.uses,
        seed=seed,
        what_if=document.what_if(variant),
        what_ifs=document.what_ifs,
        options=document.options,
        server=server,
        links=links,
        processes=processes,
        run=run,
        measure=measure,
        recorded=recorded,
        slo=slo,
        parameters=_fitted(reading.parameters, document.fitted_paths()),
        calibrate=calibrate,
        omissions=tuple(reading.remarks),
        neighbours=neighbours,
    )
    return scenario, []


def _text(reading: Reading, table: Table, name: str, path: Sequence[str]) -> str:
    child = table.children.get(name)
    if child is None:
        return ""
    if isinstance(child, Leaf) and isinstance(child.value, str):
        value = child.value.strip()
        if name == "title" and not value.isprintable():
            reading.error(child.at, "'title' must be a line of text", given=ascii(value))
        return value
    reading.error(child.at if isinstance(child, Leaf) else child.place, f"'{name}' must be a text")
    return ""


def _seed(reading: Reading, root: Table) -> int:
    leaf = root.leaf("seed")
    if leaf is None:
        return 1
    value = leaf.value
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= SEED_MAX:
        reading.error(leaf.at, f"seed must be a whole number from 0 to {SEED_MAX}")
        return 0
    return value


@dataclass(frozen=True)
class Headline:
    """What `iotwin list` shows of a scenario."""

    name: str
    title: str
    what_ifs: dict[str, str]


def headlines() -> list[Headline]:
    """Return title and what-ifs of the scenarios that come along, without checking them."""
    found = []
    for name, path in sorted(scenario_files().items()):
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        variants = content.get("what_if", {})
        titles = {key: str(table.get("title", key)) for key, table in variants.items()}
        found.append(Headline(name, str(content.get("title", name)), titles))
    return found
