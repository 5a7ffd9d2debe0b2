"""Replications: the same seeds for every variant, the same figures wherever they run."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sim.scenario import RecordedSpec, Scenario, load_text
from sim.study.compare import run_study
from sim.study.executors import Place, place_of
from sim.study.laboratory import Laboratory
from sim.study.recorded import DatasetError
from sim.study.replicate import replicate
from tests.cli.small import SMALL

FILE = Path("small.toml")


def variants() -> list[Scenario]:
    """Return a base and a what-if that run in a moment."""
    return [load_text(SMALL, FILE), load_text(SMALL, FILE, what_if="slow")]


def test_every_variant_has_the_same_seeds_in_order() -> None:
    runs = replicate(variants(), 3)
    assert [[run.seed for run in done] for done in runs] == [[5, 6, 7], [5, 6, 7]]


def test_where_it_runs_changes_nothing() -> None:
    here = replicate(variants(), 2)
    there = replicate(variants(), 2, Laboratory(Place(2, ThreadPoolExecutor)))
    elsewhere = replicate(variants(), 2, Laboratory(place_of("local:2")))
    digests = [[[run.digest for run in done] for done in runs] for runs in (here, there, elsewhere)]
    assert digests[0] == digests[1] == digests[2]
    assert len({digest for done in digests[0] for digest in done}) == 4


def test_only_the_first_readings_are_kept_if_any() -> None:
    for keep in (True, False):
        [runs] = replicate(variants()[:1], 3, keep=keep)
        assert [run.result is not None for run in runs] == [keep, False, False]


def test_progress_rises_to_the_whole() -> None:
    shares: list[float] = []
    replicate(variants(), 2, Laboratory(progress=lambda done, total: shares.append(done / total)))
    assert shares == sorted(shares)
    assert len(shares) > 8  # a run that is under way counts by its part
    assert shares[-1] == 1


def test_the_change_is_against_the_first_variant() -> None:
    study = run_study(variants(), 2)
    assert study.variants[0].change is None
    change = study.variants[1].change
    assert change is not None
    assert change["disk.sda.await_ms"].lo > 0


def test_a_missing_recording_is_found_before_anything_runs() -> None:
    spec = RecordedSpec(figures="before", folder=Path("nothing"))
    with pytest.raises(DatasetError, match="no data set nothing"):
        run_study([replace(variants()[0], recorded=(spec,))], 1)
