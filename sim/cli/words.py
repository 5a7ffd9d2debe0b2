"""`iotwin words`: what a scenario may name, with keys, defaults, meanings and an example.

Everything is made from the components' own declarations; what is near a word in meaning stands in
sim/meanings.py.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from sim.cli import options
from sim.cli.output import check_json, write_json
from sim.drivers.disk import PROFILES
from sim.meanings import meant_by
from sim.observation import MeasureSpec
from sim.param import Param, params_of
from sim.registry import KINDS, lookup, names, nearest_of
from sim.report.tables import Column, Table, print_table
from sim.scenario.cases import use_all
from sim.scenario.server import CORE
from sim.scenario.spec import LinkSpec, ProcessSpec, RunSpec, ServerSpec
from sim.sched.generation import GENERATIONS
from sim.toml.profile import Shelf
from sim.units import format_quantity

TABLE: Final = "table"  # a part of the kernel that every machine has
SECTION: Final = "section"  # a table of the file
# kind -> what a scenario says to have one, with its name
EXAMPLES: Final[Mapping[str, str]] = {
    "program": '[process.mine]\nprogram = "{}"',
    "device": '[machine.disk.sda]\ndevice = "{}"',
    "elevator": '[machine.disk.sda]\nscheduler = "{}"',
    "filesystem": '[machine.mount."/"]\ntype = "{}"\ndevice = "sda"',
    "frontend": '[machine.disk.sda]\nfrontend = "{}"',
    "array": '[machine.array.md0]\nlevel = "{}"',
    "component": "[machine.{}]",
    TABLE: "[machine.{}]",
    SECTION: "[{}]",
}
# name -> what declares its keys, what it is, whether there may be several
SECTIONS: Final[Mapping[str, tuple[type, str, bool]]] = {
    "machine": (ServerSpec, "the server", False),
    "process": (ProcessSpec, "a program that runs; its own keys stand here too", True),
    "link": (LinkSpec, "a network between the server and hosts outside", True),
    "run": (RunSpec, "when the run ends", False),
    "measure": (MeasureSpec, "what is measured, and when", False),
}
# What a compiled class says of itself is not there any more when the twin runs.
TABLES: Final[Mapping[str, str]] = {
    "cpu": "what the kernel's code costs on a generation of processors",
    "sched": "the CPU scheduler",
    "syscall": "what entering the kernel and its process calls cost",
    "tcp": "a host's TCP",
    "vfs": "what the code of the VFS costs",
    "vm": "memory: its sysctls, and what its code costs",
}
SHELVES: Final = {"profile": Shelf("profile", PROFILES), "generation": GENERATIONS}


@dataclass(frozen=True, kw_only=True)
class Word:
    """Something that a scenario may name."""

    kind: str
    name: str
    doc: str
    params: tuple[Param, ...]
    named: bool = False  # a component of which there may be several

    @property
    def example(self) -> str:
        """Return the beginning of its table, with what must be given."""
        lines = [EXAMPLES[self.kind].format(f"{self.name}.NAME" if self.named else self.name)]
        lines += [f"{one.key} = ...  # {one.allowed()}" for one in self.params if one.required]
        return "\n".join(lines)


def all_words() -> Iterator[Word]:
    """Yield all that is registered, the tables that every machine has, and those of a file."""
    use_all()
    for kind in KINDS:
        for name in names(kind):
            entry = lookup(kind, name)
            cls: Any = entry.cls
            named = kind == "component" and bool(cls.named)
            params = params_of(entry.params)
            yield Word(kind=kind, name=name, doc=entry.doc, params=params, named=named)
    for name, params_class in CORE.items():
        yield Word(kind=TABLE, name=name, doc=TABLES[name], params=params_of(params_class))
    for name, (spec, doc, named) in SECTIONS.items():
        yield Word(kind=SECTION, name=name, doc=doc, params=params_of(spec), named=named)


@click.command("words", short_help="Say what a scenario may name, with keys and examples.")
@click.argument("word", metavar="[WORD]", required=False)
@options.json_option
def command(word: str | None, json_path: str | None) -> None:
    """List what a scenario may name: programs, devices, file systems, parts of the machine.

    With a WORD: what it is, an example, and its keys with default, what is allowed and what it
    means. A key is a word as well. Of a word that the twin has not, what is near in meaning.

    \b
    Examples:
      iotwin words
      iotwin words transactions
      iotwin words rate
      iotwin words postgres
    """
    check_json(json_path)
    known = list(all_words())
    found = known if word is None else [one for one in known if one.name == word]
    keyed = [] if word is None else [one for one in known if any(p.key == word for p in one.params)]
    if word is not None and not found and not keyed and word not in SHELVES:
        raise click.UsageError(_unknown(word, known))
    if json_path is not None:
        write_json(_json(found or keyed), json_path)
    if json_path == "-":
        return
    if word is None:
        _list(known)
    for one in found if word is not None else ():
        _tell(one)
    if keyed:
        _tell_key(str(word), keyed)
    if word in SHELVES:
        click.echo(f"{word}: one of\n  " + "\n  ".join(SHELVES[word].names()))


def _unknown(word: str, known: list[Word]) -> str:
    """Return what a message says of a word that the twin has not."""
    there = {one.name: one for one in known}
    keys = {key.key for one in known for key in one.params}
    spelt = nearest_of(word, [*there, *keys], 3)
    near = [name for name in meant_by(word) or spelt if name in there or name in keys]
    told = [f"'{name}'" + (f" ({there[name].doc})" if name in there else "") for name in near]
    hint = f"; near to it: {', '.join(told)}" if told else "; `iotwin words` lists all"
    return f"no part and no key is called '{word}'{hint}"


def _list(known: list[Word]) -> None:
    rows: list[tuple[str, ...]] = []
    for kind in dict.fromkeys(one.kind for one in known):
        of_kind = [one for one in known if one.kind == kind]
        rows += [(kind if one is of_kind[0] else "", one.name, one.doc) for one in of_kind]
    rows += [
        (kind, "", f"{len(shelf.names())} of them: iotwin words {kind}")
        for kind, shelf in SHELVES.items()
    ]
    print_table(
        Table((Column("kind"), Column("name"), Column("what it is")), tuple(rows)), sys.stdout
    )


def _tell(one: Word) -> None:
    click.echo(f"{one.kind} {one.name}: {one.doc}\n\n{one.example}\n")
    if one.params:
        rows = tuple((key.key, _default(key), key.allowed(), key.doc) for key in one.params)
        heads = ("key", "default", "allowed", "what it means")
        print_table(Table(tuple(map(Column, heads)), rows), sys.stdout)
        click.echo()


def _tell_key(word: str, keyed: list[Word]) -> None:
    rows = tuple(
        (one.kind, one.name, _default(key), key.allowed(), key.doc)
        for one in keyed
        for key in one.params
        if key.key == word
    )
    click.echo(f"'{word}' is a key of:\n")
    heads = ("kind", "name", "default", "allowed", "what it means")
    print_table(Table(tuple(map(Column, heads)), rows), sys.stdout)


def _default(key: Param) -> str:
    if key.required:
        return "must be given"
    return "none" if key.default is None else format_quantity(key.default, key.dim)


def _json(found: list[Word]) -> dict[str, Any]:
    return {
        "words": [
            {
                "kind": one.kind,
                "name": one.name,
                "doc": one.doc,
                "example": one.example,
                "keys": [
                    {
                        "key": key.key,
                        "default": None if key.default is None else _default(key),
                        "required": key.required,
                        "dimension": key.dim,
                        "allowed": key.allowed(),
                        "doc": key.doc,
                        "source": key.source,
                    }
                    for key in one.params
                ],
            }
            for one in found
        ]
    }
