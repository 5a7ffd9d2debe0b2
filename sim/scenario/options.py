"""[option.NAME]: what could be bought or changed, what it costs, and what it goes with.

Models: a line of an offer. An option is a what-if with a price: its changes are read as those of a
 what-if are, and it can be asked for by name wherever a what-if can.
Linux counterpart: none.
Invariants: every name in `excludes` and `needs` is an option's; every option can be taken, alone or
 with what it needs; all prices are in one unit of money. What an option costs is in no trial's key.
Left out: prices that depend on what else is bought; several of one thing; rates of exchange.

    [option.ssd]
    title = "A SATA SSD"
    price = "300 EUR"
    excludes = ["disk_15k"]
    machine.disk.sda.profile = "ssd-sata"

`excludes` holds in both directions: it is enough that one of two options says it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from sim.scenario.spec import Option, WhatIf
from sim.toml.errors import Place, unknown
from sim.toml.layers import Table
from sim.toml.reading import Reading
from sim.units import given_text

OWN_KEYS: Final = ("price", "excludes", "needs")
PRICES: Final = 'such as 300 or "300 EUR"'
_PRICE: Final = re.compile(
    r"\s*(?P<number>[+-]?[0-9][0-9_]*(?:\.[0-9]+)?)\s*(?P<unit>[^\s\d.,_+-].*?)?\s*"
)


def read_options(
    reading: Reading,
    tables: Mapping[str, Table],
    what_ifs: Sequence[WhatIf],
    inherited: Sequence[Option],
) -> tuple[Option, ...]:
    """Return a file's own options: what they are called, and their tables by name.

    `inherited` are those of the scenario that the file extends. What is wrong is noted.
    """
    own = [_option(reading, tables[one.name], one) for one in what_ifs]
    inherited = [one for one in inherited if one.name not in tables]
    known = {one.name: one for one in (*inherited, *own)}
    for one in own:
        _check_names(reading, tables[one.name], one, known)
    for one in own:
        _check_taken(reading, tables[one.name], one, known)
    _check_units(reading, tables, own, inherited)
    return tuple(own)


def needed(option: Option, known: Mapping[str, Option]) -> dict[str, str]:
    """Return all that an option needs, and what that needs, each with the one that needs it."""
    found: dict[str, str] = {}
    waiting = [option]
    while waiting:
        one = waiting.pop(0)
        for name in one.needs:
            if name not in found and name in known:
                found[name] = one.name
                waiting.append(known[name])
    return found


def exclude(one: Option, other: Option) -> bool:
    """Return whether two options cannot be taken together."""
    return other.name in one.excludes or one.name in other.excludes


def _option(reading: Reading, table: Table, what_if: WhatIf) -> Option:
    """Return an option; what is wrong with its own keys is noted."""
    path = ("option", what_if.name)
    price, unit = _price(reading, table, what_if.name)
    return Option(
        what_if=what_if,
        price=price,
        unit=unit,
        excludes=reading.texts(table, path, "excludes") or (),
        needs=reading.texts(table, path, "needs") or (),
    )


def _price(reading: Reading, table: Table, name: str) -> tuple[float, str]:
    """Return a price and its unit, "" for none."""
    if "price" not in table.children:
        reading.error(table.place, f"[option.{name}] lacks 'price'", allowed=PRICES)
        return 0.0, ""
    leaf = table.leaf("price")
    value = None if leaf is None else leaf.value
    number, unit = math.nan, ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str) and (match := _PRICE.fullmatch(value)) is not None:
        number, unit = float(match["number"]), match["unit"] or ""
    if not math.isfinite(number):
        place = table.place if leaf is None else leaf.at
        given = given_text(value) if leaf is not None else ""
        reading.error(place, f"option.{name}.price: not a price", given=given, allowed=PRICES)
        return 0.0, unit
    if number < 0 and leaf is not None:
        message = f"option.{name}.price: a price is 0 or more"
        reading.error(leaf.at, message, given=given_text(value), allowed=PRICES)
    return number, unit


def _check_names(
    reading: Reading, table: Table, option: Option, known: Mapping[str, Option]
) -> None:
    """Note names that are no option's, and an option that names itself."""
    others = [name for name in known if name != option.name]
    for key, names in (("excludes", option.excludes), ("needs", option.needs)):
        for name in names:
            if name not in others:
                where = f" in option.{option.name}.{key}"
                reading.problems.append(unknown(_at(table, key), "option", name, others, where))


def _check_taken(
    reading: Reading, table: Table, option: Option, known: Mapping[str, Option]
) -> None:
    """Note an option that can never be taken: two of what it needs, and itself, exclude another."""
    needs = needed(option, known)
    group = [option, *(known[name] for name in needs if name != option.name)]
    for number, one in enumerate(group):
        for other in group[number + 1 :]:
            if exclude(one, other):
                who = f"option.{option.name} needs '{other.name}'"
                needer = needs[other.name]
                who += "" if needer == option.name else f" (through '{needer}')"
                why = "which it excludes, or which excludes it"
                if one is not option:
                    why = f"which excludes '{one.name}', or is excluded by it, and needs both"
                reading.error(_at(table, "needs"), f"{who}, {why}: it could never be taken")
                return


def _check_units(
    reading: Reading,
    tables: Mapping[str, Table],
    own: Sequence[Option],
    inherited: Sequence[Option],
) -> None:
    """Note a price in another unit of money than the first one's."""
    first = next(iter((*inherited, *own)), None)
    for one in own:
        if first is not None and one.unit != first.unit:
            message = f"option.{one.name}.price is in {one.unit or 'no unit'}"
            message += f", and that of '{first.name}' in {first.unit or 'no unit'}"
            allowed = "one unit of money for all options"
            reading.error(_at(tables[one.name], "price"), message, allowed=allowed)


def _at(table: Table, key: str) -> Place:
    """Return where a key's value stands; else the table's place."""
    return table.place_of(key)
