"""What is left out and counts is told at load, with the key that silences it."""

import pytest

from sim.origin import Origin, origin_of
from sim.scenario import ScenarioError, load, scenario_files
from sim.scenario.omissions import OMISSIONS, Omission
from tests.scenario.test_generation import dd_rate, scenario


@pytest.mark.parametrize("row", OMISSIONS, ids=lambda row: row.name)
def test_a_row_says_who_showed_that_it_counts(row: Omission) -> None:
    assert origin_of(row.source) not in (None, Origin.ASSUMED)


def test_a_generation_moves_a_figure_by_far_more_than_a_tenth() -> None:
    """The first row's own source: dd into the page cache of ext4, 0.95 and 2.7 GB/s."""
    of_2005, now = (dd_rate(name, kind="ext4", reads=False) for name in (None, "skylake-2017"))
    assert of_2005 == pytest.approx(0.95e9, rel=0.05)
    assert now == pytest.approx(2.7e9, rel=0.05)


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
