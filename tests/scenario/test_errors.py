# ruff: noqa: E501  (one mistake a line reads better than broken lines)
"""A wrong scenario is told what is wrong: all of it, each where it stands."""

import pickle
import re
from pathlib import Path

import pytest

from sim.scenario import ScenarioError, load_text
from tests.scenario.things import EXAMPLE
from tests.user.mail import process
from tests.user.servers import scenario

FILE = Path("x.toml")


def complaints(text: str, *sets: str) -> str:
    """Return all messages about a text."""
    with pytest.raises(ScenarioError) as caught:
        load_text(text, FILE, sets=sets)
    return str(caught.value)


WRONG = [
    (
        "cpus = 4",
        "cpuss = 4",
        r"x.toml:6:1: error: unknown key 'cpuss' in \[machine\] - did you mean 'cpus'\?",
    ),
    (
        "cpus = 4",
        "cpus = 0",
        r"x.toml:6:8: error: machine.cpus: must be at least 1, got 0 \(accepted: 1 to 4096\)",
    ),
    (
        '"8 GiB"',
        '"-8 GiB"',
        r'x.toml:7:10: error: machine.memory: must be at least 16 MiB, got "-8 GiB"',
    ),
    (
        '"8 GiB"',
        '"8 ms"',
        r"machine.memory: expected a size, but 'ms' is a unit of a time, got \"8 ms\"",
    ),
    ('kernel = "2.6.16"\n', "", r"x.toml:4:2: error: \[machine\] lacks 'kernel' \(Linux version"),
    (
        'kernel = "2.6.16"',
        'kernel = "latest"',
        r"x.toml:5:10: error: machine.kernel: not a kernel release",
    ),
    (
        'kernel = "2.6.16"',
        'kernel = "2.4.20"',
        r'not a kernel release that is modelled, got "2.4.20" \(accepted: 2.6.0 to 7.2, such as "2.6.16"\)',
    ),
    (
        'kernel = "2.6.16"',
        'kernel = "9.9"',
        r'x.toml:5:10: error: machine.kernel: not a kernel release that is modelled, got "9.9" \(accepted: 2.6.0 to 7.2',
    ),
    (
        'scheduler = "test_lift"',
        'scheduler = "mq-deadline"',
        r"x.toml:8:.*: error: Linux 2.6.16 has no elevator 'mq-deadline' \(from 4.11\) - did you mean 'deadline'\? \(accepted: anticipatory, cfq, deadline, noop, test_lift; --set machine\.disk\.sd[ab]\.scheduler=anticipatory is what this release takes itself\)",
    ),
    (
        'device = "dm-6"',
        'device = "dm-7"',
        r"x.toml:13:29: error: unknown device 'dm-7' - did you mean 'dm-6'\?",
    ),
    ('on = "sdb"', 'on = "dm-6"', r"x.toml:11:22: error: volume 'dm-6' lies on itself"),
    ('"40 GiB"', '"400 GiB"', r"'dm-6' ends .* behind the end of what it lies on"),
    ('"20 GiB"', '"2 TB"', r"'sda1' ends .* behind the end"),
    ('device = "sda1"', 'device = "dm-6"', r"dm-6 is mounted on / already"),
    ('mount."/" =', 'mount."/usr" =', r'nothing is mounted on "/"'),
    (
        'type = "test_ordered", data',
        'type = "test_orderd", data',
        r"unknown filesystem 'test_orderd' - did you mean 'test_ordered'\?",
    ),
    (
        'data = "journal"',
        'data = "jornal"',
        r'not one of the choices, got "jornal" \(accepted: "ordered", "journal"\)',
    ),
    (
        'scheduler = "test_lift"',
        'scheduler = "test_lif"',
        r"unknown elevator 'test_lif' - did you mean 'test_lift'",
    ),
    (
        "quantum = 8",
        "quantun = 8",
        r"unknown key 'quantun' in \[machine.disk.sdb.iosched\] - did you mean 'quantum'",
    ),
    ('"test_writer"', '"test_writr"', r"unknown program 'test_writr' - did you mean 'test_writer'"),
    ('via = "lan"', 'via = "wan"', r"unknown link 'wan' - did you mean 'lan'"),
    (
        'via = "lan"\n',
        "",
        r"'test_client' runs outside the server: it needs a link 'via' \(accepted: lan\)",
    ),
    ('target = "writer"', 'target = "wroter"', r"unknown process 'wroter' - did you mean 'writer'"),
    (
        'devices = ["sdb", "dm-6"]',
        'devices = ["sdc"]',
        r"x.toml:32:11: error: unknown device 'sdc'",
    ),
    (
        'families = ["load"',
        'families = ["laod"',
        r"unknown family of figures 'laod' - did you mean 'load'",
    ),
    ("seed = 7", "seed = -7", r"x.toml:2:8: error: seed must be a whole number"),
    ("seed = 7", "sed = 7", r"x.toml:2:1: error: unknown key 'sed' - did you mean 'seed'"),
    (
        'device = "test_chip"',
        'device = "test_chop"',
        r"x.toml:40:27: error: unknown device 'test_chop'",
    ),
    (
        "channels = 8",
        "chanels = 8",
        r"unknown key 'chanels' in \[machine.disk.sdb\] - did you mean 'channels'",
    ),
    (
        'type = "test_air"',
        'type = "test_air"\nmachine.mount."/spool".device = "sdb"',
        "test_air has no device",
    ),
    (
        "[link.lan]",
        "[[link.lan]]",
        r"'lan' is a list of tables: give each a name, \[link.lan.NAME\]",
    ),
    ('[link.lan]\nlatency = "0.1 ms"', 'link = "lan"', r"unknown key 'link' in \[machine\]"),
    ("cpus = 4", "cpus = { count = 4 }", r"machine.cpus: expected a value, not a table"),
    ("[run]", "[run.x]", r"\[run\] lacks 'duration'|unknown key 'x' in \[run\]"),
    ("cpus = 4", "cpus = ", r"x.toml:6:8: error: not valid TOML: invalid value"),
    ('title = "Two disks"', 'title = "Two disks', r"x.toml:1:19: error: not valid TOML"),
    (
        '{ value = "200 KiB", source = "assumed: a picture" }',
        '{ source = "x" }',
        "has a source but no value",
    ),
    (
        "cpus = 4",
        "cpus = { value = 4 }",
        r"x.toml:6:1: error: 'cpus' has no source: give one, or the value alone",
    ),
    (
        "cpus = 4",
        'cpus = { valu = 4, source = "x" }',
        r"x.toml:6:10: error: unknown key 'valu' in machine.cpus - did you mean 'value'\?",
    ),
    (
        "cpus = 4",
        'cpus = { value = 4, sorce = "x" }',
        r"unknown key 'sorce' in machine.cpus - did you mean 'source'\?",
    ),
    (
        "cpus = 4",
        "cpus = 4\ncpus = 5",
        r"x.toml:7:1: error: not valid TOML: cpus is there already, above",
    ),
    (
        "[link.lan]",
        "[machine]\n[link.lan]",
        r"x.toml:\d+:1: error: not valid TOML: \[machine\] is there already, above",
    ),
    (
        'kernel = "2.6.16"',
        "kernel = 2.6",
        r"x.toml:5:10: error: machine.kernel: expected a text, in quotes, got 2.6",
    ),
    (
        'kernel = "2.6.16"',
        'kernel = "2.6"',
        r"x.toml:5:10: error: machine.kernel: not a kernel release",
    ),
    (
        'title = "Two disks"',
        'title = "Two\\u001b[31mdisks"',
        r"x.toml:1:9: error: 'title' must be a line of text, got 'Two\\x1b\[31mdisks'",
    ),
    ('hostname = "twins"', 'hostname = "a\\nb"', r"machine.hostname: expected a line of text"),
]


