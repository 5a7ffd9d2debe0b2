"""`python -m docs`: make the tables of the documents from runs, and check everything they say.

    python -m docs make [NAME...]     simulate what tables need, fill blocks and figures
    python -m docs make figures       write the figures in sentences from what is stored
    python -m docs check [PART...]    text: blocks, figures, links; age: runs; commands

Where the compiled twin of these very sources is installed, it does the work; results are the same.
"""

import sys

from tests.tiers import take_installed, why_not_installed


def prefer_installed() -> str:
    """Let `sim` be the installed twin if it is of this checkout's sources; say which it is."""
    missing = why_not_installed(sys.path)
    if missing:
        return f"this checkout, interpreted: {missing}"
    take_installed()
    return "the installed twin"


def main() -> None:
    """Run the command line."""
    which = prefer_installed()
    # Only now: what follows imports sim.
    from docs.command import docs

    print(f"docs: {which}", file=sys.stderr, flush=True)
    docs(prog_name="python -m docs")


if __name__ == "__main__":
    main()
