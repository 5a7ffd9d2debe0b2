"""docs/reference/scenario-files.md: what it shows can be loaded."""

import re
from pathlib import Path

import pytest

from sim.scenario import load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenario-files.md"
SMALLEST, *EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", ["", *EXAMPLES], ids=lambda text: text.partition("\n")[0])
def test_an_example_can_be_added_to_the_smallest_scenario(example: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{SMALLEST}\n{example}", encoding="utf-8")
    added = load(str(path))
    for what_if in added.what_ifs:
        assert load(str(path), what_if=what_if.name).what_if == what_if
    for option in added.options:
        assert load(str(path), what_if=option.name).what_if == option.what_if
    assert added.title == "A log on a disk"
