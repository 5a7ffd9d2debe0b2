"""The lists in setup.cfg are complete: a new part is compiled and has its place in the layers."""

import configparser
from fnmatch import fnmatch
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
KERNEL = ("engine", "sched", "block", "drivers", "mm", "fs", "net")
# Kernel folders' files that stay interpreted, each with its reason.
INTERPRETED = {
    "sim/fs/proc/*.py": "text for people, rendered a few times a simulated second",
    "sim/drivers/profiles/*.py": "data",
}
# Parts of sim that no layer names.
OUTSIDE = {"tools", "__init__", "__main__"}


@pytest.fixture(scope="module")
def settings() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(TOP / "setup.cfg", encoding="utf-8")
    return config


def test_every_file_of_the_kernel_is_compiled_or_said_not_to_be(
    settings: configparser.ConfigParser,
) -> None:
    section = settings["iotwin:compile"]
    included = {path for pattern in section["include"].split() for path in TOP.glob(pattern)}
    forgotten = [
        path.relative_to(TOP).as_posix()
        for folder in KERNEL
        for path in (TOP / "sim" / folder).rglob("*.py")
        if path.name != "__init__.py" and path not in included
    ]
    assert [name for name in forgotten if not any(fnmatch(name, p) for p in INTERPRETED)] == []


def test_what_is_compiled_for_speed_is_there_and_compiled(
    settings: configparser.ConfigParser,
) -> None:
    section = settings["iotwin:compile"]
    included = {
        path.relative_to(TOP).as_posix()
        for pattern in section["include"].split()
        for path in TOP.glob(pattern)
    }
    patterns = section["optimise"].split()
    assert [p for p in patterns if not any(fnmatch(path, p) for path in included)] == []


def test_every_part_of_the_twin_has_its_layer(settings: configparser.ConfigParser) -> None:
    layers = settings["importlinter:contract:layers"]["layers"]
    named = set(layers.replace("|", " ").replace(":", " ").split())
    parts = {path.stem for path in (TOP / "sim").glob("*.py")} | {
        path.name for path in (TOP / "sim").iterdir() if (path / "__init__.py").exists()
    }
    assert {f"sim.{part}" for part in parts - OUTSIDE} - named == set()
