"""[option.NAME]: prices, what goes together, and that an option is a what-if in all else."""

from pathlib import Path

import pytest

from sim.scenario import ScenarioError, UnknownScenario, load, load_text
from sim.scenario.spec import Scenario
from sim.study.trial import Keys, trial_of

FILE = Path("shop.toml")
BASE = """
title = "A shop"
[machine]
kernel = "5.10"
cpus = 1
memory = "1 GiB"
disk.sda.profile = "sata-7200"
mount."/" = { type = "ext4", device = "sda" }
[process.dd]
program = "dd"
if = "/dev/zero"
of = "/file"
blocks = 1
[run]
duration = "1 s"
[what_if.crowd]
process.dd.count = 2
"""
OFFER = """
[option.cpus]
title = "Four processors"
price = "250 EUR"
excludes = ["ssd"]
machine.cpus = 4
[option.ssd]
price = "300.50 EUR"
machine.disk.sda.profile = "ssd-sata"
[option.commit]
price = "0 EUR"
needs = ["ssd"]
machine.mount."/".commit = "1 s"
"""


def read(text: str = BASE + OFFER, what_if: str | None = None, *sets: str) -> Scenario:
    return load_text(text, FILE, what_if=what_if, sets=sets)


def told(offer: str) -> str:
    """Return what is said of options that cannot be."""
    with pytest.raises(ScenarioError) as caught:
        read(BASE + offer)
    return str(caught.value)


def test_an_option_has_a_price_and_says_what_it_goes_with() -> None:
    cpus, ssd, commit = read().options
    assert (cpus.name, cpus.what_if.title, cpus.price, cpus.unit) == (
        "cpus",
        "Four processors",
        250,
        "EUR",
    )
    assert (cpus.excludes, ssd.excludes, commit.needs) == (("ssd",), (), ("ssd",))
    assert (ssd.price, commit.price) == (300.5, 0)


def test_options_are_laid_over_a_scenario_as_what_ifs_are() -> None:
    scenario = read(BASE + OFFER, "crowd+cpus")
    assert (scenario.server.cpus, scenario.processes["dd"].count) == (4, 2)
    assert scenario.what_if is not None
    assert scenario.what_if.title == "crowd; Four processors"
    assert [one.name for one in scenario.what_ifs] == ["crowd"]
    with pytest.raises(UnknownScenario, match="did you mean 'cpus'"):
        read(BASE + OFFER, "cpu")


@pytest.mark.parametrize("price", ["price = 3", 'price = "3"', 'price = "3.00 "'])
def test_a_price_without_a_unit(price: str) -> None:
    [option] = read(f"{BASE}[option.a]\n{price}").options
    assert (option.price, option.unit) == (3, "")


def test_prices_and_options_are_in_no_key() -> None:
    keys = Keys(measure)
    scenarios = [
        read(BASE, "crowd"),
        read(BASE + OFFER, "crowd"),
        read((BASE + OFFER).replace("250", "99"), "crowd"),
    ]
    assert len({keys.of(one, trial_of(one, 1)) for one in scenarios}) == 1


def measure(_seen: object) -> dict[str, float]:
    """Stand for figures."""
    return {}


def test_a_file_inherits_options_and_may_replace_them(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE + OFFER, encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(
        'extends = "base.toml"\n[option.ssd]\nprice = "99 EUR"\nmachine.cpus = 2\n'
        '[option.both]\nprice = "1 EUR"\nneeds = ["commit"]\n',
        encoding="utf-8",
    )
    scenario = load(str(own))
    assert {one.name: one.price for one in scenario.options} == {
        "cpus": 250,
        "commit": 0,
        "ssd": 99,
        "both": 1,
    }
    assert load(str(own), what_if="ssd").server.cpus == 2


@pytest.mark.parametrize(
    ("offer", "problem"),
    [
        ("[option.a]\nmachine.cpus = 2", "[option.a] lacks 'price'"),
        ("[option.a]\nprice = -3", "a price is 0 or more, got -3"),
        ('[option.a]\nprice = "-3 EUR"', "a price is 0 or more"),
        ('[option.a]\nprice = "three"', "option.a.price: not a price"),
        ("[option.a]\nprice = true", "option.a.price: not a price"),
        ("[option.a]\nprice = nan", "option.a.price: not a price"),
        ('[option.a]\nprice = "1,200 EUR"', "option.a.price: not a price"),
        ("[option.a]\nprice.eur = 3", "option.a.price: not a price"),
        ("[option.a]\nprice = 3\nneeds = 4", "option.a.needs: expected a list of texts"),
        (
            '[option.aa]\nprice = 3\nneeds = ["bbb"]\n[option.bb]\nprice = 1',
            "unknown option 'bbb' in option.aa.needs - did you mean 'bb'? (accepted: bb)",
        ),
        ('[option.a]\nprice = 3\nexcludes = ["a"]', "unknown option 'a' in option.a.excludes"),
        (
            '[option.a]\nprice = 3\nneeds = ["b"]\nexcludes = ["b"]\n[option.b]\nprice = 1',
            "option.a needs 'b', which it excludes, or which excludes it",
        ),
        (
            '[option.a]\nprice = 3\nneeds = ["b"]\n[option.b]\nprice = 1\nneeds = ["c"]\n'
            '[option.c]\nprice = 1\nexcludes = ["a"]',
            "option.a needs 'c' (through 'b'), which it excludes, or which excludes it",
        ),
        (
            '[option.a]\nprice = 3\nneeds = ["b", "c"]\n[option.b]\nprice = 1\n'
            '[option.c]\nprice = 1\nexcludes = ["b"]',
            "option.a needs 'c', which excludes 'b', or is excluded by it, and needs both",
        ),
        (
            '[option.a]\nprice = "3 EUR"\n[option.b]\nprice = 1',
            "option.b.price is in no unit, and that of 'a' in EUR",
        ),
        ("[option.crowd]\nprice = 3", "an option has the name of a what-if: 'crowd'"),
        ("[option.a]\nprice = 3\nseed = 3", "an option has no 'seed'"),
        ('[option."a+b"]\nprice = 3', "the name of an option has no '+'"),
        ("[option.a]\nprice = 3\nmachine.cpsu = 3", "unknown key 'cpsu'"),
        ("[option]\na = 3", "option.a"),
    ],
)
def test_a_mistake_is_told_with_its_place(offer: str, problem: str) -> None:
    message = told(offer)
    assert problem in message
    assert message.startswith("shop.toml:")


def test_set_lies_over_an_option_and_not_into_it() -> None:
    with pytest.raises(ScenarioError, match="give the path itself"):
        read(BASE + OFFER, "cpus", "option.cpus.machine.cpus=3")
    assert read(BASE + OFFER, "cpus", "machine.cpus=3").server.cpus == 3
