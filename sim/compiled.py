"""Compiled or interpreted: which modules mypyc compiled, and whether they still match their source.

Models: nothing; it keeps anybody from editing a file and silently running an older compiled one.
Linux counterpart: vermagic, by which a kernel refuses a module built for another one.
Invariants: ``_compiled.json``, written by setup.py beside the compiled modules, holds the SHA-256
 of every source as it was compiled; importing ``sim`` fails when one differs. Without that record
 everything is interpreted and nothing is checked.
Left out: a check of the compiled files themselves; nobody edits those.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).resolve().parents[1]
RECORD: Final = Path(__file__).with_name("_compiled.json")


class StaleBuild(ImportError):
    """A source was changed after it was compiled."""


@dataclass(frozen=True, kw_only=True)
class BuildStatus:
    """What a build left: the compiled sources with their digests, and why there are no more."""

    digests: dict[str, str]  # path from the top, as "sim/engine/calendar.py" -> SHA-256
    note: str

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the names of the compiled modules."""
        return tuple(path.removesuffix(".py").replace("/", ".") for path in sorted(self.digests))


def status(record: Path = RECORD) -> BuildStatus:
    """Return what was compiled; nothing, with the reason, where all is interpreted."""
    try:
        text = record.read_text(encoding="utf-8")
    except FileNotFoundError:
        return BuildStatus(digests={}, note="a source tree: interpreted")
    found = json.loads(text)
    return BuildStatus(digests=found["digests"], note=found["note"])


def source_digest(path: Path) -> str:
    """Return the SHA-256 of a source file in hexadecimal; "missing" when there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return "missing"


def stale_sources(build: BuildStatus, top: Path = TOP) -> list[str]:
    """Return the compiled sources that are no longer what was compiled."""
    return [path for path, digest in build.digests.items() if source_digest(top / path) != digest]


def refuse_stale_build(record: Path = RECORD, top: Path = TOP) -> None:
    """Raise StaleBuild when a compiled module's source has changed since."""
    if not record.exists():
        return
    stale = stale_sources(status(record), top)
    if stale:
        others = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        raise StaleBuild(
            f"{top / stale[0]}{others} changed after it was compiled. Build again (`make install`, "
            "or `pip install .`), or remove what was compiled (`make clean` in a checkout)."
        )
