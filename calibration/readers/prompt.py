"""Command lines: what the output below a prompt, or a whole file, answers.

Models: an administrator's paste of a terminal, prompts included, or the note of what was typed.
Linux counterpart: bash's PS1, `set -x`; lists and loops of sh(1).
Invariants: a line is a prompt only if the first command behind the "$", "#", "%", ">" or "+" is
of one of TOOLS, or a loop with one in it; where two commands of a tool differ, their options tell
nothing.
Left out: quotes, variables; prompts that end otherwise.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar, Final

from calibration.readers.line import Line, Sink

TOOLS: Final = frozenset(
    {
        "cat",
        "date",
        "dd",
        "fio",
        "free",
        "hdparm",
        "head",
        "iostat",
        "mpstat",
        "sadf",
        "sar",
        "swapon",
        "time",
        "top",
        "uptime",
        "vmstat",
        "w",
    }
)
BEFORE: Final = frozenset({"sudo", "nohup", "time", "nice", "do", "then"})
LOOPS: Final = frozenset({"while", "until", "for"})
_PROMPT: Final = re.compile(r"(?:\S.{0,60}?[\])\w~:/-])??\s?[$#%>+]+\s+(?P<command>\S.*)")


_BETWEEN: Final = re.compile(r"[;&|\n]+")

Command = tuple[str, ...]  # its words, the tool's name first, without the folder that it is in


def commands_of(text: str) -> tuple[Command, ...]:
    """Return the commands of a command line that are of one of TOOLS, in their order."""
    parts = map(_command, _BETWEEN.split(text))
    return tuple(words for words in parts if words[:1] and words[0] in TOOLS)


def _command(text: str) -> Command:
    words = text.split()
    while len(words) > 1 and words[0] in BEFORE:
        del words[0]
    return (PurePosixPath(words[0]).name, *words[1:]) if words else ()


def parse_prompt(text: str) -> tuple[Command, ...]:
    """Return the commands after a prompt; none if the line is no prompt."""
    found = _PROMPT.fullmatch(text.strip())
    if found is None:
        return ()
    first = _command(_BETWEEN.split(found["command"])[0])
    return commands_of(found["command"]) if first[:1] and first[0] in TOOLS | LOOPS else ()


def options_of(commands: Sequence[Command], tool: str) -> tuple[str, ...] | None:
    """Return the words after a tool's name; None if it was not typed, or in two ways."""
    typed = {command[1:] for command in commands if command[:1] == (tool,)}
    return typed.pop() if len(typed) == 1 else None


@dataclass
class PromptReader:
    """Takes prompts and leaves the commands in the sink, for the tool's own reader."""

    sink: Sink
    format: ClassVar[str] = ""

    def feed(self, line: Line) -> bool:
        """Take a prompt."""
        commands = parse_prompt(line.text)
        if not commands:
            return False
        self.sink.commands = commands
        self.sink.prompts += 1
        self.sink.learn("command", "; ".join(map(" ".join, commands)))
        return True

    def close(self) -> None:
        """Do nothing: a prompt is complete."""
