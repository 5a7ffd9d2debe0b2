"""The page of releases says what the tables of versions say."""

from docs.releases import releases_text
from sim.sched.version import kernel_version


def rows(of_what: str) -> list[list[str]]:
    """Return the cells of a table, without its headings."""
    lines = releases_text({"of_what": of_what}).strip().splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_table_ascends_by_release() -> None:
    for of_what in ("defaults", "behaviour", "parts"):
        releases = [kernel_version(row[0]) for row in rows(of_what)]
        assert releases == sorted(releases) != []


def test_a_default_that_comes_back_is_shown_each_time() -> None:
    """dirty_ratio: 40 %, 10 % from 2.6.22 on, 20 % from 2.6.30 on (mm/page-writeback.c)."""
    of_dirty_ratio = [row for row in rows("defaults") if row[2] == "`dirty_ratio`"]
    assert [(row[0], row[3]) for row in of_dirty_ratio] == [
        ("2.6.22", "`10 %`"),
        ("2.6.30", "`20 %`"),
    ]


def test_a_new_behaviour_is_shown_once_at_its_release() -> None:
    assert [row[0] for row in rows("behaviour") if row[2] == "`eevdf`"] == ["6.6"]


def test_a_part_of_some_releases_is_shown_with_them() -> None:
    [kyber] = [row for row in rows("parts") if row[2] == "`kyber`"]
    assert kyber[0] == "4.12" and kyber[-1].startswith("from 4.12")
