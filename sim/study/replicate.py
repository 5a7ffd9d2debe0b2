"""Run a scenario several times, with common random numbers, in a laboratory.

Models: an experiment that is repeated under other chances.
Linux counterpart: none.
Invariants: replication i has seed base + i, for every variant alike, so that variants meet the same
 arrivals and differ only by what was changed; results come in the order of variants and seeds,
 wherever they are done.
Left out: deciding the number of replications from a wanted precision (sim.study.compare).
"""

from collections.abc import Sequence

from sim.scenario.spec import Scenario
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Replication
from sim.study.trial import trial_of


def replicate(
    scenarios: Sequence[Scenario],
    replications: int,
    laboratory: Laboratory | None = None,
    *,
    sets: tuple[str, ...] = (),
    keep: bool = False,
) -> list[list[Replication]]:
    """Return for each scenario its replications, seeds from its own on.

    Without a laboratory all runs follow each other here. `sets` is what was laid over all of them,
    for their commands; `keep`: the readings of the first seed are wanted. Raise UnfinishedError
    with what is done of each scenario.
    """
    done: list[list[Replication]] = [[] for _one in scenarios]
    try:
        add_runs(
            scenarios,
            done,
            replications,
            laboratory or Laboratory(),
            sets=[sets] * len(scenarios),
            keep=keep,
        )
    except UnfinishedError as error:
        raise UnfinishedError(done, error.shortfall) from None
    return done


def add_runs(
    scenarios: Sequence[Scenario],
    done: Sequence[list[Replication]],
    number: int,
    laboratory: Laboratory,
    *,
    sets: Sequence[tuple[str, ...]],
    keep: bool = False,
) -> None:
    """Add to what is done of each scenario until it has a number of replications.

    `sets` is what was laid over each, for its commands; `keep`: see replicate(). Raise
    UnfinishedError; what is finished is added all the same.
    """
    wanted = [
        (mine, trial_of(one, one.seed + i, sets=own, keep=keep and i == 0))
        for one, mine, own in zip(scenarios, done, sets, strict=True)
        for i in range(len(mine), number)
    ]
    where = [mine for mine, _trial in wanted]
    try:
        _keep(where, laboratory.run([trial for _mine, trial in wanted]))
    except UnfinishedError as error:
        _keep(where, error.done)
        raise


def _keep(where: Sequence[list[Replication]], outcomes: Sequence[Replication | None]) -> None:
    for mine, outcome in zip(where, outcomes, strict=True):
        if outcome is not None:
            mine.append(outcome)
