"""Run SimPy's own tests against the twin's Environment.

They come from the source distribution of the installed SimPy version, which pip fetches once into
``$XDG_CACHE_HOME/iotwin`` (``~/.cache/iotwin``); none of them is copied into this repository.
Arguments go to pytest. Exit code: pytest's, or 77 when the distribution cannot be obtained.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import simpy

from sim import engine

EXIT_SKIPPED = 77
PLUGIN_DIR = Path(__file__).resolve().parent
SIM_DIR = Path(engine.__file__).resolve().parents[2]  # the twin imported here, compiled or not


def cache_dir() -> Path:
    """Return where the unpacked source distributions are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "iotwin"


def obtain_tests(version: str) -> Path | None:
    """Return SimPy's unpacked source tree, None when pip cannot get it."""
    tree = cache_dir() / f"simpy-{version}"
    if (tree / "tests" / "conftest.py").is_file():
        return tree
    tree.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tree.parent) as download_dir:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", "simpy", "--dest", download_dir, f"simpy=={version}"]
        if subprocess.run(command, check=False).returncode != 0:
            return None
        for archive in Path(download_dir).glob("simpy-*.tar.gz"):
            with tarfile.open(archive) as tar:
                # Python 3.11.2, which Debian 12 came with, has no filters, and looks for none.
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(download_dir)
            os.replace(archive.with_suffix("").with_suffix(""), tree)
            return tree
    return None


def run_tests(tree: Path, arguments: list[str]) -> int:
    """Run pytest in SimPy's tree, by SimPy's configuration (no timed tests), with our plugin."""
    environment = dict(os.environ)
    search_path = [str(PLUGIN_DIR), str(SIM_DIR), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(part for part in search_path if part)
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml"]
    command += ["-p", "no:cacheprovider", "-p", "twin_environment", "tests", *arguments]
    return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


def main(arguments: list[str]) -> int:
    """Fetch, run, return the exit code."""
    tree = obtain_tests(simpy.__version__)
    if tree is None:
        print(f"skipped: pip could not get the source of simpy {simpy.__version__}")
        return EXIT_SKIPPED
    return run_tests(tree, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
