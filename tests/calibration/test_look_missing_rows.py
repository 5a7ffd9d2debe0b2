"""A row that is not there: idle under iostat -z, otherwise nothing is known of it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.dataset import Source
from calibration.look import look
from calibration.look.intervals import intervals_of
from calibration.look.summary import Look
from calibration.readers import read_text
from sim.scenario.cases import data_sets

SENDMAIL = (data_sets()["sendmail"] / "iostat.txt").read_text(encoding="utf-8")
WHOLE_PCT = (98.96 + 90.16 + 48.32) / 3  # sdb's util in its three reports

HEAD = "Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n"  # noqa: E501


def row(name: str, util: float) -> str:
    rate = util * 2
    return (
        f"{name:<13} 0.00 0.00 {rate:.2f} 0.00 {8 * rate:.2f} 0.00 8.00 {util / 100:.2f}"
        f" 5.00 5.00 {util:.2f}\n"
    )


def looked(text: str) -> Look:
    return look(Source(name="x", recordings=(read_text(text, "x"),)))


def util_pct(seen: Look, name: str) -> float | None:
    [device] = [one for one in seen.devices if one.name == name]
    return device.util_pct


def test_the_whole_recording_is_the_measure() -> None:
    assert util_pct(looked(SENDMAIL), "sdb") == pytest.approx(WHOLE_PCT)


@pytest.mark.parametrize("cut_before", ["Device:", "sdb", "dm-6"])
def test_a_last_report_that_was_cut_takes_nothing_from_the_means(cut_before: str) -> None:
    text = SENDMAIL[: SENDMAIL.rindex(cut_before)]
    seen = looked(text)
    kept = 2 if cut_before in ("Device:", "sdb") else 3
    assert util_pct(seen, "sdb") == pytest.approx(WHOLE_PCT if kept == 3 else (98.96 + 90.16) / 2)
    assert any(f.check == "rows" and f.where == "dm-6" for f in seen.findings)


def test_a_row_that_was_refused_takes_nothing_from_the_means_either() -> None:
    lines = SENDMAIL.splitlines(keepends=True)
    [first, *_] = [i for i, line in enumerate(lines) if line.startswith("sdb")]
    lines[first] = lines[first].replace("98.96", "nan")
    seen = looked("".join(lines))
    assert util_pct(seen, "sdb") == pytest.approx((90.16 + 48.32) / 2)
    assert any("1 of 3 reports have no row of it" in f.text for f in seen.findings)


@given(st.lists(st.booleans(), min_size=3, max_size=8), st.floats(1, 99))
def test_under_z_a_device_without_a_row_was_idle(shown: list[bool], util: float) -> None:
    reports = [HEAD + row("sda", 50) + (row("sdb", util) if on else "") + "\n" for on in shown]
    seen = looked("".join(reports))
    busy = [f"{util:.2f}" for on in shown if on]
    if busy:
        mean = float(busy[0]) * len(busy) / len(shown)
        assert util_pct(seen, "sdb") == pytest.approx(mean)
        assert not any(f.check == "rows" for f in seen.findings)


def test_without_z_a_device_that_came_late_was_not_idle_before() -> None:
    reports = [HEAD + row("sda", 50) + row("sdc", 0) + "\n"] * 2
    reports += [HEAD + row("sda", 50) + row("sdb", 80) + row("sdc", 0) + "\n"] * 2
    assert util_pct(looked("".join(reports)), "sdb") == pytest.approx(80)


@given(st.integers(0, len(SENDMAIL)))
def test_wherever_a_text_is_cut_the_devices_shown_are_as_busy_as_their_whole_rows(at: int) -> None:
    recording = read_text(SENDMAIL[:at] or "x", "x") if SENDMAIL[:at].count("sdb") else None
    if recording is None:
        return
    whole = {98.96, 90.16, 48.32}
    for one in intervals_of([recording]):
        if "util_pct" in one.devices.get("sdb", {}):
            assert one.devices["sdb"]["util_pct"] in whole


def test_recorded_folders_have_all_their_rows() -> None:
    for name in ("sendmail", "factomd"):
        text = Path(data_sets()[name] / "iostat.txt").read_text(encoding="utf-8")
        assert not any(f.check == "rows" for f in looked(text).findings)
