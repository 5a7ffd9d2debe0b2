"""Build: compile the kernel's modules with mypyc where possible, bring the scenarios along.

The project's metadata is in setup.cfg, and so is the list of modules to compile. What decides:
``IOTWIN_COMPILE=1`` compiles or fails, ``=0`` leaves all interpreted, otherwise a normal build
compiles if there is a C compiler and says in one line why not; an editable one stays interpreted.
A module that was compiled carries its source's digest in ``sim/_compiled.json``, for the check in
sim/compiled.py.
"""

import configparser
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

TOP = Path(__file__).resolve().parent
# pip asks for metadata with other commands first; compiling is for those that build.
BUILDING = {"bdist_wheel", "build", "build_ext", "install"} & set(sys.argv)
EDITABLE = {"editable_wheel", "develop"} & set(sys.argv)
WANTED = os.environ.get("IOTWIN_COMPILE", "auto")
# All modules are one library; calls within it need no way round by its symbol table, and those into
# Python one jump less: 1.06x in benchmarks, kernel_path. (Only gcc and clang know how.)
CALLS: list[str] = []
if os.name == "posix":
    CALLS = ["-fvisibility=hidden", "-fno-semantic-interposition", "-fno-plt"]
# What a module calls when something fails, after half of its lines. The compiler puts what leads
# there apart, so that what runs is dense: 1.03x in the compiled storm, which misses the CPU's cache
# of instructions more often than anything else.
FAILURES = [
    "CPy_AddTraceback", "CPy_AttributeError", "CPy_TypeError", "CPy_TypeErrorTraceback",
    "CPyError_OutOfMemory",
]  # fmt: skip
# All that a module's shim calls, declared as Python.h does: that alone takes 0.06 s to read, and
# there are 329 shims.
SHIM_CALLS = {
    "Py_BuildValue": "PyObject *Py_BuildValue(const char *, ...)",
    "Py_DecRef": "void Py_DecRef(PyObject *)",
    "PyCapsule_GetPointer": "void *PyCapsule_GetPointer(PyObject *, const char *)",
    "PyErr_Clear": "void PyErr_Clear(void)",
    "PyImport_ImportModuleLevel": "PyObject *PyImport_ImportModuleLevel("
    "const char *, PyObject *, PyObject *, PyObject *, int)",
    "PyObject_GetAttrString": "PyObject *PyObject_GetAttrString(PyObject *, const char *)",
}
SHIM_HEADER = "\n".join(
    [
        "typedef struct _object PyObject;",
        '#define PyMODINIT_FUNC __attribute__((visibility("default"))) PyObject *',
        "#define Py_DECREF(object) Py_DecRef(object)",
        "#define NULL ((void *)0)",
        *(f"{declared};" for declared in SHIM_CALLS.values()),
    ]
)
SHIM_NAMES = {*SHIM_CALLS, "PyObject", "PyMODINIT_FUNC", "Py_DECREF"}

# How hard the C compiler tries. -Og takes 0.4 of the time of -O2; with -O1 for all, storms took 1
# to 2 % longer. A shim only finds its module in the library.
HOT_LEVEL, COLD_LEVEL, SHIM_LEVEL = "-O2", "-Og", "-O0"
# gcc compiles the hot modules twice: what short simulations count in the first, it lays the second
# out by, 1.2x in the compiled storm. IOTWIN_PROFILE=0 saves the half minute that it takes.
PROFILE_WANTED = os.environ.get("IOTWIN_PROFILE", "1") != "0"
COUNTING = ["-fprofile-generate", "-fprofile-update=single"]
BY_COUNTS = ["-fprofile-use", "-fprofile-partial-training"]  # What nobody ran stays as at -O2.
TRAINING_RUNS = [
    ["sendmail", None, ["process.blast.messages=400"]],
    ["sendmail", "tmpfs", ["process.blast.messages=400"]],
    ["sendmail", "xfs", ["process.blast.messages=200"]],
    ["page-cache", None, ['process.app.file_size="1 GB"']],
]
TRAINING = """
import json, sys
from sim.machine import simulate
from sim.scenario import load
for name, what_if, sets in json.loads(sys.argv[1]):
    simulate(load(name, what_if=what_if, sets=sets), 1)
"""
# So many bytes of C are compiled at a time: each translation unit has to read 2 MB of headers.
UNIT_BYTES = 1_500_000


def patterns(key: str) -> list[str]:
    """Return the patterns that setup.cfg's [iotwin:compile] has under a key."""
    config = configparser.ConfigParser()
    config.read(TOP / "setup.cfg", encoding="utf-8")
    return config["iotwin:compile"][key].split()


def is_one_of(path: str, names: list[str]) -> bool:
    """Return whether one of the patterns names the file."""
    return any(fnmatch(path, name) for name in names)


