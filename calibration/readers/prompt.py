"""Shell prompts: the command line that the output below it answers.

Models: an administrator's paste of a terminal, prompts included.
Linux counterpart: bash's PS1, `set -x`.
Invariants: a line is a prompt only if one of TOOLS follows the "$", "#", "%", ">" or "+".
Left out: pipes and options behind them; prompts that end otherwise.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar, Final

from calibration.readers.line import Line, Sink

TOOLS: Final = frozenset(
    {
        "cat", "date", "dd", "fio", "free", "hdparm", "head", "iostat", "mpstat", "sadf", "sar",
        "swapon", "time", "top", "uptime", "vmstat", "w",
    }
)  # fmt: skip
BEFORE: Final = frozenset({"sudo", "nohup", "time", "nice"})
_PROMPT: Final = re.compile(r"(?:\S.{0,60}?[\])\w~:/-])??\s?[$#%>+]+\s+(?P<command>\S.*)")


def parse_prompt(text: str) -> tuple[str, ...] | None:
    """Return the words of the command after a prompt, the tool first; None if it is no prompt."""
    found = _PROMPT.fullmatch(text.strip())
    if found is None:
        return None
    words = found["command"].split()
    while len(words) > 1 and words[0] in BEFORE:
        del words[0]
    tool = PurePosixPath(words[0]).name
    return (tool, *words[1:]) if tool in TOOLS else None


def options_of(command: tuple[str, ...], tool: str) -> tuple[str, ...]:
    """Return the words after the tool's name if the command is that tool's, else none."""
    return command[1:] if command[:1] == (tool,) else ()


@dataclass
class PromptReader:
    """Takes prompts and leaves the command in the sink, for the tool's own reader."""

    sink: Sink
    format: ClassVar[str] = ""

    def feed(self, line: Line) -> bool:
        """Take a prompt."""
        command = parse_prompt(line.text)
        if command is None:
            return False
        self.sink.command = command
        self.sink.prompts += 1
        self.sink.learn("command", " ".join(command))
        return True

    def close(self) -> None:
        """Do nothing: a prompt is complete."""