@pytest.mark.parametrize(("good", "bad", "message"), WRONG)
def test_a_mistake_is_placed_and_explained(good: str, bad: str, message: str) -> None:
    assert good in EXAMPLE
    assert re.search(message, complaints(EXAMPLE.replace(good, bad, 1)))


def test_all_mistakes_are_reported_together_with_their_lines_underlined() -> None:
    text = EXAMPLE.replace("cpus = 4", "cpus = 0").replace('"dm-6", type', '"dm-9", type')
    text = text.replace('"10 min"', "600").replace("channels = 8", "chanels = 8")
    assert complaints(text) == GOLDEN


@pytest.mark.parametrize("name", ["sd b", "", "sd\\tb", "sdb:"])
@pytest.mark.parametrize("kind", ["disk", "array", "volume", "loop", "disk.sdx.partition"])
def test_a_device_is_named_with_one_word_as_in_proc_diskstats(kind: str, name: str) -> None:
    table = f'[machine.{kind}."{name}"]\ndevice = "ram"\n'
    assert "error: a device is named with letters, digits and" in complaints(f"{EXAMPLE}\n{table}")


GOLDEN = """\
x.toml:6:8: error: machine.cpus: must be at least 1, got 0 (accepted: 1 to 4096)
    6 | cpus = 0
      |        ^
x.toml:13:29: error: unknown device 'dm-9' - did you mean 'dm-6'? (accepted: sda, sda1, sdb, dm-6)
   13 | mount."/spool" = { device = "dm-9", type = "test_ordered", data = "journal" }
      |                             ^^^^^^
x.toml:28:12: error: run.duration: a time needs a unit, got 600 (accepted: "5.4 ms", "5 s", "10 min")
   28 | duration = 600
      |            ^^^
x.toml:41:18: error: unknown key 'chanels' in [machine.disk.sdb] - did you mean 'channels'? \
(accepted: channels, device, front, frontend, iosched, partition, profile, queue, scheduler, throttle)
   41 | machine.disk.sdb.chanels = 8
      |                  ^^^^^^^"""