def modules_to_compile() -> list[str]:
    """Return the sources that setup.cfg's [iotwin:compile] names."""
    exclude = patterns("exclude")
    found = {
        path.relative_to(TOP).as_posix()
        for pattern in patterns("include")
        for path in TOP.glob(pattern)
    }
    return sorted(path for path in found if not is_one_of(path, exclude))


def why_not() -> str:
    """Return why nothing is compiled here, or an empty text if it can be."""
    if WANTED == "0":
        return "not wanted (IOTWIN_COMPILE=0)"
    if EDITABLE and WANTED != "1":
        return "an editable install (IOTWIN_COMPILE=1 compiles it too)"
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if os.name == "posix" and shutil.which(compiler) is None:
        return f"no C compiler ({compiler}) found"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        return f"no C headers of Python ({header}); Debian has them in python3-dev"
    return ""


def extensions(paths: list[str]) -> list[Any]:
    """Translate the modules into C; return the Extensions that are to be built of it."""
    from mypyc.build import mypycify  # absent where nothing is compiled

    # Our own configuration is for checking: here, only what prevents a translation counts.
    options = [f"--config-file={os.devnull}", "--ignore-missing-imports"]
    found = mypycify(
        [*options, *paths], opt_level="2", debug_level="0", multi_file=True, group_name="iotwin"
    )
    for extension in found:
        flags = [*extension.extra_compile_args, *CALLS]
        sources = [str(source) for source in extension.sources]
        if len(sources) > 1:  # The library; the others are the modules' shims.
            extension.sources = units(sources)
            flags += ["-include", str(common_header())] if os.name == "posix" else []
        elif os.name == "posix":
            spare_header(Path(sources[0]))
        extension.extra_compile_args = flags
    return list(found)


def common_header() -> Path:
    """Write what all C files of the library begin with; return its path.

    That is what mypyc has them include, and that some calls are made only when something fails.
    """
    lines = [f'#include "__native_{part}iotwin.h"' for part in ("", "internal_")]
    lines += [f"extern __typeof__({name}) {name} __attribute__((cold));" for name in FAILURES]
    path = TOP / "build" / "common.h"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def spare_header(shim: Path) -> None:
    """Put the few declarations that a shim needs in Python.h's place, if these are all."""
    text = shim.read_text(encoding="utf-8")
    code = re.sub(r"//.*|#include.*|\"[^\"]*\"", "", text)
    used = set(re.findall(r"\b_?P[yY]\w+", code))
    if {name for name in used if not name.startswith("PyInit_")} <= SHIM_NAMES:
        shim.write_text(text.replace("#include <Python.h>", SHIM_HEADER), encoding="utf-8")


def units(sources: list[str]) -> list[str]:
    """Put several cold modules' C files into one translation unit; return all there is to compile.

    Hot ones stay alone: the compiler puts fewer functions into one another in a large unit.
    """
    hot = patterns("optimise")
    found: list[str] = []
    cold: list[Path] = []
    for source in map(Path, sources):
        module = source.stem.removeprefix("__native_").replace("___", "/") + ".py"
        if module.startswith("sim/") and not is_one_of(module, hot):
            cold.append(source)
        else:
            found.append(str(source))
    unit: list[Path] = []
    for file in cold:
        unit.append(file)
        if file is cold[-1] or sum(one.stat().st_size for one in unit) > UNIT_BYTES:
            path = file.with_name(f"unit{COLD_LEVEL}-{len(found)}.c")
            text = "".join(f'#include "{one.name}"\n' for one in unit)
            path.write_text(text, encoding="utf-8")
            found.append(str(path))
            unit = []
    return found


def level_of(source: str) -> str:
    """Return how hard the C compiler tries with a file."""
    path = Path(source)
    if path.name.startswith(f"unit{COLD_LEVEL}"):
        return COLD_LEVEL
    return SHIM_LEVEL if "sim" in path.parts else HOT_LEVEL


def is_profiled(source: str) -> bool:
    """Return whether a C file has what simulations run most: the kernel's hot modules, mypyc's own.

    Programs and the library's set-up take as long to compile, and gain little.
    """
    name = Path(source).name
    outside = name == "__native_iotwin.c" or name.startswith("__native_sim___user___")
    return level_of(source) == HOT_LEVEL and not outside


def compiler_counts(command: str) -> bool:
    """Return whether a C compiler is gcc, whose flags and files these are."""
    asked = [command, "-dM", "-E", "-x", "c", os.devnull]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return "__GNUC__" in done.stdout and "__clang__" not in done.stdout


