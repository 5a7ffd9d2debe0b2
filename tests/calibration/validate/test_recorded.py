"""What is read as measured of a recorded run is what the recorder's own index says.

The recordings are not part of the project: skipped, visibly, where they are absent.
"""

import json
import os
from pathlib import Path

import pytest

from calibration.validate.measured import measured

GROUND_TRUTH = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "groundtruth"
FIGURES = ("result", "await_ms", "util", "iowait", "own_load", "clean")
NOT_READ = ("i_fio", "p_pgbench")  # not simulated yet: their results have figures of their own


@pytest.mark.skipif(not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED")
def test_what_is_read_as_measured_is_what_the_recorders_index_says():
    index = json.loads((GROUND_TRUTH / "index.json").read_text(encoding="utf-8"))
    for row in index:
        found = measured(GROUND_TRUTH / row["dir"])
        expected = {name: row[name] for name in FIGURES}
        expected["await_ms"] = {kind: row["await_ms"][kind] for kind in ("r", "w")}
        result = expected.pop("result")
        for name, value in result.items() if row["family"] not in NOT_READ else ():
            close = value if value is None else pytest.approx(value, rel=1e-3, abs=1e-3)
            assert found["result"][name] == close, row["id"]
        assert {name: found[name] for name in expected} == expected, row["id"]
