"""`iotwin words`: everything that is registered, with an example that the reader takes."""

import json

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from sim.cli.words import TABLES, all_words
from sim.registry import KINDS, names
from sim.scenario.server import CORE


def words(*arguments: str) -> Result:
    """Run `iotwin words`."""
    return CliRunner().invoke(cli, ["words", *arguments], prog_name="iotwin")


def test_every_table_that_all_machines_have_is_described() -> None:
    assert set(TABLES) == set(CORE)


def test_every_registered_name_is_listed() -> None:
    result = words()
    assert result.exit_code == 0
    listed = result.stdout.split()
    for kind in KINDS:
        assert set(names(kind)) <= set(listed)


def test_a_word_has_its_example_and_all_its_keys() -> None:
    for one in all_words():
        result = words(one.name)
        assert result.exit_code == 0
        assert one.example in result.stdout
        for key in one.params:
            assert key.key in result.stdout


def test_a_key_is_a_word_of_all_that_have_it() -> None:
    content = json.loads(words("rate", "--json", "-").stdout)
    found = {one["name"] for one in content["words"]}
    assert {"transactions", "ebs-gp3", "web_clients"} <= found


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("postgres", "near to it: 'transactions' (a server by its demands)"),
        ("btrfs", "near to it: 'ext4'"),
        ("transactionz", "'transactions' (a server by its demands)"),
        ("qqqqqq", "`iotwin words` lists all"),
    ],
)
def test_a_word_that_is_none_leads_to_what_is_near(word: str, told: str) -> None:
    result = words(word)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


@pytest.mark.parametrize(
    ("word", "section"), [("warm", "process"), ("memory", "machine"), ("until", "run")]
)
def test_the_keys_of_every_table_of_a_file_are_words(word: str, section: str) -> None:
    content = json.loads(words(word, "--json", "-").stdout)
    assert ("section", section) in {(one["kind"], one["name"]) for one in content["words"]}


def test_a_cache_leads_to_the_key_that_fills_it() -> None:
    assert "'warm'" in words("redis").stderr
