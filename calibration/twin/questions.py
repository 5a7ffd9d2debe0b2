"""What a twin is asked: its own what-ifs, and how much of something: load=2, cpus=8, memory=32 GiB.

Models: the question as an administrator says it.
Linux counterpart: none.
Invariants: a question becomes a what-if and values that lie over it, so that every member of an
ensemble is asked the same; a multiple of the load is one of what each member has. What no recording
could answer is told without one, and what this one cannot before anything is simulated.
Left out: questions about parts of the load; `--set` of the twin's file asks them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from calibration.twin.draft import Draft
from calibration.twin.sheet import dotted
from calibration.twin.what_ifs import OF_MEMORY, every_name, what_ifs_of, with_twice_the_cache
from sim.registry import did_you_mean
from sim.scenario.load import JOINED
from sim.units import UnitError, format_quantity, parse_quantity

LOAD_MIN: Final = 0.05
LOAD_MAX: Final = 100.0
CPUS_MAX: Final = 1024
MACHINE_CPUS: Final = "machine.cpus"
MEMORY: Final = ("memory", *OF_MEMORY)
# A twin's what-if -> the question that it is: asked in the same way, whatever it is called.
SAME: Final[Mapping[str, str]] = {"double_load": "load=2", "half_load": "load=0.5"}
TIMES: Final[Mapping[float, str]] = {2.0: "twice", 0.5: "half"}


class QuestionError(ValueError):
    """A question that is none, or that this recording cannot answer."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A variant of a twin: `words` names it in a sentence, `load` is the multiple of the load."""

    name: str
    words: str
    what_if: str | None = None
    sets: tuple[str, ...] = ()
    load: float = 1.0

    @property
    def what_ifs(self) -> tuple[str, ...]:
        """Return the names of the what-ifs that lie over each other."""
        return tuple(self.what_if.split(JOINED)) if self.what_if else ()


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A part of a question: the name of a what-if, or an amount of `key`."""

    text: str
    key: str = ""
    amount: float = 0.0


def check_question(text: str) -> None:
    """Raise QuestionError for what is no question, whatever is recorded of a server."""
    list(_parts(text, every_name()))


def read_question(text: str, draft: Draft) -> Question:
    """Return what a text asks, such as "load=2", "ssd" or "ssd+load=2"; QuestionError."""
    known = {one.name: one for one in what_ifs_of(draft)}
    names: list[str] = []
    words: list[str] = []
    sets: list[str] = []
    load = 1.0
    for part in _parts(text, tuple(known)):
        if (part.key or part.text) in MEMORY and draft.memory_unknown:
            raise QuestionError(f"what-if '{part.text}': {draft.memory_unknown}")
        if part.key:
            told, values = QUANTITIES[part.key](part, draft)
            words.append(told)
            sets += values
            load = part.amount if part.key == "load" else load
        elif part.text in known:
            names.append(part.text)
            words.append(known[part.text].title)
        else:
            raise QuestionError(_unknown(part.text, tuple(known)))
    return Question(
        name=text,
        words=" and ".join(words),
        what_if=JOINED.join(names) or None,
        sets=tuple(sets),
        load=load,
    )


def _parts(text: str, offered: Sequence[str]) -> Iterator[_Part]:
    """Yield the parts of a question; QuestionError of what no twin has, naming those offered."""
    every = every_name()
    asked: set[str] = set()
    for part in map(str.strip, text.split(JOINED)):
        key, equals, value = map(str.strip, SAME.get(part, part).partition("="))
        if not equals or key not in AMOUNTS:
            if part not in every:
                raise QuestionError(_unknown(part, offered))
            yield _Part(text=part)
            continue
        if key in asked:
            raise QuestionError(f"what-if '{text}': '{key}' is asked twice")
        asked.add(key)
        yield _Part(text=part, key=key, amount=AMOUNTS[key](value))


def _unknown(part: str, known: Sequence[str]) -> str:
    hint = did_you_mean(part.partition("=")[0], (*known, *QUANTITIES))
    amounts = ", ".join(f"{name}={example}" for name, example in EXAMPLES.items())
    return f"no what-if '{part}'{hint} (known: {amounts}, {', '.join(known)})"


# -- Amounts, as they are typed


def _load_of(text: str) -> float:
    """Return how many times today's load is asked for; QuestionError."""
    try:
        times = float(text)
    except ValueError:
        times = 0.0
    if not LOAD_MIN <= times <= LOAD_MAX:
        allowed = f"so many times today's, from {LOAD_MIN:g} to {LOAD_MAX:g}"
        raise QuestionError(f"load={text}: a load is {allowed}")
    return times


