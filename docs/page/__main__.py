"""`python3 bootstrap.py page -o DIR`: the twin as a page of a browser, in a folder to serve."""

import argparse
import sys
import time
from pathlib import Path

from docs.page.make import FolderTakenError, make
from docs.page.pyodide import VERSION, NoPyodideError


def main() -> int:
    """Make the page; return the exit code, 2 where something must be done about it first."""
    parser = argparse.ArgumentParser(prog="python3 bootstrap.py page", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--pyodide",
        type=Path,
        metavar="FILE.tgz",
        help=f"the package pyodide {VERSION} of npm, where it cannot be fetched",
    )
    given = parser.parse_args()
    began_s = time.monotonic()
    try:
        missing = make(given.output.absolute(), given.pyodide)
    except (NoPyodideError, FolderTakenError) as error:
        print(f"iotwin: error: {error}", file=sys.stderr)
        return 2
    if missing:
        told = f"iotwin: not compiled, so the page takes longer to begin: {missing}"
        print(told, file=sys.stderr)
    print(f"The page is made, after {time.monotonic() - began_s:.0f} s. To look at it:")
    print(f"  python3 -m http.server --bind 127.0.0.1 --directory {given.output} 8000")
    print("and open http://127.0.0.1:8000/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
