"""The pages "add a ...": carried out in a copy of the project, files and commands."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.declared import TOP
from docs.pages import Page, Shown, ShownFile

PAGES = sorted((TOP / "docs" / "how-to").glob("add-*.md"))
COPIED = ("benchmarks", "calibration", "docs", "labs", "notebooks", "scenarios", "sim", "tests")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.so", "work")
PYTHON, IOTWIN = ".venv/bin/python", "iotwin"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the project."""
    for name in COPIED:
        shutil.copytree(TOP / name, tmp_path / name, ignore=LEFT_OUT)
    for path in TOP.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    return tmp_path


def run(command: str, project: Path) -> None:
    """Run a command of a page in the copy; fail if it failed, or if it tried no test."""
    program, *words = shlex.split(command)
    assert program in (PYTHON, IOTWIN), f"a page's command begins with {PYTHON} or {IOTWIN}"
    words = words if program == PYTHON else ["-m", "sim", *words]
    # The sources of the copy, and what it would not share with a run of the tests beside it.
    environment = {**os.environ, "PYTHONPATH": str(project), "IOTWIN_STORE": "none"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        [sys.executable, *words],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"  # pytest: 5 where no test was chosen


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_enough_to_add_what_it_is_about(path: Path, project: Path) -> None:
    page = Page(path.relative_to(TOP).as_posix(), path.read_text(encoding="utf-8"))
    files, commands = 0, 0
    for one in page.commands_and_files():
        if isinstance(one, ShownFile):
            place = project / one.name
            place.parent.mkdir(exist_ok=True)
            with place.open("a", encoding="utf-8") as file:  # a file that is there goes on
                file.write(one.content)
            files += 1
        elif isinstance(one, Shown):
            run(one.command, project)
            commands += 1
    assert files and commands
