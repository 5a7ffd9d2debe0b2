"""Case 3: what was recorded of the mail server on ext3, and what XFS changes, from mechanism.

Nothing is fitted to what came after; to what was recorded before, see the head of the scenario.
"""

from datetime import UTC, datetime
from functools import cache

import pytest

from sim.machine import simulate
from sim.scenario import load
from sim.study.explain import explain
from sim.study.laboratory import run_once
from sim.study.recorded import load_figures
from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot

pytestmark = pytest.mark.slow
RECORDED = (
    "cpu.iowait_pct_max",
    "cpu.iowait_pct_median",
    "block_events.kjournald",
    "block_events.others",
)
SHORT = ('process.day.duration="4 min"',)


@cache
def figures(what_if: str | None) -> dict[str, float]:
    scenario = load("exim-io", what_if=what_if)
    return run_once(scenario, scenario.seed, False, None).metrics


@pytest.mark.parametrize("name", RECORDED)
def test_the_recorded_figures_before_come_out(name: str) -> None:
    [recorded] = load("exim-io").recorded
    assert load_figures(recorded).figures[name].verdict(figures(None)[name], "") == "agrees"


@pytest.mark.parametrize("kind", ["cached", "buffered"])
@pytest.mark.parametrize(("what_if", "host"), [("hdparm", "guest"), ("hdparm_dom0", "dom0")])
def test_hdparm_reads_as_fast_as_recorded(what_if: str, host: str, kind: str) -> None:
    name = f"{host}.{kind}_read_bytes_per_s"
    [recorded] = load("exim-io", what_if=what_if).recorded
    assert load_figures(recorded).figures[name].verdict(figures(what_if)[name], "") == "agrees"


def test_kjournald_has_most_block_events_and_on_xfs_there_is_none() -> None:
    assert figures(None)["block_events.kjournald_pct"] > 85  # 582 of some 660: 88
    assert figures("xfs")["block_events.kjournald"] == 0


def test_mail_piles_up_above_the_load_limit_on_ext3_and_not_on_xfs() -> None:
    ext3, xfs = figures(None), figures("xfs")
    assert ext3["load1_peak"] > 4 and ext3["mail.queued"] > 0 and ext3["mail.queue_max"] > 10
    assert xfs["load1_peak"] < 2 and xfs["mail.queued"] == 0 and xfs["mail.queue_end"] <= 2


def test_on_xfs_delivery_is_many_times_as_fast_and_the_cpus_hardly_wait() -> None:
    ext3, xfs = figures(None), figures("xfs")
    assert ext3["mail.delivery_s"] / xfs["mail.delivery_s"] > 8
    assert xfs["cpu.iowait_pct_median"] < 10 < 40 < ext3["cpu.iowait_pct_median"]
    assert xfs["mail.accepted"] == ext3["mail.accepted"]


def test_delivery_on_ext3_waits_behind_the_journal_for_other_peoples_pages() -> None:
    found = explain(load("exim-io", sets=SHORT), ("deliver", "receive"))
    for kind in found.kinds:
        assert kind.journal_share > 0.75
        longest = kind.parts[0].path
        assert "log_wait_commit" in longest and "kjournald" in longest and "sync_page" in longest


def test_sar_prints_the_columns_that_were_recorded() -> None:
    """The recorded lines have their blanks squeezed."""
    scenario = load("exim-io", sets=('process.day.duration="30 s"',))
    result = simulate(scenario, 1)
    samples: list[Snapshot] = list(result.samples[60:80])
    texts = run_tool(
        ["sar", "1"],
        samples,
        hostname="io",
        release="2.6.18",
        layout="sysstat-7",
        boot_wallclock=datetime(2007, 10, 1, 13, 4, tzinfo=UTC),
    )
    lines = [" ".join(line.split()) for text in texts for line in text.splitlines()]
    header = next(line for line in lines if "%iowait" in line)
    assert header.split(" ", 2)[2] == "CPU %user %nice %system %iowait %steal %idle"
    rows = [line.split() for line in lines if " all " in line and not line.startswith("Average")]
    assert len(rows) == 19
    assert all(sum(map(float, row[3:])) == pytest.approx(100, abs=0.05) for row in rows)
