"""To look at a run while it goes on changes nothing of it."""

from itertools import pairwise

import pytest

from sim.machine import simulate
from sim.scenario import load
from sim.serve.worker import Reader, Reading
from sim.study.laboratory import run_once
from sim.tools.iostat import compute_iostat


# Linux 6.1 brings io_ticks up to date at each reading of diskstats, which others do not; sendmail
# counts the lines of block_dump, which listens to the machine, too.
@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("fsync-where", ("run.duration=20 s",)),
        ("generic", ("run.duration=20 s",)),
        ("exim-io", ("run.duration=20 s",)),
    ],
)
def test_a_run_that_is_watched_is_the_same_run(name: str, sets: tuple[str, ...]) -> None:
    scenario = load(name, sets=sets)
    told: list[Reading] = []
    reader = Reader(told.append)
    watched = run_once(scenario, 3, progress=reader.progress, watch=reader.watch)
    alone = run_once(scenario, 3)
    assert (watched.digest, watched.metrics) == (alone.digest, alone.metrics)
    result = simulate(scenario, 3)
    samples = result.samples
    assert [one.report for one in told] == [
        compute_iostat(before, now) for before, now in pairwise(samples)
    ]
    shares = [one.share for one in told]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] <= 1