RELAY = process("relay", "smtp_relay", via="lan")


def host_complaint(*processes: str) -> str:
    """Return what is said about a small server that runs these."""
    with pytest.raises(ScenarioError) as caught:
        scenario("\n".join(processes), uses=["sendmail/program.py"])
    assert len(caught.value.problems) == 1
    return str(caught.value)


def test_a_host_that_is_not_there_is_told_with_its_line_and_the_nearest() -> None:
    said = host_complaint(process("mail", "sendmail", relay_host="realy"), RELAY)
    assert said == (
        "small.toml:20:14: error: unknown host outside the server 'realy' - did you mean 'relay'? (accepted: relay)\n"
        '   20 | relay_host = "realy"\n'
        "      |              ^^^^^^^"
    )


def test_a_default_host_that_is_not_there_is_told_at_its_process() -> None:
    said = host_complaint(process("mail", "sendmail"), process("relai", "smtp_relay", via="lan"))
    assert (
        "small.toml:18:10: error: unknown host outside the server 'relay', the default of 'relay_host' in [process.mail] - did you mean 'relai'?"
        in said
    )


@pytest.mark.parametrize(
    ("elevator", "message"),
    [
        (
            "cfq",
            "Linux 6.18 has no elevator 'cfq' (from 2.6.6 to 4.20) - did you mean 'bfq'? (accepted: bfq, kyber, mq-deadline, none",
        ),
        (
            "deadline",
            "Linux 6.18 has no elevator 'deadline' (to 4.20) - did you mean 'mq-deadline'?",
        ),
    ],
)
def test_an_elevator_that_the_release_lacks_is_told_with_those_it_has(
    elevator: str, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(sets=["machine.kernel=6.18", f"machine.disk.sda.scheduler={elevator}"])
    assert message in str(caught.value)


def test_a_process_on_the_server_is_no_host_outside() -> None:
    said = host_complaint(process("mail", "sendmail", relay_host="log"), process("log", "syslogd"))
    assert "unknown host outside the server 'log' (accepted: none)" in said


def test_each_of_several_hosts_has_its_number() -> None:
    many = process("relay", "smtp_relay", via="lan", count=2)
    said = host_complaint(process("mail", "sendmail"), many)
    assert "did you mean 'relay.1'? (accepted: relay.0, relay.1)" in said
    relayed = process("mail", "sendmail", relay_host="relay.1")
    scenario(f"{relayed}\n{many}", uses=["sendmail/program.py"])


def test_a_host_whose_own_lines_are_wrong_is_not_called_missing() -> None:
    wrong = process("relay", "smtp_relay", via="lan", accept="long")
    assert "accept" in host_complaint(process("mail", "sendmail"), wrong)


def test_a_wrong_set_names_the_option() -> None:
    assert complaints(EXAMPLE, "machine.cpus=0") == (
        "--set machine.cpus=0: error: machine.cpus: must be at least 1, got 0 (accepted: 1 to 4096)\n"
        "      | machine.cpus=0\n"
        "      |              ^"
    )


def test_a_set_without_a_value_says_so() -> None:
    assert "error: no value (accepted: PATH=VALUE" in complaints(EXAMPLE, "machine.cpus=")


def test_a_set_of_two_lines_sets_no_second_value() -> None:
    assert "machine.cpus: expected a whole number" in complaints(
        EXAMPLE, "machine.cpus=4\nmachine.memory = 1"
    )


def test_a_set_below_what_if_is_refused_with_the_path_to_give() -> None:
    said = complaints(EXAMPLE, "what_if.slow.machine.cpus=3")
    assert "give the path itself (accepted: machine.cpus)" in said


def test_what_is_nested_too_deep_is_refused() -> None:
    text = "a = " + "[" * 3000 + "]" * 3000
    assert "x.toml:1:1: error: tables or lists within each other, too deep" in complaints(text)


def test_of_a_very_long_line_the_part_around_the_mistake_is_shown() -> None:
    said = complaints(EXAMPLE.replace("cpus = 4", f"# {'x' * 5000}\n{' ' * 3000}cpus = 0"))
    assert "cpus = 0\n" in said
    assert max(map(len, said.splitlines())) < 250
    assert max(map(len, complaints("x" * 100_000 + " = 3\n").splitlines()[:1])) < 700


@pytest.mark.parametrize("text", ["machine.cpus", "=4", "a..b=1", "a b=1", 'x"=1'])
def test_a_set_that_is_no_assignment_says_what_one_is(text: str) -> None:
    assert "not an assignment (accepted: PATH=VALUE" in complaints(EXAMPLE, text)


def test_two_wrong_sets_are_both_named() -> None:
    message = complaints(EXAMPLE, "machine.cpus=0", "machine.memory=1 s")
    assert message.count("error:") == 2


def test_a_mistake_in_a_what_if_shows_before_it_is_asked_for() -> None:
    assert "x.toml:37" in complaints(EXAMPLE.replace('"test_air"', '"test_aire"'))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            'before = "sendmai"',
            "x.toml:44:10: error: unknown data set 'sendmai' - did you mean 'sendmail'? (accepted: amavisd, cacti, ",
        ),
        (
            'befor = "sendmail"',
            "x.toml:44:1: error: unknown set of figures 'befor' in sendmail/recording/dataset.toml - did you mean 'before'? (accepted: after, before)",
        ),
    ],
)
def test_a_misspelt_recording_is_placed_and_explained(line: str, message: str) -> None:
    assert complaints(f"{EXAMPLE}\n[recorded]\n{line}\n").startswith(message)


