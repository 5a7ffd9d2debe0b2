"""`python -m docs`: make the tables of the documents from runs, and check everything they say.

    python -m docs make [NAME...]     simulate what tables need, fill the generated blocks
    python -m docs check [PART...]    text: blocks, links, typed tables; age: runs; commands

Where the compiled twin of these very sources is installed, it does the work; results are the same.
"""

import site
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]


def prefer_installed() -> str:
    """Let `sim` be the installed twin if its sources are this checkout's; say which it is."""
    for place in map(Path, site.getsitepackages()):
        if (place / "sim" / "_compiled.json").is_file():
            if all(_is_same(place, path) for path in _sources()):
                sys.path.insert(0, str(place))
                return f"the installed twin, {place}"
            return "this checkout, interpreted: the installed twin is of other sources"
    return "this checkout, interpreted"


def _sources() -> list[Path]:
    folders = ("sim", "calibration")
    return [path for folder in folders for path in (TOP / folder).rglob("*.py")]


def _is_same(place: Path, path: Path) -> bool:
    other = place / path.relative_to(TOP)
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
