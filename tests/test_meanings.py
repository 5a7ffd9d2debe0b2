"""Words near in meaning: what they lead to is there, and comes before what is spelt alike."""

import pytest

from sim.cli.words import all_words
from sim.meanings import MEANINGS, meant_by
from sim.param import params_of
from sim.registry import did_you_mean
from sim.scenario.spec import ProcessSpec


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Return every name and every key that a scenario may have."""
    words = list(all_words())
    keys = {key.key for one in words for key in one.params}
    process = {key.key for key in params_of(ProcessSpec)}
    return {one.name for one in words} | keys | process | {"cpus", "memory"}


@pytest.mark.parametrize("word", MEANINGS)
def test_a_word_is_none_of_ours_and_leads_to_one(word: str, known: set[str]) -> None:
    assert word not in {one.name for one in all_words()}
    assert set(MEANINGS[word]) <= known


def test_meaning_comes_before_spelling() -> None:
    programs = ("postfix", "sendmail", "transactions")
    assert did_you_mean("postgres", programs) == " - did you mean 'transactions'?"
    assert did_you_mean("postfixx", programs) == " - did you mean 'postfix'?"
    assert did_you_mean("iops", ("iosched", "rate")) == " - did you mean 'rate'?"
    assert did_you_mean("btrfs", ("tmpfs", "ext4", "xfs")) == " - did you mean 'ext4'?"


def test_a_word_that_nobody_knows_means_nothing() -> None:
    assert meant_by("blergh") == ()
    assert meant_by("Postgres") == meant_by("postgres")
