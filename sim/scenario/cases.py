"""Where scenarios lie, and what belongs to one: its programs, its recording, its fits.

Models: a case is a folder: scenario.toml, and beside it the files of programs (or devices, or other
 parts) that it names in `uses`, `recording/` with the data set, and `fits/`. A scenario that needs
 nothing of its own is one file.
Linux counterpart: none; modprobe for a module that is named.
Invariants: a case is found in the same way wherever it lies; those that come along lie in the
 package `scenarios`, which sim never imports but by a file's name. A file of parts is imported
 once, under a name that depends on its path alone.
Left out: importing a file again after it was changed.
"""

import ast
import importlib.machinery
import importlib.util
import re
import sys
import tomllib
import traceback
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from sim.registry import registered_by

HOME: Final = Path(__file__).resolve().parents[2] / "scenarios"
SCENARIO: Final = "scenario.toml"
RECORDING: Final = "recording"
DATASET: Final = "dataset.toml"
FITS: Final = "fits"


_SYSCALLS: Final = Path(__file__).resolve().parents[1] / "syscall.py"
_PACKAGE: Final = "case_"  # how the names of packages begin whose files lie elsewhere


class BadPart(Exception):
    """A file of parts that cannot be used; the message says why, with file and line."""


def name_of(path: Path) -> str:
    """Return the name of the scenario that a file describes: of a case, that of its folder."""
    if path.name != SCENARIO:
        return path.stem
    return path.resolve().parent.name.replace("_", "-")


@cache
def scenario_files() -> Mapping[str, Path]:
    """Return the scenarios that come along, by name; looked for once."""
    files = list(HOME.glob("*.toml")) + list(HOME.glob(f"*/{SCENARIO}"))
    return MappingProxyType({name_of(path): path for path in sorted(files, key=name_of)})


# -- Recordings and fits.


def name_of_data_set(folder: Path) -> str:
    """Return the name of a data set: of a case's recording, that of the case."""
    if folder.name == RECORDING:
        return folder.resolve().parent.name.replace("_", "-")
    return folder.resolve().name


@cache
def data_sets() -> Mapping[str, Path]:
    """Return the folders of the recordings that come along, by case; looked for once."""
    folders = (path.parent for path in HOME.glob(f"*/{RECORDING}/{DATASET}"))
    return MappingProxyType({name_of_data_set(folder): folder for folder in sorted(folders)})


def data_sets_beside(path: Path) -> dict[str, Path]:
    """Return the recordings that a scenario's file may name: its own, and those that come along."""
    own = path.parent / RECORDING
    beside = {name_of(path): own} if path.name == SCENARIO and (own / DATASET).is_file() else {}
    return {**data_sets(), **beside}


def fit_beside(path: Path, against: str) -> Path:
    """Return where the fit of a scenario's file is kept (it need not be there)."""
    return path.parent / FITS / f"{name_of(path)}.{against}.toml"


def shipped_fit(name: str) -> Path:
    """Return the fit SCENARIO.AGAINST that comes along (it need not be there)."""
    scenario, _dot, against = name.partition(".")
    return fit_beside(scenario_files().get(scenario, HOME / f"{scenario}.toml"), against)


def shipped_fits() -> list[Path]:
    """Return all fits that come along."""
    return sorted(HOME.glob(f"*/{FITS}/*.toml"), key=lambda path: path.name)


# -- Programs and other parts.


def part_file(name: str, scenario: Path) -> Path:
    """Return the file of parts that a scenario names; BadPart if there is none.

    The name is a path from the scenario's file, or from the folder of the scenarios that come
    along: "program.py", "sendmail/program.py".
    """
    for folder in (scenario.parent, HOME):
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise BadPart(f"no file '{name}' beside the scenario")


def use(path: Path) -> None:
    """Import a file of parts, so that the registry has them; BadPart if that fails."""
    try:
        entries = registered_by(_module_name(path), is_foreign=not path.is_relative_to(HOME))
    except Exception as error:  # whatever the file does when it is run
        raise BadPart(_trouble(path, error)) from error
    if not entries:
        raise BadPart(f"{path.name} registers nothing: it lacks @register(...)")
    if not path.is_relative_to(HOME):
        _check_calls(path)


def own_files() -> tuple[Path, ...]:
    """Return the files of parts in use that did not come along."""
    modules = [module for name, module in sys.modules.items() if name.startswith(_PACKAGE)]
    files = (getattr(module, "__file__", None) for module in modules)
    return tuple(Path(file) for file in files if file)


def _check_calls(path: Path) -> None:
    """Refuse a system call that would do nothing, since nothing drives it; BadPart if there is one.

    A call that may sleep is a generator. Python runs it with `yield from` only, and drops it
    without a word where it stands alone.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="sys"), attr=name))):
                if name in _sleeping_calls():
                    where = f"{path.name}:{node.lineno}"
                    raise BadPart(f"{where}: sys.{name}() does nothing without 'yield from'")


@cache
def _sleeping_calls() -> frozenset[str]:
    """Return the names of the system calls that may sleep, as sim/syscall.py declares them."""
    tree = ast.parse(_SYSCALLS.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.returns is not None
        if ast.unparse(node.returns).startswith("Blocking[")
    )


def file_of_program(name: str) -> str:
    """Return the file of a case that comes along and registers a program; "" if there is none."""
    pattern = re.compile(rf'register\(\s*"program", "{re.escape(name)}"')
    for path in sorted(HOME.glob("*/*.py")):
        if pattern.search(path.read_text(encoding="utf-8")):
            return path.relative_to(HOME).as_posix()
    return ""


def use_all() -> None:
    """Import the parts of all cases that come along: for lists of all that there is."""
    for path in scenario_files().values():
        for name in tomllib.loads(path.read_text(encoding="utf-8-sig")).get("uses", ()):
            use(part_file(name, path))


def _module_name(path: Path) -> str:
    """Return the name of a file's module; the files of one folder are modules of one package."""
    if path.is_relative_to(HOME):
        return ".".join((HOME.name, *path.relative_to(HOME).with_suffix("").parts))
    package = f"{_PACKAGE}{zlib.crc32(str(path.parent).encode()):08x}"
    if package not in sys.modules:
        spec = importlib.machinery.ModuleSpec(package, None, is_package=True)
        spec.submodule_search_locations = [str(path.parent)]
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return f"{package}.{path.stem}"


def _trouble(path: Path, error: Exception) -> str:
    """Say where and why an import failed: in the file itself if it got that far."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}: {error.msg}"
    lines = list(_lines_of(path, error))
    where = f"{path.name}:{lines[-1]}" if lines else path.name
    return f"{where}: {type(error).__name__}: {error}"


def _lines_of(path: Path, error: Exception) -> Iterator[int]:
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename) == path and frame.lineno is not None:
            yield frame.lineno
