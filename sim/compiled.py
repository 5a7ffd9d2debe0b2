"""Compiled or interpreted: which modules mypyc compiled, and whether they still match their source.

Models: nothing; it keeps anybody from editing a file and silently running an older compiled one.
Linux counterpart: vermagic, by which a kernel refuses a module built for another one.
Invariants: ``_compiled.txt``, written by setup.py beside the compiled modules, holds the checksum
 of every source as it was compiled; importing ``sim`` fails when one differs, whether the copy that
 was installed or the checkout that bootstrap.py made the environment from. Without that record
 everything is interpreted and nothing is checked.
Left out: a check of the compiled files themselves; nobody edits those.
"""

import sys
import zlib
from pathlib import Path
from types import TracebackType
from typing import Final

TOP: Final = Path(__file__).resolve().parents[1]
RECORD: Final = Path(__file__).with_name("_compiled.txt")
# Written by bootstrap.py into its environment: the folder of the checkout.
CHECKOUT: Final = Path(sys.prefix) / "iotwin-checkout"
# What compiling takes and brings (benchmarks/README.md), for those who announce it.
COMPILING: Final = (
    "compiling what a run spends its time in: two minutes on two quiet cores, once; simulations"
    " then run about three times as fast, with the same results"
)


class StaleBuild(ImportError):
    """A source was changed after it was compiled."""


def tell_in_one_line(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print a StaleBuild that nothing caught as one line, anything else as usual: an excepthook."""
    if isinstance(error, StaleBuild):
        print(f"iotwin: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def compiled_sources(record: Path = RECORD) -> dict[str, str]:
    """Return the checksum of every source that was compiled, by its path from the top.

    Nothing where all is interpreted.
    """
    try:
        lines = record.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    return {path: checksum for checksum, path in (line.split(" ", 1) for line in lines)}


def compiled_modules(record: Path = RECORD) -> tuple[str, ...]:
    """Return the names of the compiled modules."""
    paths = sorted(compiled_sources(record))
    return tuple(path.removesuffix(".py").replace("/", ".") for path in paths)


def source_checksum(path: Path) -> str:
    """Return the CRC-32 of a source file in hexadecimal; "missing" when there is none.

    Ninety files take 3 ms, and nobody forges them.
    """
    try:
        return f"{zlib.crc32(path.read_bytes()):08x}"
    except FileNotFoundError:
        return "missing"


def stale_sources(compiled: dict[str, str], top: Path = TOP) -> list[str]:
    """Return the compiled sources that are no longer what was compiled."""
    return [path for path, known in compiled.items() if source_checksum(top / path) != known]


def checkout(note: Path = CHECKOUT) -> Path | None:
    """Return the checkout that this environment was made from; None where there is none."""
    try:
        path = Path(note.read_text(encoding="utf-8").strip())
    except OSError:
        return None
    return path if (path / "bootstrap.py").is_file() else None


def refuse_stale_build(record: Path = RECORD, top: Path = TOP, note: Path = CHECKOUT) -> None:
    """Raise StaleBuild when a compiled module's source has changed since."""
    compiled = compiled_sources(record)
    if not compiled:
        return
    home = checkout(note)
    for place in [top] if home is None else [top, home]:
        stale = stale_sources(compiled, place)
        if stale:
            others = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
            remedy = (
                "install it again"
                if home is None
                else f"in {home}, `make fast` compiles it again, `make install` does without"
            )
            sys.excepthook = tell_in_one_line
            raise StaleBuild(f"{place / stale[0]}{others} changed after it was compiled: {remedy}")
