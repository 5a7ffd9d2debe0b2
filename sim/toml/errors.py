"""What is wrong with a scenario, told to its author.

Models: compiler diagnostics as rustc and ruff print them: place, message, the line, an underline.
Linux counterpart: none.
Invariants: a ScenarioError holds every problem that was found, in the order of the file.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sim.registry import nearest, nearest_of
from sim.units import SHOWN_MAX, shortened

NAMES_MAX = 40  # of those accepted that a message lists; of more, the nearest


@dataclass(frozen=True)
class Place:
    """A stretch of one line of a file, or of an option of the command line (then line is 0)."""

    file: str
    line: int
    col: int
    width: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file


@dataclass(frozen=True)
class Problem:
    """One mistake: where, what, what was given, what is allowed, the nearest valid name."""

    place: Place
    message: str
    given: str = ""
    allowed: str = ""
    nearest: str | None = None

    def render(self) -> str:
        """Return the message with its line underlined."""
        hint = f" - did you mean '{self.nearest}'?" if self.nearest else ""
        given = f", got {self.given}" if self.given else ""
        allowed = f" (accepted: {self.allowed})" if self.allowed else ""
        return f"{self.place}: error: {self.message}{given}{hint}{allowed}{self._excerpt()}"

    def _excerpt(self) -> str:
        place = self.place
        if not place.text.strip():
            return ""
        number = f"{place.line or '':>5}"
        first = place.col - SHOWN_MAX // 2 if place.col > SHOWN_MAX else 1
        shown = place.text[first - 1 : first - 1 + SHOWN_MAX]
        before = "".join(c if c == "\t" else " " for c in shown[: place.col - first])
        room = max(len(shown) - len(before), 1)
        marks = "^" * min(max(place.width, 1), room)
        return f"\n{number} | {shown}\n      | {before}{marks}"


class ScenarioError(ValueError):
    """A scenario that cannot be run; `problems` has every one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        unique = dict.fromkeys(problems)
        self.problems = tuple(sorted(unique, key=_order))
        super().__init__("\n".join(problem.render() for problem in self.problems))

    def __reduce__(self) -> tuple[type["ScenarioError"], tuple[tuple[Problem, ...]]]:
        return ScenarioError, (self.problems,)


def _order(problem: Problem) -> tuple[str, int, int]:
    return problem.place.file, problem.place.line, problem.place.col


def unreadable(file: str, error: OSError | UnicodeDecodeError) -> Problem:
    """Return the problem of a file that is no text in UTF-8, at its first wrong byte, or no file.

    `file` is its path as it is shown.
    """
    if isinstance(error, OSError):
        return Problem(Place(file, 1, 1, 1, ""), f"cannot be read: {error.strerror}")
    before = error.object[: error.start].split(b"\n")
    line = before[-1].decode(errors="replace")
    after = error.object[error.start :].split(b"\n")[0].decode(errors="replace").rstrip("\r")
    text = "" if "\0" in line + after else line + after  # not of a binary file, nor of UTF-16
    place = Place(file, len(before), len(line) + 1, 1, text)
    problem = f"not in UTF-8: byte 0x{error.object[error.start]:02x}"
    return Problem(place, problem, allowed="text in UTF-8")


def unknown(place: Place, what: str, given: str, known: Iterable[str], where: str = "") -> Problem:
    """Return the problem of a name that is none of the known ones."""
    names = tuple(known)
    return Problem(
        place,
        f"unknown {what} '{shortened(given)}'{where}",
        allowed=_listed(given, names),
        nearest=nearest(given, names),
    )


def _listed(given: str, names: tuple[str, ...]) -> str:
    """Return the names; of very many those like `given`, and how many there are."""
    if len(names) <= NAMES_MAX:
        return ", ".join(names) or "none"
    return ", ".join((*nearest_of(given, names), f"... of {len(names)} names"))
