"""Build: plain Python, or with the modules that profiles name compiled (IOTWIN_COMPILE=1).

The project's metadata is in setup.cfg, and so is the list of modules that mypyc compiles. Whoever
asks for compiling gets it or an error. An editable install is always interpreted. A compiled build
carries the checksums of its sources in ``sim/_compiled.txt``, for the check in sim/compiled.py.
"""

import configparser
import os
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

TOP = Path(__file__).resolve().parent
WANTED = os.environ.get("IOTWIN_COMPILE", "0")
if WANTED not in ("0", "1"):
    sys.exit(f"IOTWIN_COMPILE is 1 (compile) or 0 (plain Python), and not {WANTED!r}")
# mypy brings mypyc and has to see simpy's types; pybind11 compiles on all cores.
COMPILERS = ["mypy[mypyc]>=1.11", "simpy>=4.1", "pybind11>=2.11"] if WANTED == "1" else []
MODULES: list[str] = []
EXTENSIONS: list[Any] = []
# pip asks for metadata with other commands first; compiling is for those that build.
if WANTED == "1" and {"bdist_wheel", "build", "build_ext", "install"} & set(sys.argv):
    from mypyc.build import mypycify
    from pybind11.setup_helpers import ParallelCompile

    config = configparser.ConfigParser()
    config.read(TOP / "setup.cfg", encoding="utf-8")
    MODULES = config["iotwin:compile"]["modules"].split()
    # setup.cfg's [mypy] is for checking: here only what prevents a translation counts.
    options = [f"--config-file={os.devnull}", "--ignore-missing-imports", "--follow-imports=silent"]
    EXTENSIONS += mypycify(
        [*options, *MODULES], opt_level="2", debug_level="0", multi_file=True, group_name="iotwin"
    )
    ParallelCompile().install()


class BuildPy(build_py):
    """Copy packages without the tests of the cases; write the checksums."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return (package, module, file) of what is installed."""
        found: list[tuple[str, str, str]]
        found = super().find_package_modules(package, package_dir)  # type: ignore[no-untyped-call]
        return [one for one in found if not one[1].startswith("test_")]

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # What an earlier version left in build/ must not be installed.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if MODULES:
            sums = [f"{zlib.crc32((TOP / name).read_bytes()):08x} {name}\n" for name in MODULES]
            record = Path(self.build_lib) / "sim" / "_compiled.txt"
            record.write_text("".join(sums), encoding="utf-8")


setup(cmdclass={"build_py": BuildPy}, ext_modules=EXTENSIONS, setup_requires=COMPILERS)
