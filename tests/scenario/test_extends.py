"""A file that extends another scenario: what it inherits, what it says anew, and its mistakes."""

import pytest

from sim.origin import Origin
from sim.scenario import ScenarioError, load

BASE = """
title = "The base"
seed = 5
[machine]
kernel = "5.10"
memory = "1 GiB"
disk.sda.profile = "sata-7200"
mount."/" = { type = "ext3", device = "sda", data = "ordered" }
[process.dd]
program = "dd"
if = "/dev/zero"
of = "/file"
blocks = 1
[run]
duration = "1 s"
[what_if.two]
machine.cpus = 2
"""


@pytest.fixture
def files(tmp_path):
    """Return a function that writes NAME.toml and returns its path as a text."""
    (tmp_path / "base.toml").write_text(BASE, encoding="utf-8")

    def write(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


def test_what_it_does_not_say_is_that_of_the_base(files):
    path = files("own.toml", 'extends = "./base.toml"\nmachine.cpus = 3\n')
    scenario = load(path)
    assert (scenario.name, scenario.title, scenario.seed) == ("own", "The base", 5)
    assert scenario.server.cpus == 3
    assert scenario.processes.keys() == {"dd"}
    assert load(path, what_if="two").server.cpus == 2


def test_a_value_that_suits_only_the_base_goes_with_what_it_suited(files):
    text = 'extends = "base.toml"\nmachine.mount."/" = { type = "xfs" }\n'
    assert load(files("own.toml", text)).server.all("mount")["/"].type == "xfs"


def test_its_own_what_ifs_stand_beside_those_that_it_inherits(files):
    own = 'extends = "base.toml"\n[what_if.four]\nmachine.cpus = 4\n[what_if.two]\nseed = 1\n'
    path = files("own.toml", own.replace("seed = 1", "machine.cpus = 22"))
    assert [one.name for one in load(path).what_ifs] == ["four", "two"]
    assert load(path, what_if="two").server.cpus == 22


def test_an_extension_of_an_extension_inherits_both(files):
    files("one.toml", 'extends = "base.toml"\nmachine.cpus = 3\n')
    path = files("two.toml", 'extends = "one.toml"\nmachine.memory = "2 GiB"\n')
    assert (load(path).server.cpus, load(path).server.memory_bytes) == (3, 2 << 30)


def test_its_values_are_its_own_and_the_rest_the_base_file_s(files):
    path = files("own.toml", 'extends = "base.toml"\nmachine.cpus = 3\n')
    sources = {one.path: one.source for one in load(path).parameters}
    assert "own.toml" in sources["machine.cpus"]
    assert "base.toml" in sources["machine.memory"]


def test_a_profile_of_the_base_lies_beside_the_base(files, tmp_path):
    folder = tmp_path / "deeper"
    folder.mkdir()
    files("drive.toml", 'device = "hdd"\ncapacity = "33 GB"\n')
    files("base.toml", BASE.replace('"sata-7200"', '"drive.toml"'))
    path = files("deeper/own.toml", 'extends = "../base.toml"\n')
    assert load(path).server.all("disk")["sda"].params.capacity_bytes == 33e9


def test_what_was_recorded_stays_with_an_extension_that_changes_nothing(files):
    told = load(files("own.toml", 'extends = "sendmail"\ntitle = "Mine"\n'))
    assert told.recorded == load("sendmail").recorded != {}
    changed = load(files("own.toml", 'extends = "sendmail"\nmachine.cpus = 8\n'))
    assert not changed.recorded
    assert changed.calibrate is None
    assert all(one.origin != Origin.FIT for one in changed.parameters if "cpus" in one.path)


@pytest.mark.parametrize(
    "text, problem",
    [
        ('extends = "own.toml"\n', "1:11: error: extends: 'own.toml' is, or extends, this file"),
        ('extends = "round.toml"\n', "round.toml:1:11: error: extends: 'own.toml' is, or extends"),
        ('extends = "sendmial"\n', "did you mean 'sendmail'?"),
        ('extends = "none.toml"\n', "1:11: error: extends: no scenario file"),
        ("extends = 3\n", "'extends' must be a text"),
        ('extends = "base.toml"\nmachine.cpsu = 3\n', "2:9: error: unknown key 'cpsu'"),
        ('extends = "base.toml"\n[what_if.a]\nextends = "b"\n', "a what-if has no 'extends'"),
    ],
)
def test_a_mistake_is_told_with_its_place(files, text, problem):
    files("round.toml", 'extends = "own.toml"\n')
    with pytest.raises(ScenarioError) as caught:
        load(files("own.toml", text))
    assert problem in str(caught.value)
