"""Twins of servers that were recorded under a real kernel, whose load is known.

The recordings are not part of the project: the tests are skipped, visibly, where they are absent.
"""

import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest

from calibration.dataset import Source
from calibration.look import Look, look
from calibration.readers import read_text
from calibration.twin.columns import columns_of_run
from calibration.twin.fitting import Twin, draw_draft, fit_draft
from sim.study.laboratory import Laboratory
from sim.units import parse_quantity

GROUND_TRUTH = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "groundtruth"
needs_ground_truth = pytest.mark.skipif(
    not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED"
)
# run -> parameter -> the true value: what fio and mailq were told (index.json)
TRUTHS = {
    "a_randread/randread-qd1-hdd7200.r1": {"process.sdb-reads.concurrency": 1},
    "c_mailq/ext3-p8-hdd7200.r1": {
        "process.sdb-fsyncs.concurrency": 8,
        "process.sdb-fsyncs.write_size": 12_236,
    },
}


def recorded(run: str) -> Look:
    """Return the look at a run's iostat, its loop device called by a disk's name."""
    packed = (GROUND_TRUTH / run / "iostat.txt.gz").read_bytes()
    text = re.sub(r"^loop\d+ ", "sdb ", gzip.decompress(packed).decode(), flags=re.MULTILINE)
    return look(Source(name="run", recordings=(read_text(text, "iostat.txt"),), host=None))


def twin_of(run: str, folder: Path) -> Twin:
    seen = recorded(run)
    return fit_draft(
        draw_draft(seen, 1),
        seen,
        folder / "twin.toml",
        comment="a test\n",
        seed=1,
        simulations=32,
        laboratory=Laboratory(measure=columns_of_run),
    )


@needs_ground_truth
@pytest.mark.slow
@pytest.mark.parametrize("run", TRUTHS)
def test_the_twin_is_a_fair_one_and_its_intervals_hold_the_truth(run: str, tmp_path: Path) -> None:
    twin = twin_of(run, tmp_path)
    assert twin.verdict.is_fair, twin.verdict.text
    space = twin.fit.space
    low, high = space.values(np.quantile(twin.fit.posterior.points, (0.05, 0.95), axis=0))
    ends = dict(zip(space.names, zip(low, high, strict=True), strict=True))
    for path, true in TRUTHS[run].items():
        # What is known exactly is no parameter of the fit.
        sure = twin.draft.sheet.sections[tuple(path.split(".")[:2])][path.split(".")[2]].value
        assert ends.get(path, (sure,) * 2)[0] <= true <= ends.get(path, (sure,) * 2)[1], path
    dims = {one.path: one.dim for one in space.priors}
    for path, (least, most) in ends.items():
        *section, key = path.split(".")
        entry = twin.draft.sheet.sections[tuple(section)][key]
        written = float(parse_quantity(entry.value, dims[path]))
        assert least * 0.999 <= written <= most * 1.001, path


@needs_ground_truth
def test_full_cpus_have_the_share_of_the_kernel_that_was_recorded() -> None:
    """fio at a depth of 4 on a fast disk: 29 % of the time in user mode, 71 % in the kernel."""
    draft = draw_draft(recorded("a_randread/randread-qd4-ssd4.r1"), 1)
    computing = draft.sheet.sections["process", "computing"]
    user, system = (parse_quantity(computing[key].value, "time_ns") for key in ("user", "system"))
    assert system / (user + system) == pytest.approx(0.71, abs=0.02)
