"""The set-up script knows when there is something to do, and says what went wrong."""

import importlib.util
import sys
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
    code = "import sys; print('first'); sys.exit('no space left')"
    assert bootstrap.attempt([sys.executable, "-c", code]) == "no space left"


@pytest.mark.parametrize(("words", "code"), [(["fly"], 2), ([], 2), (["help"], 0)])
def test_bad_usage_ends_with_2(bootstrap: ModuleType, words: list[str], code: int) -> None:
    assert bootstrap.main(words) == code


def test_every_extra_that_a_command_needs_is_declared(bootstrap: ModuleType) -> None:
    text = (TOP / "setup.cfg").read_text()
    extras = {extra for needed, _ in bootstrap.COMMANDS.values() for extra in needed}
    assert all(f"\n{extra} =\n" in text for extra in extras)
