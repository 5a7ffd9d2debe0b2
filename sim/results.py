"""What a run leaves: texts of /proc at times, records of programs, and how to get the same again.

Models: the administrator's notebook: readings of /proc at times, log lines, the conditions.
Linux counterpart: sysstat's data file.
Invariants: nothing but texts and plain numbers; save and load give an equal result; the digest
 covers what was simulated, and no name of it: two versions, or two files, that simulate the same
 show the same digest.
Left out: kernel objects. For more figures take more readings.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sim.tools.snapshot import Snapshot

ProcSample = Snapshot  # /proc read at t_ns: file name -> text
Scalar = int | float | str
FORMAT = 1


@dataclass(frozen=True)
class Record:
    """A mark that a program left: when, what, which process, how much."""

    t_ns: int
    name: str
    comm: str
    value: Scalar


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One replication of one variant of a scenario."""

    scenario: str
    title: str
    what_if: str | None
    seed: int
    version: str
    samples: tuple[ProcSample, ...]
    records: tuple[Record, ...]

    def marks(self, name: str) -> Iterator[Record]:
        """Yield the records of one name, in order of time."""
        return (record for record in self.records if record.name == name)

    def first_ns(self, name: str) -> int | None:
        """Return the time of the first record of that name."""
        return next((record.t_ns for record in self.marks(name)), None)

    def digest(self) -> str:
        """Return SHA-256 of everything simulated, as hexadecimal digits; of no name or title."""
        content = self.to_json()
        for name in ("version", "scenario", "title", "what_if"):
            del content[name]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the result as what json can write."""
        return {
            "format": FORMAT,
            "scenario": self.scenario,
            "title": self.title,
            "what_if": self.what_if,
            "seed": self.seed,
            "version": self.version,
            "samples": [[sample.t_ns, dict(sample.files)] for sample in self.samples],
            "records": [[r.t_ns, r.name, r.comm, r.value] for r in self.records],
        }

    def to_text(self) -> str:
        """Return the result as the text of a file, one sample or record a line."""
        content = self.to_json()
        samples = ",\n".join(json.dumps(row) for row in content.pop("samples"))
        records = ",\n".join(json.dumps(row) for row in content.pop("records"))
        head = json.dumps(content)[:-1]
        return f'{head},\n"samples": [\n{samples}\n],\n"records": [\n{records}\n]}}\n'

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RunResult":
        """Return the result that to_json() wrote; ValueError if it is of another format."""
        if content.get("format") != FORMAT:
            raise ValueError(f"format {content.get('format')!r} of a result; known: {FORMAT}")
        return cls(
            scenario=content["scenario"],
            title=content["title"],
            what_if=content["what_if"],
            seed=content["seed"],
            version=content["version"],
            samples=tuple(ProcSample(t_ns, dict(files)) for t_ns, files in content["samples"]),
            records=tuple(Record(*fields) for fields in content["records"]),
        )