TOO_LONG = EXAMPLE.replace('"40 GiB"', '"400 GiB"')
FITS = """\
x.toml:11:54: error: 'dm-6' ends 357.57 GB behind the end of what it lies on (accepted: up to 71.92 GB)
   11 | volume.dm-6 = { on = "sdb", offset = "1 GiB", size = "400 GiB" }
      |                                                      ^^^^^^^^^"""


def test_a_volume_that_is_too_long_is_told_once_with_the_largest_size() -> None:
    assert complaints(TOO_LONG) == FITS
    assert load_text(TOO_LONG.replace('"400 GiB"', '"71.92 GB"'), FILE)


def test_a_volume_too_long_only_under_what_ifs_names_each() -> None:
    less = '\n[what_if.{}]\nmachine.disk.sdb.capacity = "{}"\n'
    found = complaints(EXAMPLE + less.format("small", "20 GB") + less.format("tiny", "1 GB"))
    assert found.count("error:") == 2
    assert "x.toml:11:54: error: in what-if 'small': 'dm-6' ends 24.02 GB behind" in found
    assert (
        "in what-if 'tiny': 'dm-6' ends 43.02 GB behind the end of what it lies on (accepted: none that"
        in found
    )


def test_the_errors_survive_a_trip_through_a_worker_process() -> None:
    error = ScenarioError([])
    with pytest.raises(ScenarioError) as caught:
        load_text(EXAMPLE.replace("cpus = 4", "cpus = 0"), FILE)
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)


ODD_VALUES = ["5", "-1", '"x"', "true", "[1]", "[]", "{}", "{ a = 1 }", "1.5", '""', "[[1]]", "nan"]
LINES = [number for number, line in enumerate(EXAMPLE.splitlines()) if " = " in line]


@pytest.mark.parametrize("number", LINES)
def test_any_odd_value_is_read_or_explained(number: int) -> None:
    lines = EXAMPLE.splitlines()
    key = lines[number].partition(" = ")[0]
    for value in ODD_VALUES:
        text = "\n".join([*lines[:number], f"{key} = {value}", *lines[number + 1 :], ""])
        try:
            load_text(text, FILE)
        except ScenarioError as error:
            assert error.problems


@pytest.mark.parametrize("number", range(len(EXAMPLE.splitlines())))
def test_a_missing_line_is_accepted_or_explained(number: int) -> None:
    lines = EXAMPLE.splitlines()
    try:
        load_text("\n".join(lines[:number] + lines[number + 1 :]), FILE)
    except ScenarioError as error:
        assert error.problems


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"[{'.'.join(['a'] * 20_000)}]\nx = 1\n", "line 1: a key of more than 32 parts"),
        (f"x = {{{'a.' * 20_000}b = 1}}\n", "line 1: a key of more than 32 parts"),
        (f"x = 1\n{'a . ' * 20_000}b = 1\n", "line 2: a key of more than 32 parts"),
        ("#" + "a" * 1_048_576, "1,048,577 characters (at most 1,048,576 are read)"),
        (f"x = {'9' * 5000}\n", "not valid TOML: Exceeds the limit (4300 digits)"),
    ],
)
def test_a_text_that_would_take_long_is_refused_at_once(text: str, told: str) -> None:
    assert f"x.toml:1:1: error: {told}" in complaints(text)


def test_dots_in_texts_and_comments_are_no_deep_key() -> None:
    text = f'doc = "{"." * 100} a.b {"a. b" * 100}"  # {".".join(["a"] * 100)}\n'
    assert "parts" not in complaints(text)
