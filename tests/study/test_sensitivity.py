"""Indices of functions whose indices are known, chance beside them, and what has no indices."""

import math
from pathlib import Path

import numpy as np
import pytest

from sim.scenario.calibrate import PriorSpec
from sim.scenario.fitted import Fit
from sim.study.laboratory import Laboratory
from sim.study.over import read_range
from sim.study.points import Variants, measure
from sim.study.sensitivity import (
    MORRIS,
    SOBOL,
    Analysis,
    Design,
    Factor,
    Plan,
    Sample,
    assemble_sensitivity,
    factor_of,
    factors_of,
    points_of,
)
from tests.study.readers import readers

pytest.importorskip("SALib")

CONCURRENCY = "process.readers.concurrency"
CAPACITY = "machine.disk.sda.capacity"


def chance(seed: int, study: int = 0) -> float:
    """Return a number between 0 and 1 that a seed decides."""
    return float(np.random.default_rng([study, seed]).random())


def linear(sample: Sample, study: int = 0) -> float:
    """Variances 9/12, 1/12, 0, and 1/12 of chance."""
    return 3 * sample.shares[0] + sample.shares[1] + chance(sample.seed, study)


def ishigami(sample: Sample) -> float:
    """Ishigami and Homma (1990), with a = 7 and b = 0.1."""
    x, y, z = (math.pi * (2 * share - 1) for share in sample.shares)
    return math.sin(x) + 7 * math.sin(y) ** 2 + 0.1 * z**4 * math.sin(x)


def test_ishigamis_indices_are_within_5_hundredths() -> None:
    """Saltelli and others, Global Sensitivity Analysis: The Primer (2008), 4.6: exact indices."""
    first, second = 0.5 * (1 + 0.1 * math.pi**4 / 5) ** 2, 49 / 8
    both = 0.01 * math.pi**8 * (1 / 18 - 1 / 50)
    whole = first + second + both
    design = Design(Plan(SOBOL, 1024, 3), seed=1)
    found = design.analyse([ishigami(one) for one in design.samples])
    totals = [one.main.value for one in found.effects]
    alone = [one.beside.value for one in found.effects]
    exact = [(first + both) / whole, second / whole, both / whole]
    assert totals == pytest.approx(exact, abs=0.05)
    assert alone == pytest.approx([first / whole, second / whole, 0], abs=0.05)
    assert found.chance is not None
    assert found.chance.value == 0


def test_chance_has_its_share_beside_the_parameters() -> None:
    """Sobol's total indices of a sum add to 1: 9/11, 1/11, 0, and 1/11 of chance."""
    design = Design(Plan(SOBOL, 1024, 3), seed=2)
    found = design.analyse([linear(one) for one in design.samples])
    totals = [one.main.value for one in found.effects]
    assert totals == pytest.approx([9 / 11, 1 / 11, 0], abs=0.05)
    assert found.chance is not None
    assert found.chance.value == pytest.approx(1 / 11, abs=0.02)
    assert [one.number for one in found.ordered] == [0, 1, 2]


def test_elementary_effects_of_a_linear_function_are_its_slopes() -> None:
    """The seed is held while a parameter moves, so that chance does not blur them."""
    design = Design(Plan(MORRIS, 10, 3), seed=3)
    found = design.analyse([linear(one) for one in design.samples])
    assert [one.main.value for one in found.effects] == pytest.approx([3, 1, 0])
    assert [one.beside.value for one in found.effects] == pytest.approx([0, 0, 0], abs=1e-9)
    assert all(one.beside.interval is None for one in found.effects)


def test_the_share_of_chance_in_a_morris_design() -> None:
    """Four even levels have a variance of 5/36, where a whole range has 1/12."""
    design = Design(Plan(MORRIS, 400, 3), seed=4)
    found = design.analyse([linear(one) for one in design.samples])
    assert found.chance is not None
    exact = (1 / 12) / (10 * 5 / 36 + 1 / 12)
    assert found.chance.value == pytest.approx(exact, rel=0.15)  # 1 / sqrt(400), three times


@pytest.mark.parametrize("method", [MORRIS, SOBOL])
def test_what_chance_alone_decides_is_chance(method: str) -> None:
    design = Design(Plan(method, 200, 2), seed=5)
    found = design.analyse([chance(one.seed) for one in design.samples])
    assert [one.main.value for one in found.effects] == [0, 0]
    assert found.chance is not None
    assert found.chance.value == pytest.approx(1, abs=0.15)


def holds(found: Analysis, exact: list[float]) -> list[bool]:
    """Whether the intervals of all main indices, and of chance last, hold the exact values."""
    assert found.chance is not None
    estimates = [*(one.main for one in found.effects), found.chance]
    intervals = [one.interval for one in estimates]
    return [
        between is not None and between[0] <= value <= between[1]
        for between, value in zip(intervals, exact, strict=True)
    ]


def test_sobols_intervals_hold_the_indices_in_80_of_100_studies() -> None:
    """90 % are asked for; 100 studies of that fall short of 83 once in a hundred times.

    They are wider than need be for parameters, since the bootstrap does not know how evenly a
    Sobol sequence lies.
    """
    held = np.zeros(4)
    for study in range(100):
        design = Design(Plan(SOBOL, 32, 3), study)
        found = design.analyse([linear(one, study) for one in design.samples])
        held += holds(found, [9 / 11, 1 / 11, 0, 1 / 11])
    assert all(held >= 83)


