"""Plots: every variant and panel is drawn, on common scales, with what was recorded."""

import struct
from pathlib import Path

from sim.report import plot
from sim.report.time_lines import PANELS
from tests.report.studies import study


def size_of(path: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_what_ifs_are_drawn_under_the_base(tmp_path: Path) -> None:
    plot.plot_study(study(1), tmp_path / "one.png")
    plot.plot_study(study(1, "tmpfs"), tmp_path / "two.png")
    plot.plot_study(study(1, "tmpfs", "tmpfs"), tmp_path / "three.png")
    one, two, three = (size_of(tmp_path / f"{name}.png") for name in ("one", "two", "three"))
    assert three[1] > two[1]
    assert three[0] == two[0] > one[0]


def test_variants_share_the_scales_of_a_panel() -> None:
    found = study(1, "tmpfs")
    figure, grid = plot._grid(2, len(PANELS))
    for outcome, row in zip(found.variants, grid, strict=True):
        plot._draw_row(outcome, PANELS, row)
    plot._share_axes(grid)
    for base, variant in zip(*grid, strict=True):
        assert base.get_ylim() == variant.get_ylim()
        assert base.get_xlim() == variant.get_xlim()
    assert figure.axes


def test_recorded_figures_are_marked() -> None:
    found = study(1)
    _figure, [row] = plot._grid(1, len(PANELS))
    plot._draw_row(found.variants[0], PANELS, row)
    texts = [text.get_text() for axes in row for text in axes.texts]
    assert "recorded peak 37" in texts
    assert "recorded lowest idle, %: 69" in texts
    assert "recorded mean 11" in texts
