"""What a power cut leaves: looking changes nothing, and one run shows several cuts."""

import pickle
from pathlib import Path

import pytest

from sim.machine import simulate
from sim.scenario import load_text
from sim.study.laboratory import Laboratory
from sim.study.power_cut import cut_power
from sim.study.promises import Watcher, ending_at
from sim.study.store import Store
from sim.study.trial import trial_of
from sim.units import NS_PER_MS
from tests.cli.small import SMALL

MOMENTS_NS = tuple(ms * NS_PER_MS for ms in (3300, 4000, 3600, 6000))


@pytest.fixture(scope="module")
def small():
    mount = 'mount."/" = { type = "ext3", device = "sda" }'
    text = SMALL.replace(mount, 'mount."/" = { type = "ext3", device = "sda", data = "journal" }')
    return load_text(text, Path("small.toml"))


def test_one_run_shows_what_each_cut_would_leave(small):
    ended = ending_at(small, MOMENTS_NS)
    watcher = Watcher(ended, MOMENTS_NS)
    simulate(ended, 5, watcher.told(None), watcher.watch)
    alone = [cut_power(small, one, 1).cuts[0].figures for one in MOMENTS_NS]
    assert list(watcher.figures) == alone
    assert len({tuple(one.items()) for one in alone}) == len(MOMENTS_NS)


def test_to_look_changes_nothing(small):
    ended = ending_at(small, MOMENTS_NS)
    watcher = Watcher(ended, MOMENTS_NS)
    watched = simulate(ended, 5, watcher.told(None), watcher.watch)
    assert watched.digest() == simulate(ended, 5).digest()


def test_a_trial_with_cuts_has_a_key_of_its_own_and_is_stored(small, tmp_path):
    trial = trial_of(small, 5, cuts_ns=MOMENTS_NS)
    ended = ending_at(small, MOMENTS_NS)
    alone = [cut_power(small, one, 1).cuts[0].figures for one in MOMENTS_NS]
    with Store(tmp_path / "runs.db") as store:
        first = Laboratory(store=store)
        assert list(first.run([trial])[0].cuts) == alone
        others = [
            trial_of(ended, 5),
            trial_of(small, 5),
            trial_of(small, 5, cuts_ns=MOMENTS_NS[1:]),
        ]
        assert [len(one.cuts) for one in first.run(others)] == [0, 0, 3]
        again = Laboratory(store=store)
        assert list(again.run([trial])[0].cuts) == alone
        assert (first.kept, again.known) == (4, 1)


def test_moments_that_need_too_many_readings_are_refused(small):
    with pytest.raises(ValueError, match="multiples of 1 ns"):
        ending_at(small, (4 * 10**9, 4 * 10**9 + 1))


def test_what_a_cut_leaves_comes_back_from_another_process(small):
    [cut] = cut_power(small, 4000 * NS_PER_MS, 1).cuts
    assert pickle.loads(pickle.dumps(cut)) == cut
