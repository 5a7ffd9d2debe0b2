"""Every command, with the packages of a plain install alone: it works or names an extra."""

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

import sim
from sim.cli import extras
from sim.cli.main import COMMANDS
from tests.cli.small import SMALL

TOP = Path(__file__).resolve().parents[2]
HOME = str(Path(sim.__file__).resolve().parents[1])  # of the twin that this tier tries
# Runs the command line where an import of what the extras have fails.
WITHOUT = """
import sys
from sim.cli.extras import EXTRA_OF

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRA_OF:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from sim.cli.main import main
main()
"""
JOB = "[reads]\nrw=randread\nsize=1m\nfilename=/reads\n"
LOAD = "--load process.blast.concurrency=1..4"
GROWS = "--load process.blast.concurrency --growth 5%/month --months 3"
OVER = "--over process.blast.concurrency=1..4"
OPTION = '\n[option.memory]\nprice = 100\nmachine.memory = "2 GiB"\n'
# words, and the extra that they need
CASES = [
    ("list", None),
    ("mine here", "fit"),
    ("follow here --for 1s", "fit"),
    ("new blank", None),
    ("words", None),
    ("run small.toml", None),
    ("run small.toml --plot run.png", "plot"),
    ("compare small.toml slow --replications 1", None),
    ("compare small.toml slow --plot compare.png", "plot"),
    ("sweep small.toml --over process.blast.concurrency=1,2 --replications 1", None),
    ("sweep small.toml --over process.blast.concurrency=1,2 --plot sweep.png", "plot"),
    ("sweep small.toml --over process.blast.concurrency=1..4 --design lhs:2", "fit"),
    (f"capacity small.toml {LOAD} --slo load1_peak<99 --budget 10", None),
    (f"capacity small.toml {LOAD} --slo load1_peak<99 --plot capacity.png", "plot"),
    ("optimise small.toml --slo load1_peak<99 --budget 10", None),
    ("optimise small.toml --slo load1_peak<99 --plot optimise.png", "plot"),
    (f"forecast small.toml {GROWS} --slo load1_peak<99 --budget 10", None),
    (f"forecast small.toml {GROWS} --slo load1_peak<99 --plot forecast.png", "plot"),
    (f"sensitivity small.toml {OVER} --of load1_peak", "sensitivity"),
    ("trace small.toml --from 3s --to 4s --perfetto small.pftrace", None),
    ("lab list", None),
    ("serve small.toml", "serve"),
    ("store --help", None),
    ("cluster", None),
    ("explain small.toml", None),
    ("report small.toml --html small.html --replications 1", None),
    ("params small.toml", None),
    ("calibrate sendmail", "fit"),
    ("predict sendmail", "fit"),
    ("exec small.toml -- uptime", None),
    ("proc small.toml --out tree", None),
    ("export small.toml", None),
    ("fio reads.fio --machine small.toml", None),
    ("table", None),
    ("table access --plot access.png", "plot"),
    ("import uptime.txt", None),
    ("look sendmail", None),
    ("record here --duration 1s --interval 1s", None),
    ("twin here", "fit"),
    ("samples sendmail", None),
    ("doctor", None),
]


def plain(folder: Path, words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without what the extras have."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {HOME!r})\n{WITHOUT}"]
    return subprocess.run(
        [*command, *words.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_command_is_tried() -> None:
    not_everywhere = {"shell"}  # it needs namespaces: tests/oracle/test_oracle_shell.py
    assert {words.split()[0] for words, _extra in CASES} == set(COMMANDS) - not_everywhere


@pytest.mark.parametrize(("words", "extra"), CASES)
def test_a_command_runs_or_names_the_extra_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, extra: str | None
) -> None:
    monkeypatch.chdir(tmp_path)  # The command to type depends on where one stands.
    (tmp_path / "small.toml").write_text(SMALL + OPTION)
    (tmp_path / "reads.fio").write_text(JOB)
    (tmp_path / "uptime.txt").write_text(
        " 10:00:05 up 1 day,  1:00,  1 user,  load average: 0.20, 0.10, 0.05\n"
        " 10:00:10 up 1 day,  1:00,  1 user,  load average: 0.30, 0.10, 0.05\n"
    )
    done = plain(tmp_path, words)
    if extra is None:
        assert done.returncode == 0, done.stderr
    else:
        told = f"which the extra '{extra}' has: {extras.install_command(extra)}"
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert done.stderr.rstrip().endswith(told)


def test_what_is_imported_is_in_the_extra_that_is_named() -> None:
    config = configparser.ConfigParser()
    config.read(TOP / "setup.cfg", encoding="utf-8")
    listed = config["options.extras_require"]
    distribution = {"sklearn": "scikit-learn"}
    for module, extra in extras.EXTRA_OF.items():
        assert f"\n{distribution.get(module, module)}>" in listed[extra]


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where an environment that bootstrap.py made names its checkout."""
    monkeypatch.setattr(sys, "executable", "/opt/my python/bin/python")
    return tmp_path / "iotwin-checkout"


def test_without_a_checkout_pip_installs_an_extra(note: Path, tmp_path: Path) -> None:
    told = extras.install_command("fit", top=tmp_path, note=note)
    assert told == "'/opt/my python/bin/python' -m pip install 'iotwin[fit]'"


def test_in_a_checkout_of_ones_own_pip_installs_its_extra(note: Path, tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").touch()
    told = extras.install_command("plot", top=tmp_path, note=note)
    pip = "'/opt/my python/bin/python' -m pip install"
    assert told == f"{pip} --editable '{tmp_path}[plot]'"


def test_in_an_environment_of_bootstrap_that_installs_an_extra(note: Path, tmp_path: Path) -> None:
    (tmp_path / "bootstrap.py").touch()
    note.write_text(f"{tmp_path}\n")
    told = extras.install_command("plot", top=tmp_path, note=note)
    assert told == f"python3 {tmp_path}/bootstrap.py install plot"
