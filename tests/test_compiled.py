"""Compiled and interpreted are one twin; a source changed after it was compiled is refused."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sim.compiled import StaleBuild, compiled_modules, refuse_stale_build, source_checksum
from sim.lab.labs import lab_files
from tests import lab_bases, own_parts

TOP = Path(__file__).resolve().parents[1]
STORM = ("run", "sendmail", "--json", "-")
QUICK_STORM = ("run", "sendmail", "--what-if", "tmpfs", "--json", "-")
IOSTAT = ("exec", "sendmail", "--", "iostat", "-t", "-c", "-m", "-x", "5", "12")


def built(folder: Path, text: str) -> Path:
    """Leave a compiled module's source and the record of its build; return the record."""
    (folder / "hot.py").write_text(text, encoding="utf-8")
    record = folder / "_compiled.txt"
    record.write_text(f"{source_checksum(folder / 'hot.py')} hot.py\n", encoding="utf-8")
    return record


def checked_out_at(folder: Path, text: str) -> Path:
    """Leave a checkout with that source, and the note of who set up from it; return the note."""
    (folder / "checkout").mkdir()
    (folder / "checkout" / "bootstrap.py").touch()
    (folder / "checkout" / "hot.py").write_text(text, encoding="utf-8")
    (folder / "note").write_text(f"{folder / 'checkout'}\n", encoding="utf-8")
    return folder / "note"


def test_an_unchanged_source_is_accepted(tmp_path: Path) -> None:
    record, note = built(tmp_path, "x = 1\n"), checked_out_at(tmp_path, "x = 1\n")
    refuse_stale_build(record, tmp_path, note)


def test_a_changed_source_is_refused_with_its_name_and_a_remedy(tmp_path: Path) -> None:
    record = built(tmp_path, "x = 1\n")
    (tmp_path / "hot.py").write_text("x = 2\n", encoding="utf-8")
    with pytest.raises(
        StaleBuild, match=r"hot\.py changed after it was compiled: install it again"
    ):
        refuse_stale_build(record, tmp_path, tmp_path / "note")


def test_a_changed_source_of_the_checkout_it_was_compiled_from_is_refused(tmp_path: Path) -> None:
    record, note = built(tmp_path, "x = 1\n"), checked_out_at(tmp_path, "x = 2\n")
    with pytest.raises(StaleBuild, match=r"checkout/hot\.py changed .*`make fast` compiles"):
        refuse_stale_build(record, tmp_path, note)


def test_a_checkout_that_has_gone_is_no_obstacle(tmp_path: Path) -> None:
    record, note = built(tmp_path, "x = 1\n"), checked_out_at(tmp_path, "x = 2\n")
    (tmp_path / "checkout" / "bootstrap.py").unlink()
    refuse_stale_build(record, tmp_path, note)


