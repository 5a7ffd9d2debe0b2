"""The digest of every lab's base: `python tests/lab_bases.py` prints them, by the twin it imports.

tests/test_compiled.py has the sources and the compiled twin print them, and
tests/docs/test_page_in_node.py has Python for browsers do so.
"""

import json

from sim.lab.labs import lab_files, open_lab
from sim.study.laboratory import run_once

SEED = 1


def digests() -> dict[str, str]:
    """Return the digest of the server that each lab asks about, before anything is changed."""
    return {
        name: run_once(open_lab(name).drawn(SEED).read(SEED), SEED).digest for name in lab_files()
    }


if __name__ == "__main__":
    print(json.dumps(digests()))
