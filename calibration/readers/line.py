"""What readers are made of: numbered lines, numbers of any locale, and the sink they write into.

Models: the page that an administrator pasted.
Linux counterpart: none.
Invariants: a line is taken by one reader or reported as a problem, never both, never neither (blank
lines apart); a number that is not one raises NotANumber: nothing is guessed.
Left out: the formats themselves, one file each.

A reader of a text format is fed line by line and says of each whether it belongs to its format, so
that formats may be mixed in one file (`uptime` between reports of `iostat`). A reader that does not
take a line leaves its state as it was.
"""

import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

from calibration.readers.clock import Clock
from calibration.readers.intake import PROBLEMS_MAX
from calibration.samples import FACTS, Kind, Problem, Sample

# Select Graphic Rendition, as sysstat writes it with S_COLORS=always.
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_MOST: Final = sys.float_info.max
_VOID: Final = re.compile(r"(?:[ \t]*+\n)*+")
_NUMBER: Final = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?", re.ASCII)


BLANKS: Final = 1000  # blank lines in a row that mean as much as any number of them
TEXT_KEPT: Final = 200  # characters of a line that is reported
CUT: Final = "the last line has no end, and its last number may have been cut"


class NotANumber(ValueError):
    """A field that should hold a number and does not."""


def number(text: str) -> float:
    """Return the number that a tool printed, with a decimal point or a locale's comma."""
    if not _NUMBER.fullmatch(text):
        raise NotANumber(f"{text!r} is not a number")
    value = float(text.replace(",", "."))
    if not math.isfinite(value):
        raise NotANumber(f"{text!r} is too large a number")
    return value


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file: its number from 1, its text without the end and without colours.

    `blanks` counts the blank lines directly above. `ended` is false for a last line without a line
    feed, which may have been cut anywhere.
    """

    number: int
    text: str
    blanks: int = 0
    ended: bool = True

    @property
    def fields(self) -> list[str]:
        """Return what stands between blanks."""
        return self.text.split()

    @property
    def may_be_cut(self) -> bool:
        """Tell whether the last number of the line may lack digits."""
        return not self.ended and self.text[-1:].isdigit()


def lines_of(text: str, first: int = 1) -> Iterator[Line]:
    """Yield the lines of a text, numbered from `first`, with any kind of line end.

    Of blank lines that follow each other the first BLANKS are yielded; the others are counted.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    at, number, blanks = 0, first, 0
    while at < len(text):
        end = text.find("\n", at)
        ended = end >= 0
        part = text[at:end] if ended else text[at:]
        line = Line(number, _COLOUR.sub("", part) if "\x1b" in part else part, blanks, ended)
        yield line
        blanks = 0 if part and not part.isspace() and line.fields else blanks + 1
        at, number = (end if ended else len(text)) + 1, number + 1
        if blanks >= BLANKS and (run := _VOID.match(text, at)) is not None:
            passed = text.count("\n", at, run.end())
            at, number, blanks = run.end(), number + passed, blanks + passed


@dataclass
class Sink:
    """Collects what the readers of one file find.

    `interval_s` is what the user knows of the interval where the text has no clock. `stamp_s` is
    the time that the last of `stamps` lines with nothing but the date gave (`date` between the
    reports of a tool without a clock); `commands` what was typed after the last prompt, or as the
    user tells; `title` and `stamp_line` the last lines with sysstat's title and with a time.
    `document` is where the JSON document begins that is being read: what is said about it is said
    there; `uptime` the last line of uptime, with its report and time. Of the problems the first
    PROBLEMS_MAX are kept, and `more` counts the others.
    """

    interval_s: float | None = None
    clock: Clock = field(default_factory=Clock)
    samples: list[Sample] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    stamp_s: float | None = None
    stamps: int = 0
    commands: tuple[tuple[str, ...], ...] = ()
    prompts: int = 0
    title: Line | None = None
    stamp_line: Line | None = None
    uptime: tuple[Line, int, float] | None = None
    document: Line = Line(1, "")
    more: int = 0

    def add(
        self,
        line: Line,
        kind: Kind,
        name: str,
        values: Mapping[str, float],
        *,
        time_s: float | None,
        since_boot: bool,
        report: int,
    ) -> None:
        """Add the columns of one row; report those that are beyond any number."""
        huge = [column for column, value in values.items() if not abs(value) <= _MOST]
        if huge:
            self.skip(line, f"{', '.join(huge)}: too large a number")
            values = {column: value for column, value in values.items() if column not in huge}
        self.samples.extend(
            Sample(
                time_s=time_s,
                kind=kind,
                name=name,
                column=column,
                value=value,
                since_boot=since_boot,
                report=report,
                line=line.number,
            )
            for column, value in values.items()
        )

    def skip(self, line: Line, why: str) -> None:
        """Report a line that is not taken into the table."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(Problem(line=line.number, text=line.text[:TEXT_KEPT], why=why))
        else:
            self.more += 1

    def learn(self, name: str, value: str) -> None:
        """Keep a fact; the first one said wins."""
        assert name in FACTS, name
        self.facts.setdefault(name, value)


class LineReader(Protocol):
    """One text format."""

    format: ClassVar[str]

    def feed(self, line: Line) -> bool:
        """Take the line, or leave it to others."""

    def close(self) -> None:
        """Finish at the end of the file: a last report that was cut is reported."""
