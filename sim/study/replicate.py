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
    first: int = 0,
    sets: tuple[str, ...] = (),
    keep: bool = False,
) -> list[list[Replication]]:
    """Return for each scenario its replications from number `first` on, seeds from its own on.

    Without a laboratory all runs follow each other here. `sets` is what was laid over all of them,
    for their commands; `keep`: the readings of the first seed are wanted. Raise UnfinishedError
    with what is done of each scenario.
    """
    trials = [
        trial_of(one, one.seed + i, sets=sets, keep=keep and i == 0)
        for one in scenarios
        for i in range(first, first + replications)
    ]
    starts = range(0, len(trials), replications)
    try:
        done = (laboratory or Laboratory()).run(trials)
    except UnfinishedError as error:
        rows = [
            [one for one in error.done[i : i + replications] if one is not None] for i in starts
        ]
        raise UnfinishedError(rows, error.shortfall) from None
    return [done[i : i + replications] for i in starts]
