"""The pages "add a ...": carried out in a copy of the project, files and commands."""

import shutil
from pathlib import Path

import pytest

from docs.commands import Shell
from docs.declared import TOP
from docs.pages import GUIDES, Page, Shown, ShownFile

PAGES = sorted(TOP.glob(f"{GUIDES}*.md"))
COPIED = ("benchmarks", "calibration", "docs", "labs", "notebooks", "scenarios", "sim", "tests")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.so", "work")
PROGRAMS = (".venv/bin/python ", "iotwin ")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the project."""
    for name in COPIED:
        shutil.copytree(TOP / name, tmp_path / name, ignore=LEFT_OUT)
    for path in TOP.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_enough_to_add_what_it_is_about(path: Path, project: Path) -> None:
    page = Page(path.relative_to(TOP).as_posix(), path.read_text(encoding="utf-8"))
    shell = Shell(project, project)
    files, commands = 0, 0
    for one in page.commands_and_files():
        if isinstance(one, ShownFile):
            place = project / one.name
            place.parent.mkdir(exist_ok=True)
            with place.open("a", encoding="utf-8") as file:  # a file that is there goes on
                file.write(one.content)
            files += 1
        elif isinstance(one, Shown):
            assert one.command.startswith(PROGRAMS), f"begin with one of {PROGRAMS}"
            done = shell.run(one.command)  # pytest ends with 5 where no test was chosen
            assert done.status == 0, f"{one.command}\n{done.stdout}{done.stderr}"
            commands += 1
    assert files and commands