def test_intervals_of_ten_trajectories_hold_in_80_of_100_studies() -> None:
    """f = 3 a + a b + chance: the effect of b is a, whose mean is 1/2; of a it is 3 + b."""
    levels = np.arange(4) / 3
    a, b = np.meshgrid(levels, levels)
    exact = [3.5, 0.5, (1 / 12) / ((3 * a + a * b).var() + 1 / 12)]
    held = np.zeros(3)
    for study in range(200):
        design = Design(Plan(MORRIS, 10, 2), study)
        values = [
            3 * one.shares[0] + one.shares[0] * one.shares[1] + chance(one.seed, study)
            for one in design.samples
        ]
        held += holds(design.analyse(values), exact)
    assert all(held >= 160)


def test_indices_do_not_depend_on_the_unit_of_the_figure() -> None:
    design = Design(Plan(SOBOL, 64, 3), seed=6)
    seconds = design.analyse([linear(one) for one in design.samples])
    shifted = design.analyse([1000 * linear(one) + 5 for one in design.samples])
    assert [one.main.value for one in shifted.effects] == pytest.approx(
        [one.main.value for one in seconds.effects]
    )


@pytest.mark.parametrize("method", [MORRIS, SOBOL])
def test_each_block_has_two_seeds_of_its_own(method: str) -> None:
    plan = Plan(method, 8, 3)
    design = Design(plan, seed=7)
    assert len(design.samples) == plan.runs
    for block in range(plan.blocks):
        inside = design.samples[block * plan.block : (block + 1) * plan.block]
        assert inside[0].seed == 2 * block
        assert {one.seed for one in inside} == {2 * block, 2 * block + 1}


def test_the_same_seed_takes_the_same_points() -> None:
    plan = Plan(SOBOL, 8, 2)
    assert Design(plan, seed=0).samples == Design(plan, seed=0).samples
    assert Design(plan, seed=0).samples != Design(plan, seed=1).samples


@pytest.mark.parametrize("method", [MORRIS, SOBOL])
def test_a_figure_that_does_not_vary_has_no_indices(method: str) -> None:
    design = Design(Plan(method, 8, 2), seed=8)
    found = design.analyse([0.1 + 0.2 if one.seed % 2 else 0.3 for one in design.samples])
    assert (found.effects, found.chance) == ((), None)
    assert (found.least, found.lacking) == (0.3, 0)


def test_blocks_with_a_run_that_lacks_the_figure_are_left_out() -> None:
    design = Design(Plan(MORRIS, 10, 3), seed=9)
    values: list[float | None] = [linear(one) for one in design.samples]
    values[0] = values[1] = values[design.plan.block] = None
    found = design.analyse(values)
    assert (found.lacking, found.blocks) == (3, 8)
    assert [one.main.value for one in found.effects] == pytest.approx([3, 1, 0])


def test_too_few_whole_blocks_say_nothing() -> None:
    design = Design(Plan(MORRIS, 10, 3), seed=10)
    values: list[float | None] = [linear(one) for one in design.samples]
    values[: 5 * design.plan.block : design.plan.block] = [None] * 5
    found = design.analyse(values)
    assert (found.lacking, found.blocks, found.chance) == (5, 5, None)
    assert design.analyse([None] * len(values)) == Analysis(
        lacking=len(values), blocks=0, least=None, greatest=None
    )


def test_a_prior_is_spread_as_it_says() -> None:
    prior = PriorSpec(
        path="process.web.wait",
        dim="time_ns",
        distribution="log-normal",
        low=1e6,
        high=1e8,
        source="assumed",
    )
    factor = factor_of(prior)
    assert [factor.at(share) for share in (0, 0.5, 1)] == [1_000_000, 10_000_000, 100_000_000]
    assert factor.scale == "logarithmic"


def test_a_fit_leaves_open_what_its_members_disagree_on(tmp_path: Path) -> None:
    fit = Fit(
        file="readers.toml",
        scenario="readers",
        kind="reproduction",
        against="",
        variants=("base",),
        parameters=("machine.disk.sda.read", CONCURRENCY, "process.gone.rate"),
        best={},
        members=tuple((f"{n} ms", "4", "1 /s") for n in range(1, 22)),
        header={},
    )
    [found] = factors_of(fit, readers(tmp_path).read())
    assert (found.path, found.range.low, found.range.high) == (
        "machine.disk.sda.read",
        2_000_000,
        20_000_000,
    )


def test_the_queue_decides_the_waiting_time_of_readers_and_the_disks_size_does_not(
    tmp_path: Path,
) -> None:
    """N readers of a disk of 5 ms wait N times 5 ms: from 1 to 4 of them mu* is 15 ms."""
    variants = Variants(file=readers(tmp_path))
    base = variants.read(None)
    texts = (f"{CONCURRENCY}=1..4", f"{CAPACITY}=4..8 GiB")
    factors = [Factor(range=read_range(text, [base])) for text in texts]
    design = Design(Plan(MORRIS, 4, 2), base.seed)
    points = points_of(variants, None, factors, design)
    assert {one.scenario.seed - base.seed for one in points} == set(range(8))
    done, unfinished = measure(points, 1, Laboratory())
    study = assemble_sensitivity(base, factors, design, done, ["transaction_ms"], unfinished)
    queue, size = study.analyses["transaction_ms"].effects
    assert queue.main.value == pytest.approx(15, rel=0.02)
    assert size.main.value == pytest.approx(0, abs=0.1)
