"""The set-up script knows when there is something to do, and says what went wrong."""

import importlib.util
import os
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import ModuleType

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the script as a module that works on a small checkout of its own."""
    monkeypatch.setenv("IOTWIN_VENV", str(tmp_path / ".venv"))
    spec = importlib.util.spec_from_file_location("bootstrap", TOP / "bootstrap.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.TOP = tmp_path
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "units.py").write_text("x = 1\n")
    return module


def test_a_changed_source_is_noticed(bootstrap: ModuleType) -> None:
    before = bootstrap.digest_of(bootstrap.source_files())
    (bootstrap.TOP / "sim" / "units.py").write_text("x = 2\n")
    assert bootstrap.digest_of(bootstrap.source_files()) != before


def test_what_python_and_compilers_leave_is_no_change(bootstrap: ModuleType) -> None:
    before = bootstrap.digest_of(bootstrap.source_files())
    (bootstrap.TOP / "sim" / "__pycache__").mkdir()
    (bootstrap.TOP / "sim" / "__pycache__" / "units.cpython-311.pyc").write_text("")
    (bootstrap.TOP / "sim" / "units.so").write_text("")
    assert bootstrap.digest_of(bootstrap.source_files()) == before


def test_an_environment_that_was_moved_is_set_up_again(bootstrap: ModuleType) -> None:
    bootstrap.STAMP.parent.mkdir()
    bootstrap.STAMP.write_text('{"top": "/another/place", "extras": []}')
    assert bootstrap.read_stamp() == {}


def test_an_old_python_is_told_which_one_is_needed(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "PYTHON_MIN", (3, 99))
    with pytest.raises(bootstrap.SetupError, match=r"Python 3\.99 or newer is needed"):
        bootstrap.find_python()


def test_a_folder_that_is_no_environment_is_not_removed(bootstrap: ModuleType) -> None:
    bootstrap.VENV.mkdir()
    (bootstrap.VENV / "letters.txt").write_text("keep")
    with pytest.raises(bootstrap.SetupError, match="is in the way"):
        bootstrap.make_venv()
    assert (bootstrap.VENV / "letters.txt").exists()


def test_a_failed_command_gives_its_last_words(bootstrap: ModuleType) -> None:
    code = "import sys; print('first', flush=True); sys.exit('no space left')"
    assert bootstrap.attempt([sys.executable, "-c", code]) == "no space left"


@pytest.mark.parametrize(("words", "code"), [(["fly"], 2), ([], 2), (["help"], 0)])
def test_bad_usage_ends_with_2(bootstrap: ModuleType, words: list[str], code: int) -> None:
    assert bootstrap.main(words) == code


def test_an_extra_that_does_not_exist_is_told_with_those_that_do(bootstrap: ModuleType) -> None:
    (bootstrap.TOP / "setup.cfg").write_text("[options.extras_require]\nfit =\n    numpy\n")
    with pytest.raises(bootstrap.SetupError, match="no extra 'fti'; known: fit"):
        bootstrap.check_extras(["fti"])


def half_done(bootstrap: ModuleType) -> None:
    """Leave what a set-up leaves that was killed while it changed the environment."""
    bootstrap.VENV.mkdir()
    with bootstrap.changing():
        (bootstrap.VENV / "half").mkdir()


def test_a_set_up_that_was_cut_short_is_begun_again(
    bootstrap: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    half_done(bootstrap)
    bootstrap.remove_half_done()
    assert list(bootstrap.VENV.iterdir()) == []
    assert "cut short: beginning again" in capsys.readouterr().err


def test_a_set_up_that_ended_well_is_kept(bootstrap: ModuleType) -> None:
    half_done(bootstrap)
    bootstrap.finish({"top": str(bootstrap.TOP)})
    bootstrap.remove_half_done()
    assert (bootstrap.VENV / "half").exists()
    assert bootstrap.read_stamp() == {"top": str(bootstrap.TOP)}


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_two_set_ups_at_once_wait_for_each_other(bootstrap: ModuleType) -> None:
    bootstrap.VENV.mkdir()
    with ThreadPoolExecutor(1) as other:
        with bootstrap.changing():
            waiting = other.submit(bootstrap.remove_half_done)
            assert not wait([waiting], timeout=0.3).done
            bootstrap.finish({})
        waiting.result()
    assert bootstrap.STAMP.exists()


def test_a_full_disk_is_told(bootstrap: ModuleType) -> None:
    bootstrap.FREE_BYTES_MIN = 10**18
    with pytest.raises(bootstrap.SetupError, match=r"MB are free at .* too little. Make room"):
        bootstrap.refuse_full_disk()


def test_what_cannot_be_compiled_here_is_told(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with pytest.raises(bootstrap.SetupError, match=r"no C compiler .*runs without compiling"):
        bootstrap.sources_to_compile("fast", {})
    assert bootstrap.sources_to_compile("test", {}) == ""
    assert "not compiled: there is no C compiler" in capsys.readouterr().err


def test_what_is_compiled_is_compiled_once_and_given_up_when_sources_change(
    bootstrap: ModuleType,
) -> None:
    stamp = {"compiled": bootstrap.sources_to_compile("fast", {})}
    assert [bootstrap.sources_to_compile(name, stamp) for name in ("test", "sendmail", "dev")] == [
        stamp["compiled"],
        stamp["compiled"],
        "",
    ]
    (bootstrap.TOP / "sim" / "units.py").write_text("x = 2\n")
    assert bootstrap.sources_to_compile("sendmail", stamp) == ""
    assert bootstrap.sources_to_compile("test", stamp) not in ("", stamp["compiled"])


def test_every_extra_that_a_command_needs_is_declared(bootstrap: ModuleType) -> None:
    text = (TOP / "setup.cfg").read_text()
    extras = {extra for needed, _ in bootstrap.COMMANDS.values() for extra in needed}
    assert all(f"\n{extra} =\n" in text for extra in extras)
