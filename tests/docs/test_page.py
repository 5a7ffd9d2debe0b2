"""The folder of the page: what is in it, where Python for browsers comes from, and what is told."""

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import pytest

from docs.page import __main__ as command
from docs.page import pyodide
from docs.page.bytecode import cached, compile_zip
from docs.page.make import HERE, MARK, PAGE, SHARED, TWIN, FolderTakenError, make
from sim.lab.sheet import sheet_text
from sim.scenario import load
from sim.study.laboratory import run_once


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a package of the same files as Pyodide's, and no more than that."""
    path = tmp_path / pyodide.FILE
    with tarfile.open(path, "w:gz") as archive:
        for name in (*pyodide.NEEDED, "console.html"):
            content = f"{name}\n".encode()
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    total = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    monkeypatch.setattr(pyodide, "SHA512", total)
    return path


@pytest.fixture
def without_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither npm nor Node.js, and nothing that names a registry."""
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("without_node")
def test_the_folder_alone_runs_a_preset_as_the_checkout_does(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    assert make(folder, package) == "there is no Node.js"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    python = {f"pyodide/{name}" for name in pyodide.NEEDED}
    assert names == {*PAGE, *SHARED, TWIN, MARK, *python}
    twin = tmp_path / "twin"
    with ZipFile(folder / TWIN) as archive:
        archive.extractall(twin)
    code = (
        f"import sys; sys.path.insert(0, {str(twin)!r})\n"
        "from sim.serve.browser import answer\n"
        """print(answer("run", '{"address": "preset=tunnel"}', lambda event: None))\n"""
        """print(answer("lab", '{"name": "iowait", "seed": "1"}', lambda event: None))"""
    )
    # -I and -S: nothing that is installed here, as in a browser.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    scenario = load("tunnel")
    assert f'"digest": "{run_once(scenario, scenario.seed).digest}"' in done.stdout, done.stderr
    # The sources are there beside the bytecode: so a sheet of the page is one of this model.
    assert json.loads(done.stdout.splitlines()[-1])["text"] == sheet_text("iowait", 1)


@pytest.mark.usefixtures("without_node")
def test_a_page_is_made_anew_and_nothing_else_is_overwritten(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    make(folder, package)
    (folder / "old.js").write_text("")
    make(folder, package)
    assert not (folder / "old.js").exists()
    other = tmp_path / "letters"
    other.mkdir()
    (other / "letter.txt").write_text("keep")
    with pytest.raises(FolderTakenError, match="letters is there already, and is no page"):
        make(other, package)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


@pytest.mark.usefixtures("without_node")
def test_without_npm_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["page", "-o", str(tmp_path / "page")])
    assert command.main() == 2
    told = capsys.readouterr().err
    assert "install npm" in told and f"--pyodide {pyodide.FILE}" in told
    assert not (tmp_path / "page").exists()


def test_another_package_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tgz"
    path.write_bytes(b"something else")
    with pytest.raises(pyodide.NoPyodideError, match=r"other\.tgz is not the package pyodide-"):
        pyodide.unpack(tmp_path / "pyodide", path)
    with pytest.raises(pyodide.NoPyodideError, match=r"none\.tgz: No such file"):
        pyodide.unpack(tmp_path / "pyodide", tmp_path / "none.tgz")
    assert not (tmp_path / "pyodide").exists()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@pytest.fixture
def registry(package: Path) -> Iterator[str]:
    """A server that has the package where a registry of npm has it."""
    place = package.parent / "registry" / "pyodide" / "-"
    place.mkdir(parents=True)
    (place / package.name).write_bytes(package.read_bytes())
    handler = partial(Quiet, directory=str(package.parent / "registry"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.usefixtures("without_node")
@pytest.mark.parametrize("where", ["environment", "file"])
def test_without_npm_the_configured_registry_is_asked(
    registry: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "environment":
        monkeypatch.setenv("npm_config_registry", f"{registry}/")
    else:
        (tmp_path / "nobody").mkdir()
        (tmp_path / "nobody" / ".npmrc").write_text(f"audit=false\nregistry={registry}/\n")
    pyodide.unpack(tmp_path / "pyodide")
    assert {path.name for path in (tmp_path / "pyodide").iterdir()} == set(pyodide.NEEDED)
    monkeypatch.setenv("npm_config_registry", f"{registry}/nowhere")
    with pytest.raises(pyodide.NoPyodideError, match=r"nowhere/pyodide/-/.*404"):
        pyodide.unpack(tmp_path / "again")


def sources(path: Path) -> str:
    """Write an archive of sources, one of which is none."""
    with ZipFile(path, "w") as archive:
        archive.writestr("thing/__init__.py", "WHERE = __file__\ndef code():\n    return 1\n")
        archive.writestr("thing/data.toml", "a = 1\n")
        archive.writestr("thing/later.py", "this is no Python\n")
    return str(path)


@pytest.mark.parametrize("keeps_sources", [True, False])
def test_sources_of_an_archive_are_compiled_for_their_place(
    tmp_path: Path, keeps_sources: bool
) -> None:
    old, new = sources(tmp_path / "old.zip"), tmp_path / "new.zip"
    assert compile_zip(old, str(new), "/top", keeps_sources=keeps_sources) == 1
    own = (
        {"thing/__init__.py", cached("thing/__init__.py")}
        if keeps_sources
        else {"thing/__init__.pyc"}
    )
    with ZipFile(new) as archive:
        assert set(archive.namelist()) == {*own, "thing/data.toml", "thing/later.py"}
        archive.extractall(tmp_path / "out")
    place = tmp_path / "out" if keeps_sources else new
    if keeps_sources:  # what is imported is the bytecode: it is not compared with the source
        (place / "thing" / "__init__.py").write_text("1 / 0\n")
    code = f"import sys; sys.path.insert(0, {str(place)!r}); import thing; print(thing.code())"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr
    again = tmp_path / "again.zip"
    compile_zip(old, str(again), "/top", keeps_sources=keeps_sources)
    assert again.read_bytes() == new.read_bytes()


def test_the_script_finds_all_that_it_asks_the_page_for() -> None:
    page = (HERE / "index.html").read_text(encoding="utf-8")
    script = (HERE / "page.js").read_text(encoding="utf-8")
    assert set(re.findall(r'by\("([\w-]+)"\)', script)) <= set(re.findall(r'id="([\w-]+)"', page))
    loaded = re.findall(r'<(?:script|link)\b[^>]*?(?:src|href)="([^"]+)"', page)
    assert {name for name in loaded if name != "data:,"} <= {*PAGE, *SHARED}
    assert not re.search(r"https?://(?!127\.0\.0\.1)", page + script)