def test_the_refusal_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    package = tmp_path / "sim"
    package.mkdir()
    for name in ("__init__.py", "compiled.py"):
        shutil.copyfile(TOP / "sim" / name, package / name)
    (package / "_compiled.txt").write_text("0 sim/compiled.py\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import sim"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = f"iotwin: {package / 'compiled.py'} changed after it was compiled: "
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1


def test_a_source_that_has_gone_is_refused(tmp_path: Path) -> None:
    record = built(tmp_path, "x = 1\n")
    (tmp_path / "hot.py").unlink()
    with pytest.raises(StaleBuild):
        refuse_stale_build(record, tmp_path, tmp_path / "note")


def test_a_source_tree_is_interpreted_and_never_refused(tmp_path: Path) -> None:
    refuse_stale_build(tmp_path / "_compiled.txt", tmp_path)
    assert compiled_modules(tmp_path / "_compiled.txt") == ()


def test_modules_are_named_as_python_imports_them(tmp_path: Path) -> None:
    record = tmp_path / "_compiled.txt"
    record.write_text("0 sim/mm/vm.py\n0 sim/block/bio.py\n", encoding="utf-8")
    assert compiled_modules(record) == ("sim.block.bio", "sim.mm.vm")


# -- The installed twin beside the sources of this checkout.


def installed(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python away from the checkout, so that `sim` is the installed one."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def checked_out(arguments: list[str]) -> str:
    """Run Python in the checkout, where sources are interpreted."""
    environment = {**os.environ, "PYTHONHASHSEED": "2", "PYTHONPATH": str(TOP)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=TOP, env=environment, capture_output=True, text=True, check=True
    ).stdout


def why_not_compiled(cwd: Path) -> str:
    """Return why there is no compiled twin of these very sources, or an empty text."""
    code = "import json, sim.compiled as c; print(json.dumps([str(c.TOP), c.compiled_sources()]))"
    done = installed(["-c", code], cwd)
    if done.returncode != 0:
        return f"the twin is not installed: {done.stderr.strip().splitlines()[-1]}"
    place, compiled = json.loads(done.stdout)
    if Path(place) == TOP:
        return "the checkout itself is what is installed, interpreted (make fast)"
    if not compiled:
        return "the installed twin is not compiled (make fast)"
    stale = [path for path, known in compiled.items() if source_checksum(TOP / path) != known]
    return f"the installed twin is older than {stale[0]} (make fast)" if stale else ""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a place from which the compiled twin is found; skip where there is none."""
    cwd = tmp_path_factory.mktemp("elsewhere")
    reason = why_not_compiled(cwd)
    if reason and os.environ.get("IOTWIN_COMPILED") == "required":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    return cwd


@pytest.mark.parametrize("words", [STORM, QUICK_STORM, IOSTAT], ids=" ".join)
def test_compiled_and_interpreted_give_the_same_bytes(
    elsewhere: Path, words: tuple[str, ...]
) -> None:
    compiled = installed(["-m", "sim", *words], elsewhere)
    assert compiled.returncode == 0, compiled.stderr
    assert compiled.stdout == checked_out(["-m", "sim", *words])


def test_every_labs_base_has_the_same_digest_compiled_and_interpreted(elsewhere: Path) -> None:
    compiled = installed([lab_bases.__file__], elsewhere)
    assert compiled.returncode == 0, compiled.stderr
    interpreted = json.loads(checked_out([lab_bases.__file__]))
    assert json.loads(compiled.stdout) == interpreted
    assert interpreted.keys() == lab_files().keys()


NO_JOURNAL = """\
title = "Fsyncs without a journal"
doc = "Compiled as interpreted."
[machine]
hostname = "m"
kernel = "6.18"
memory = "2 GiB"
[machine.disk.sda]
profile = "ssd-nvme"
buffer_protected = false
[machine.mount."/"]
type = "ext4"
device = "sda"
has_journal = false
[process.w]
program = "transactions"
rate = "200 /s"
writes = 1
write_size = "8 KiB"
write_file = "/log"
fsyncs = 1
[run]
duration = "10 s"
"""


def test_a_file_system_without_a_journal_is_the_same_compiled_and_interpreted(
    elsewhere: Path,
) -> None:
    path = elsewhere / "bare.toml"
    path.write_text(NO_JOURNAL, encoding="utf-8")
    words = ["-m", "sim", "run", str(path), "--store", "none"]
    compiled = installed(words, elsewhere)
    assert compiled.returncode == 0, compiled.stderr
    assert compiled.stdout == checked_out(words)


OWN_PARTS = (20 * 8, 10 * 8, 20, 10)  # sectors and pages, read and written: one file of each


def test_an_elevator_a_disk_a_volume_and_a_file_system_may_be_the_users_own() -> None:
    assert own_parts.run() == OWN_PARTS


def test_plain_python_may_subclass_what_is_compiled(elsewhere: Path) -> None:
    done = installed([own_parts.__file__], elsewhere)
    assert done.stdout == f"{OWN_PARTS}\n", done.stderr


def test_a_compiled_scenario_goes_to_another_process_and_back(elsewhere: Path) -> None:
    code = (
        "import pickle; from sim.scenario import load; s = load('sendmail');"
        "print(pickle.loads(pickle.dumps(s)) == s)"
    )
    done = installed(["-c", code], elsewhere)
    assert done.stdout == "True\n", done.stderr


def test_a_compiled_scenario_comes_back_from_a_process_that_read_none(elsewhere: Path) -> None:
    """A worker that never read a scenario's text sends on what it was sent."""
    code = (
        "import pickle, subprocess, sys; from sim.scenario import load; s = load('sendmail');"
        "on = 'import pickle, sys; s = pickle.load(sys.stdin.buffer);'"
        "     'sys.stdout.buffer.write(pickle.dumps(s))';"
        "sent = subprocess.run([sys.executable, '-P', '-c', on], input=pickle.dumps(s),"
        "     capture_output=True, check=True);"
        "print(pickle.loads(sent.stdout) == s)"
    )
    done = installed(["-c", code], elsewhere)
    assert done.stdout == "True\n", done.stderr


def test_simpys_own_tests_pass_on_the_compiled_engine(elsewhere: Path) -> None:
    suite = str(TOP / "tests" / "simpy_suite" / "__main__.py")
    code = f"import runpy, sys; sys.argv[1:] = ['-q']; runpy.run_path({suite!r}, None, '__main__')"
    done = installed(["-c", code], elsewhere)
    if done.returncode == 77:
        pytest.skip("SimPy's source distribution cannot be obtained")
    assert done.returncode == 0, done.stdout + done.stderr
