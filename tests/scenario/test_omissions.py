"""What is left out and counts is told at load, with the key that silences it."""

import pytest

from sim.scenario import ScenarioError, load, scenario_files
from sim.scenario.omissions import OMISSIONS
from tests.scenario.test_generation import scenario


def names_told(*lines: str) -> list[str]:
    """Return which rows lines are of."""
    return [row.name for line in lines for row in OMISSIONS if row.told in line]


def test_a_kernel_of_4_x_without_a_generation_is_told_how_to_choose_one() -> None:
    [line] = scenario(kernel="4.4").omissions
    assert names_told(line) == ["cpu-generation"]
    assert 'machine.cpu.generation = "NAME"' in line
    assert "\n" not in line


@pytest.mark.parametrize("generation", ["netburst-2005", "zen4-2023"])
def test_a_generation_silences_it(generation: str) -> None:
    assert scenario(generation, kernel="6.1").omissions == ()


def test_a_kernel_of_the_defaults_days_is_told_nothing() -> None:
    assert scenario(kernel="2.6.32").omissions == ()


@pytest.mark.parametrize(
    ("kind", "kernel", "told"),
    [("ext4", "6.15", False), ("ext4", "6.16", True), ("xfs", "6.5", False), ("xfs", "6.6", True)],
)
def test_large_folios_are_told_where_the_file_system_has_them(
    kind: str, kernel: str, told: bool
) -> None:
    lines = scenario("zen4-2023", kind=kind, kernel=kernel).omissions
    assert names_told(*lines) == (["large-folios"] if told else [])


def test_huge_pages_are_told_where_a_program_fills_memory() -> None:
    fills = 'program = "memload"\nsize = "64 MiB"'
    lines = scenario("zen4-2023", process=fills).omissions
    assert names_told(*lines) == ["huge-pages"]


@pytest.mark.parametrize(
    ("generation", "told"), [("sandy-bridge-2012", []), ("skylake-2017", ["hwp"])]
)
def test_a_governor_of_a_processor_that_chooses_itself_is_told(
    generation: str, told: list[str]
) -> None:
    clocks = "cpufreq = { lowest = '1.2 GHz', base = '2.6 GHz' }"
    assert names_told(*scenario(generation, more=clocks).omissions) == told


def test_what_is_accepted_is_not_told() -> None:
    fills = 'program = "memload"\nsize = "64 MiB"'
    told = names_told(*scenario(kernel="6.18", process=fills).omissions)
    assert told == ["cpu-generation", "large-folios", "huge-pages"]
    accepts = f"accepts = {told!r}".replace("'", '"')
    assert scenario(kernel="6.18", process=fills, more=accepts).omissions == ()


def test_an_omission_that_nobody_told_cannot_be_accepted() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'large-folios'") as caught:
        scenario(more='accepts = ["large-folio"]')
    assert "mine.toml:7:" in str(caught.value)


@pytest.mark.parametrize("name", sorted(scenario_files()))
def test_the_scenarios_that_come_along_are_told_nothing(name: str) -> None:
    base = load(name)
    told = [load(name, what_if=one.name).omissions for one in base.what_ifs]
    assert not any((base.omissions, *told))
