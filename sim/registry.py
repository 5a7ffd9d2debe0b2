"""The registry of pluggable things: devices, elevators, file systems, programs.

With it a new device or program is one new file that registers itself, as with register_blkdev,
elv_register and register_filesystem in Linux. A file elsewhere, such as a case's program, is
imported on request (registered_by) and enters what it has in the same way.

Invariants: a (kind, name) belongs to one class; filled at import, read-only afterwards. A name is
 looked for in the modules of its kind's home, first in those that are called like it, and no module
 is imported after the one that has it. A question about all names imports all modules.
 What is registered within `with provisional():` is forgotten at its end.
Left out: unloading anything else. A notebook may define a class again under its old name: the newer
 one counts.
"""

import difflib
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from sim.meanings import meant_by

T = TypeVar("T", bound=type)

# kind -> the package whose modules register such things
_HOMES: Final[Mapping[str, tuple[str, ...]]] = {
    "array": ("sim.drivers.md",),
    "component": ("sim.cgroup", "sim.drivers", "sim.fs", "sim.mm", "sim.net", "sim.sched"),
    "device": ("sim.drivers",),
    "elevator": ("sim.block",),
    "filesystem": ("sim.fs",),
    "frontend": ("sim.drivers",),
    "program": ("sim.user",),
}
KINDS: Final[tuple[str, ...]] = tuple(_HOMES)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One registered class, the class of its parameters, and a line about it."""

    kind: str
    name: str
    cls: type
    params: type
    doc: str
    since: tuple[int, ...] = ()  # first kernel release that has it; (): the oldest modelled
    until: tuple[int, ...] = ()  # the last one, whatever its patch level; (): the newest modelled

    def is_in(self, version: tuple[int, ...]) -> bool:
        """Return whether that kernel release has it."""
        return self.since <= version and version[: len(self.until)] <= self.until

    def releases(self) -> str:
        """Return in which releases it is, as a text for the user."""
        since, until = (".".join(map(str, bound)) for bound in (self.since, self.until))
        parts = (f"from {since}" if since else "", f"to {until}" if until else "")
        return " ".join(part for part in parts if part)


class UnknownName(LookupError):
    """A name that nothing is registered under; carries the known names and the nearest one."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        self.kind = kind
        self.name = name
        self.known = known
        self.nearest = nearest(name, known)
        hint = did_you_mean(name, known)
        super().__init__(f"no {kind} '{name}'{hint} (known: {', '.join(known) or 'none'})")


_entries: dict[tuple[str, str], Entry] = {}
_of_module: dict[str, dict[tuple[str, str], Entry]] = {}  # all that a module has ever entered
_loaded: set[str] = set()


def nearest(name: str, known: tuple[str, ...] | list[str]) -> str | None:
    """Return the known name nearest in meaning, else in spelling, or None if none is near."""
    meant = [one for one in meant_by(name) if one in known]
    found = meant or nearest_of(name, known, 1)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return what a message says after an unknown name: the nearest, or nothing if none is near."""
    found = nearest(name, list(known))
    return f" - did you mean '{found}'?" if found else ""


def nearest_of(name: str, known: tuple[str, ...] | list[str], number: int = 5) -> list[str]:
    """Return those of the known names that are like `name`, the most like first."""
    return difflib.get_close_matches(name, known, n=number, cutoff=0.5)


def register(
    kind: str,
    name: str,
    *,
    params: type,
    doc: str,
    since: tuple[int, ...] = (),
    until: tuple[int, ...] = (),
) -> Callable[[T], T]:
    """Return a class decorator that enters the class as `name` of `kind`.

    `since` and `until` are the first and the last kernel release that have such a thing.
    """
    if kind not in _HOMES:
        raise ValueError(f"no kind {kind!r}; known: {', '.join(KINDS)}")
    if not doc:
        raise ValueError(f"{kind} {name!r} needs a line of documentation")

    def enter(cls: T) -> T:
        entry = Entry(
            kind=kind, name=name, cls=cls, params=params, doc=doc, since=since, until=until
        )
        _enter(entry)
        _of_module.setdefault(cls.__module__, {})[kind, name] = entry
        return cls

    return enter


def _enter(entry: Entry) -> None:
    before = _entries.get((entry.kind, entry.name))
    if before is not None and _full_name(before.cls) != _full_name(entry.cls):
        raise ValueError(f"{entry.kind} {entry.name!r} is {_full_name(before.cls)} already")
    _entries[entry.kind, entry.name] = entry


def registered_by(module_name: str, *, is_foreign: bool) -> tuple[Entry, ...]:
    """Import a module that no kind is at home in; return what it registers, entered again.

    The names of a foreign one are compared with all that come along. Nothing of a module is
    registered if its import fails or a name is another's.
    """
    try:
        importlib.import_module(module_name)
        found = tuple(_of_module.get(module_name, {}).values())
        _forget(module_name)
        for entry in found:
            if is_foreign:
                _load(entry.kind)
            _enter(entry)
    except BaseException:
        _forget(module_name)
        raise
    return found


def _forget(module_name: str) -> None:
    for key in [key for key, entry in _entries.items() if entry.cls.__module__ == module_name]:
        del _entries[key]


@contextmanager
def provisional() -> Iterator[None]:
    """Forget at the end what was registered within: for tests, and for trying something out."""
    for kind in KINDS:
        _load(kind)  # So that no module of the package registers itself within, and is forgotten.
    before = dict(_entries)
    try:
        yield
    finally:
        _entries.clear()
        _entries.update(before)


def lookup(kind: str, name: str) -> Entry:
    """Return the entry; raise UnknownName with the known and the nearest names."""
    for module in () if (kind, name) in _entries else _unread(kind, called=name):
        importlib.import_module(module)
        if (kind, name) in _entries:
            break
    entry = _entries.get((kind, name))
    if entry is None:
        raise UnknownName(kind, name, names(kind))
    return entry


def names(kind: str) -> tuple[str, ...]:
    """Return the registered names of a kind, sorted."""
    _load(kind)
    return tuple(sorted(name for entered, name in _entries if entered == kind))


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _load(kind: str) -> None:
    """Import all modules of a kind's home packages, once."""
    for module in _unread(kind):
        importlib.import_module(module)
    _loaded.update(_HOMES[kind])


def _unread(kind: str, called: str = "") -> list[str]:
    """Return the modules of a kind that may not be imported yet, those called so first."""
    if kind not in _HOMES:
        raise ValueError(f"no kind {kind!r}; known: {', '.join(KINDS)}")
    found: list[str] = []
    for home in _HOMES[kind]:
        if home not in _loaded and importlib.util.find_spec(home) is not None:
            package = importlib.import_module(home)
            folders = getattr(package, "__path__", ())  # a module has none, and is imported now
            found += [module.name for module in pkgutil.walk_packages(folders, f"{home}.")]
    word = called.replace("-", "_")
    return sorted(found, key=lambda module: (*_is_other(module, word), module))


def _is_other(module: str, word: str) -> tuple[bool, bool]:
    """Put ...smtp.sender first for "smtp_sender", then all of ...ext4 for "ext4"."""
    is_called_so = f".{module}".replace(".", "_").endswith(f"_{word}")
    *folders, name = module.split(".")
    return not is_called_so, word not in folders and not name.startswith(word)
