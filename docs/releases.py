"""What differs by kernel release, read off the tables of versions themselves.

Models: the list that someone needs who asks which release a scenario should name.
Invariants: every default that a release changes, every behaviour of a features.py and every part
that only some releases have is in one of the tables, ascending by release.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from docs.render import markdown_table
from sim.block.features import DRIVER_KINDS, default_elevator
from sim.block.features import features as block_features
from sim.block.queue import QueueParams
from sim.drivers.md.features import features as md_features
from sim.fs.features import SINCE as FS_SINCE
from sim.mm.features import SINCE as MM_SINCE
from sim.param import Param, params_of
from sim.registry import KINDS, lookup, names
from sim.scenario.cases import use_all
from sim.scenario.server import CORE
from sim.sched.features import features as sched_features
from sim.sched.version import OLDEST, KernelVersion, numbers
from sim.units import format_quantity

# Every release that the tables may name, from the oldest to one that is not there yet.
RELEASES: Final[tuple[KernelVersion, ...]] = (
    *((2, 6, patch) for patch in range(40)),
    *((3, minor) for minor in range(20)),
    *((4, minor) for minor in range(21)),
    *((5, minor) for minor in range(20)),
    *((6, minor) for minor in range(20)),
    *((7, minor) for minor in range(4)),
)
# Of each folder, what its rows say of themselves; below, those of which two releases are compared.
SINCE: Final[Mapping[str, Mapping[str, tuple[KernelVersion, str, str]]]] = {
    "sim/fs": FS_SINCE,
    "sim/mm": MM_SINCE,
}
FOLDERS: Final[Mapping[str, Callable[[KernelVersion], object]]] = {
    "sim/block": block_features,
    "sim/drivers/md": md_features,
    "sim/sched": sched_features,
}


def releases_text(given: Mapping[str, Any]) -> str:
    """Return one of the tables: given["of_what"] is defaults, elevators, behaviour or parts."""
    tables = {
        "defaults": _defaults,
        "elevators": _elevators,
        "behaviour": _behaviour,
        "parts": _parts,
    }
    return tables[given["of_what"]]()


def _tables() -> Iterator[tuple[str, type]]:
    """Yield what has parameters: its name for a reader, and the class of its parameters."""
    use_all()
    yield from ((f"machine.{name}", cls) for name, cls in CORE.items())
    yield "queue", QueueParams
    for kind in KINDS:
        yield from ((f"{kind} {name}", lookup(kind, name).params) for name in names(kind))


def _defaults() -> str:
    """Return which release changed which default."""
    rows: list[tuple[KernelVersion, list[str]]] = []
    for name, cls in _tables():
        defaults: Callable[[str], Mapping[str, tuple[Any, str]]] | None
        defaults = getattr(cls, "kernel_defaults", None)
        if defaults is None:
            continue
        declared = {one.name: one for one in params_of(cls)}
        before: Mapping[str, tuple[Any, str]] = {}
        for release in RELEASES:
            now = defaults(numbers(release))
            for key in sorted(now):
                if release != OLDEST and before.get(key) != now[key]:
                    value, source = now[key]
                    shown = _shown(declared[key], value)
                    rows.append((release, [f"`{name}`", f"`{declared[key].key}`", shown, source]))
            before = now
    return _by_release(["part", "key", "default from there on", "source"], rows)


def _shown(declared: Param, value: Any) -> str:
    return "none" if value is None else f"`{format_quantity(value, declared.dim)}`"


def _elevators() -> str:
    """Return which elevator a queue has from which release on, by driver."""
    rows: list[tuple[KernelVersion, list[str]]] = []
    for name, kind in DRIVER_KINDS.items():
        before = ("", "")
        for release in RELEASES:
            now = default_elevator(release, kind, 1), default_elevator(release, kind, 2)
            if now != before:
                rows.append((release, [name, *(f"`{elevator}`" for elevator in now)]))
            before = now
    return _by_release(["driver", "one hardware queue", "several"], rows)


def _behaviour() -> str:
    """Return which release behaves in another way, by folder."""
    rows = [
        (since, [folder, f"`{name}`", what, source])
        for folder, table in SINCE.items()
        for name, (since, what, source) in table.items()
    ]
    for folder, features in FOLDERS.items():
        before = features(RELEASES[0])
        for release in RELEASES[1:]:
            now = features(release)
            for one in fields(now):  # type: ignore[arg-type]
                was, is_now = getattr(before, one.name), getattr(now, one.name)
                if was != is_now:
                    change = f"{was} to {is_now}"
                    rows.append(
                        (release, [folder, f"`{one.name}`", change, f"{folder}/features.py"])
                    )
            before = now
    return _by_release(["folder", "what", "change", "source"], rows)


def _parts() -> str:
    """Return the parts that only some releases have."""
    use_all()
    entries = [lookup(kind, name) for kind in KINDS for name in names(kind)]
    rows = [
        (one.since or OLDEST, [one.kind, f"`{one.name}`", one.doc, one.releases()])
        for one in entries
        if one.since or one.until
    ]
    return _by_release(["kind", "name", "what it is", "releases"], rows)


def _by_release(headings: list[str], rows: list[tuple[KernelVersion, list[str]]]) -> str:
    """Return a table in the order of the releases; what has the same release keeps its order."""
    texts = [
        [numbers(release), *(cell.replace("|", "\\|") for cell in row)]
        for release, row in sorted(rows, key=lambda pair: pair[0])
    ]
    return markdown_table(["Linux", *headings], texts, len(headings) + 1)
