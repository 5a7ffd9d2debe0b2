"""The grammar in which calibration/record.py writes: samples made of named texts, read and written.

Models: turning the pages of a notebook.
Linux counterpart: none; `head -v` writes the lines "==> NAME <==".
Invariants: a sample is handed out only when its end line was seen; one that was cut (the recorder
was killed, the file system was full) is counted in `cuts` and never used; text is as recorded;
what text_of() writes is read back as it was.
Left out: what the texts mean (readers/recorder.py, host.py).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

_START: Final = re.compile(r"=== start (\S+) interval_s=([\d.]+)")
_STOP: Final = re.compile(r"=== stop (\S+) samples=\d+ cpu_s=[\d.]+ elapsed_s=[\d.]+")
_SAMPLE: Final = re.compile(r"=== (\d{4}-\d\d-\d\dT\S+)")
_END: Final = "=== end"
_SECTION: Final = re.compile(r"==> (.+) <==")


@dataclass(frozen=True, kw_only=True)
class TextSample:
    """One whole sample: when, where it begins, its texts by name, whether it is the first one.

    `begins`: the recorder was started (again) just before, so that there is a gap before it.
    """

    at: datetime
    line: int
    texts: dict[str, str]
    begins: bool
    interval_s: float


@dataclass
class RecordText:
    """Takes lines one by one; `done` collects whole samples, `cuts` the first lines of cut ones."""

    done: list[TextSample] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    _begins: bool = True
    _interval_s: float = 0.0
    _at: datetime | None = None
    _line: int = 0
    _pieces: dict[str, list[str]] = field(default_factory=dict)
    _section: list[str] | None = None

    def feed(self, number: int, text: str) -> bool:
        """Return whether the line belongs to this grammar; take it if so."""
        if text.startswith("=== ") and self._mark(number, text):
            return True
        if self._at is None:
            return False
        section = _SECTION.fullmatch(text)
        if section is not None:
            self._section = self._pieces.setdefault(section[1], [])
        elif self._section is not None:
            self._section.append(text)
        return True

    def close(self) -> None:
        """Say that the text is over: an open sample is a cut one."""
        if self._at is not None:
            self.cuts.append(self._line)
            self._at = None

    def _mark(self, number: int, text: str) -> bool:
        """Take a line that begins with "=== "; return False if it is none of ours."""
        if text == _END and self._at is not None:
            self._finish(self._at)
        elif (start := _START.fullmatch(text)) is not None:
            self.close()
            self._begins, self._interval_s = True, float(start[2])
        elif _STOP.fullmatch(text):
            self.close()
        elif (sample := _SAMPLE.fullmatch(text)) is not None and (at := _time(sample[1])):
            self.close()
            self._at, self._line, self._pieces, self._section = at, number, {}, None
        else:
            return False
        return True

    def _finish(self, at: datetime) -> None:
        texts = {name: "".join(f"{x}\n" for x in lines) for name, lines in self._pieces.items()}
        self.done.append(
            TextSample(
                at=at,
                line=self._line,
                texts=texts,
                begins=self._begins,
                interval_s=self._interval_s,
            )
        )
        self._begins, self._at = False, None


def text_samples(lines: Iterable[str]) -> list[TextSample]:
    """Return the whole samples of a text; lines of nothing we know are passed over."""
    text = RecordText()
    for number, line in enumerate(lines, start=1):
        text.feed(number, line)
    return text.done


def text_of(samples: Iterable[TextSample]) -> str:
    """Return what the recorder would have written of these samples."""
    lines: list[str] = []
    for sample in samples:
        at = sample.at.isoformat(timespec="milliseconds")
        if sample.begins:
            lines.append(f"=== start {at} interval_s={sample.interval_s:g}\n")
        lines.append(f"=== {at}\n")
        for name, text in sample.texts.items():
            lines += (f"==> {name} <==\n", text if text.endswith("\n") or not text else f"{text}\n")
        lines.append(f"{_END}\n")
    return "".join(lines)


def _time(text: str) -> datetime | None:
    """Return a time with its zone; None if it is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
