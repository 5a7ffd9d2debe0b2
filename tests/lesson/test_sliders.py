"""explore(): the table where there are no sliders, and the same figures under a slider."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from sim.lesson import explore, table
from sim.lesson.rows import Rows
from tests.cli.small import small_file

PATH = "process.blast.messages"
OF = ["messages_accepted", "duration_s"]


@pytest.fixture
def small(tmp_path: Path) -> str:
    return small_file(tmp_path)


class Slider:
    """What is used of ipywidgets.SelectionSlider."""

    def __init__(self, options: list[str], description: str) -> None:
        self.options = options
        self.description = description


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be inside a notebook that has ipywidgets."""
    ipython, widgets = ModuleType("IPython"), ModuleType("ipywidgets")
    widgets.__spec__ = SimpleNamespace(name="ipywidgets")  # type: ignore[assignment]

    def interactive(show: Callable[[str], None], value: Slider) -> tuple[Slider, object]:
        return value, show

    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(kernel=object()), False)
    monkeypatch.setattr(widgets, "SelectionSlider", Slider, False)
    monkeypatch.setattr(widgets, "interactive", interactive, False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)


def test_without_sliders_it_is_the_table(small: str) -> None:
    found = explore(small, PATH, [20, 30], of=OF)
    assert isinstance(found, Rows)
    assert str(found) == str(table(small, PATH, [20, 30], of=OF))


@pytest.mark.usefixtures("notebook")
def test_a_slider_stands_on_the_values_and_shows_their_figures(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    slider, show = explore(small, PATH, [20, 30], of=OF)
    assert (slider.options, slider.description) == (["20", "30"], PATH)
    show("30")
    first, second = capsys.readouterr().out.splitlines()
    assert first == "messages_accepted  30 messages"
    assert second.startswith("duration_s  ")


def test_no_value_is_refused(small: str) -> None:
    with pytest.raises(ValueError, match="got none"):
        explore(small, PATH, [], of=OF)
