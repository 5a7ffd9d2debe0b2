"""`python -m docs`: make the tables of the documents from runs, and check everything they say.

    python -m docs make [NAME...]     simulate what tables need, fill the generated blocks
    python -m docs check [PART...]    text: blocks, links, typed tables; age: runs; commands

Where the compiled twin of these very sources is installed, it does the work; results are the same.
"""

import site
import sys
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]


def prefer_installed() -> str:
    """Let `sim` be the installed twin if its sources are this checkout's; say which it is."""
    for place in map(Path, site.getsitepackages()):
        if (place / "sim" / "_compiled.json").is_file():
            if all(_is_same(there, place / here) for there, here in _sources()):
                sys.path.insert(0, str(place))
                return f"the installed twin, {place}"
            return "this checkout, interpreted: the installed twin is of other sources"
    return "this checkout, interpreted"


def _sources() -> Iterator[tuple[Path, Path]]:
    """Yield the files that decide a result, and where each lies in an installed twin."""
    for folder in ("sim", "calibration", "scenarios"):
        for pattern in ("*.py", "*.toml"):
            for path in (TOP / folder).rglob(pattern):
                inside = path.relative_to(TOP)
                yield path, Path("sim", inside) if folder == "scenarios" else inside


def _is_same(path: Path, other: Path) -> bool:
    return other.is_file() and other.read_bytes() == path.read_bytes()


def main() -> None:
    """Run the command line."""
    which = prefer_installed()
    # Only now: what follows imports sim.
    from docs.command import docs

    print(f"docs: {which}", file=sys.stderr, flush=True)
    docs(prog_name="python -m docs")


if __name__ == "__main__":
    main()