def _cpus_of(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= CPUS_MAX:
        raise QuestionError(f"cpus={text}: a number of CPUs is a whole one from 1 to {CPUS_MAX}")
    return int(text)


def _memory_of(text: str) -> int:
    try:
        return int(parse_quantity(text, "bytes"))
    except UnitError as error:
        raise QuestionError(f"memory={text}: {error}") from None


# -- What an amount is to a twin: in words, and as values


def multiple(times: float) -> str:
    """Return a multiple in words: "twice", "half", "3 times"."""
    return TIMES.get(times, f"{times:g} times")


def _load(part: _Part, draft: Draft) -> tuple[str, list[str]]:
    times = part.amount
    words = f"{multiple(times)} the load"
    scaled = [name for name in draft.streams if _scales(draft, name, times)]
    if not scaled:
        raise QuestionError(f"{part.text}: {_no_part(draft)}")
    return words, [f"{dotted('process', one, 'load_scale')}={times:g}" for one in scaled]


def _no_part(draft: Draft) -> str:
    """Say which part of programs that always wait is one at least."""
    most = max(float(str(_customers(draft, name))) for name in draft.closed)
    if most < 2:
        return "one program that always has one request has no part"
    least = math.ceil(1000 / most) / 1000
    return f"of {most:g} programs that always wait the least part is one: load={least:g}"


def _customers(draft: Draft, name: str) -> object:
    return draft.sheet.sections["process", name]["concurrency"].value


def _scales(draft: Draft, name: str, times: float) -> bool:
    """Return whether so many times a stream's load is at least one customer."""
    return name not in draft.closed or float(str(_customers(draft, name))) * times >= 1


def _cpus(part: _Part, _draft: Draft) -> tuple[str, list[str]]:
    count = f"{part.amount:g}"
    return f"{count} CPU{'s' if part.amount > 1 else ''}", [f"{MACHINE_CPUS}={count}"]


def _memory(part: _Part, draft: Draft) -> tuple[str, list[str]]:
    size = int(part.amount)
    told = format_quantity(size, "bytes")
    scaled = with_twice_the_cache(draft)
    today = str(draft.sheet.sections["machine",]["memory"].value)
    if scaled and size < 2 * int(parse_quantity(today, "bytes")):
        raise QuestionError(
            f"{part.text}: the recording tells what twice today's memory ({today}) would save of"
            " the reads, and nothing of less"
        )
    sets = [f"{path}={value}" for path, value in scaled.items()]
    return f"{told} of memory", [f"machine.memory={told}", *sets]


AMOUNTS: Final[Mapping[str, Callable[[str], float]]] = {
    "load": _load_of,
    "cpus": _cpus_of,
    "memory": _memory_of,
}
Reader = Callable[[_Part, Draft], tuple[str, list[str]]]
QUANTITIES: Final[Mapping[str, Reader]] = {"load": _load, "cpus": _cpus, "memory": _memory}
EXAMPLES: Final[Mapping[str, str]] = {"load": "2", "cpus": "8", "memory": "32 GiB"}


def offered(draft: Draft, *, cpu_busy: float | None) -> Sequence[str]:
    """Return the questions that make sense for this server, at most four.

    Twice the load is everybody's. Then what stands in the way: CPUs that are more than half busy,
    the device, and writers that wait for it.
    """
    known = {one.name for one in what_ifs_of(draft)}
    wanted = [
        "load=2",
        "double_cpus" if cpu_busy is not None and cpu_busy > CPU_BUSY else "",
        next((name for name in ("nvme", "device_twice_as_fast") if name in known), ""),
        "no_fsync" if "no_fsync" in known else "",
    ]
    return [name for name in wanted if name]


CPU_BUSY: Final = 0.5
