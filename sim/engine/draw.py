"""Draws from discrete distributions: how many of many, without looking at each.

Models: binomial, hypergeometric and geometric numbers from a stream, exactly distributed.
Linux counterpart: none.
Invariants: the cost grows with the logarithm of the counts (binomial) or with the number drawn
(hypergeometric), never with the population.
Left out: approximations by a normal distribution.
"""

from math import log, log1p
from random import Random
from typing import Final

BERNOULLI_MAX: Final = 24  # trials done one by one


def binomial(stream: Random, trials: int, chance: float) -> int:
    """Return how many of ``trials`` come true.

    Large numbers are halved by their median order statistic, a beta variate (Devroye 1986, X.4.3).
    """
    if chance <= 0.0 or trials <= 0:
        return 0
    if chance >= 1.0:
        return trials
    found = 0
    while trials > BERNOULLI_MAX:
        rank = 1 + trials // 2
        split = stream.betavariate(rank, trials + 1 - rank)
        if split >= chance:
            trials = rank - 1
            chance = chance / split
        else:
            found += rank
            trials -= rank
            chance = (chance - split) / (1.0 - split)
    draw = stream.random
    for _ in range(trials):
        if draw() < chance:
            found += 1
    return found


def hypergeometric(stream: Random, marked: int, population: int, drawn: int) -> int:
    """Return how many of ``drawn`` (without putting back) are of the ``marked`` ones."""
    assert 0 <= marked <= population
    assert 0 <= drawn <= population
    if marked == 0 or drawn == 0:
        return 0
    if drawn == population:
        return marked
    if marked < drawn:  # The two change places.
        marked, drawn = drawn, marked
    if 2 * marked > population:  # Count the others: drawn of them are fewer.
        return drawn - _hits(stream, population - marked, population, drawn)
    return _hits(stream, marked, population, drawn)


def _hits(stream: Random, marked: int, population: int, drawn: int) -> int:
    draw = stream.random
    left = marked
    for taken in range(drawn):
        if left == 0:
            break
        if draw() * (population - taken) < left:
            left -= 1
    return marked - left


def misses_before_hit(stream: Random, chance: float) -> int:
    """Return how many trials fail before the first that comes true (geometric from 0)."""
    assert chance > 0.0
    if chance >= 1.0:
        return 0
    # 1 - random() is in (0, 1].
    return int(log(1.0 - stream.random()) / log1p(-chance))