def precompile(compiler: Any, library: Any) -> None:
    """Have gcc read the library's common header once for each level, not for each C file.

    It takes what fits from a folder beside the header, or the header itself.
    """
    *flags, _, header = library.extra_compile_args
    folder = Path(f"{header}.gch")
    folder.mkdir(exist_ok=True)
    includes = [f"-I{path}" for path in [*library.include_dirs, *compiler.include_dirs]]
    for level in (HOT_LEVEL, COLD_LEVEL):
        own = [level if flag == HOT_LEVEL else flag for flag in flags]
        command = [*compiler.compiler_so, *includes, *own, "-x", "c-header", header]
        subprocess.run([*command, "-o", str(folder / level)], check=True)


class Build(build):
    """Build from nothing: what an earlier version left in build/ must not be installed."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildPy(build_py):
    """Copy the packages, and the scenarios into sim/scenarios, where an installed twin looks."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        home = Path(self.build_lib) / "sim" / "scenarios"
        home.mkdir(parents=True, exist_ok=True)
        for path in [*TOP.glob("scenarios/*.toml"), *TOP.glob("scenarios/README.md")]:
            shutil.copyfile(path, home / path.name)
        if not self.distribution.ext_modules:
            write_record(home.parent, [], NOTE)


class BuildExt(build_ext):
    """Compile on all cores; if that fails, leave everything interpreted and say so."""

    def run(self) -> None:
        sim = TOP / "sim" if self.inplace else Path(self.build_lib) / "sim"
        try:
            super().run()
        except Exception as error:  # whatever a compiler can do wrong
            if WANTED == "1":
                raise
            for path in self.get_outputs():
                Path(path).unlink(missing_ok=True)
            self.extensions = self.distribution.ext_modules = []
            write_record(sim, [], say(f"the C compiler failed: {error}"))
        else:
            write_record(sim, MODULES, "compiled by mypyc")

    def build_extensions(self) -> None:
        """Compile several C files at a time; distutils would take one after the other."""
        compiler = self.compiler
        is_gcc = os.name == "posix" and compiler_counts(compiler.compiler_so[0])
        workers = self.parallel = os.cpu_count() or 1
        compile_serially = compiler.compile
        made: dict[str, list[str]] = {}
        by_counts: list[str] = []

        def compile_parallel(sources: list[str], **options: Any) -> list[str]:
            flags = options.pop("extra_postargs")

            def compile_one(source: str) -> None:
                level = level_of(source)
                own = [level if flag == HOT_LEVEL else flag for flag in flags]
                if is_profiled(source):
                    own += by_counts
                elif source in made:
                    return
                made[source] = compile_serially([source], extra_postargs=own, **options)

            # What takes longest comes first, so that no core waits for a last one.
            order = sorted(sources, key=lambda source: level_of(source) != HOT_LEVEL)
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(compile_one, order))
            return [name for source in sources for name in made[source]]

        compiler.compile = compile_parallel
        if is_gcc:
            for extension in self.extensions:
                if len(extension.sources) > 1:
                    precompile(compiler, extension)
        profiled = PROFILE_WANTED and is_gcc
        if profiled:
            by_counts[:] = COUNTING
            compiler.linker_so += COUNTING[:1]
        super().build_extensions()
        if profiled:
            self.train()
            by_counts[:] = BY_COUNTS
            compiler.linker_so.remove(COUNTING[0])
            self.force = True
            for extension in self.extensions:
                if len(extension.sources) > 1:
                    self.build_extension(extension)

    def train(self) -> None:
        """Run short simulations with the counting library; the counts lie beside its objects."""
        for old in Path(self.build_temp).rglob("*.gcda"):
            old.unlink()
        library = TOP if self.inplace else Path(self.build_lib).resolve()
        command = [sys.executable, "-P", "-c", TRAINING, json.dumps(TRAINING_RUNS)]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(library)}, check=True)


def write_record(sim: Path, modules: list[str], note: str) -> None:
    """Leave what sim/compiled.py reads: the digests of the compiled sources, and a note."""
    digests = {path: hashlib.sha256((TOP / path).read_bytes()).hexdigest() for path in modules}
    text = json.dumps({"digests": digests, "note": note}, indent=1, sort_keys=True)
    (sim / "_compiled.json").write_text(text + "\n", encoding="utf-8")


def say(reason: str) -> str:
    """Print why the twin will be interpreted, and return it."""
    print(f"iotwin: interpreted, not compiled: {reason}", file=sys.stderr)
    return reason


NOTE = why_not()
MODULES = modules_to_compile() if BUILDING or EDITABLE else []
EXTENSIONS: list[Any] = []
if MODULES and not NOTE:
    try:
        EXTENSIONS = extensions(MODULES)
    except (Exception, SystemExit):  # mypyc exits where it finds a mistake
        if WANTED == "1":
            raise
        NOTE = say("mypyc cannot translate the sources (`pip install -v .` shows why)")
elif BUILDING and WANTED != "0":
    say(NOTE)

setup(cmdclass={"build": Build, "build_py": BuildPy, "build_ext": BuildExt}, ext_modules=EXTENSIONS)
