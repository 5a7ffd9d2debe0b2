"""Every place where a task may sleep has a name that an explanation knows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import sim
from sim.study.waits import _NAMES, JOURNAL, WAITS, kernel_name

KERNEL = ("sched", "block", "drivers", "mm", "net", "fs")  # folders of sim whose code sleeps


def sources() -> list[ast.Module]:
    root = Path(sim.__file__).parent
    files = [root / "syscall.py"]
    files += [path for folder in KERNEL for path in sorted((root / folder).rglob("*.py"))]
    return [ast.parse(path.read_text(encoding="utf-8")) for path in files]


def slots(modules: list[ast.Module]) -> dict[str, int]:
    """Return where the functions that have an argument `wchan` have it, without self."""
    found = {}
    for node in (node for module in modules for node in ast.walk(module)):
        if isinstance(node, ast.FunctionDef):
            names = [arg.arg for arg in node.args.args]
            if "wchan" in names:
                found[node.name] = names.index("wchan") - (names[0] == "self")
    return found


def channels(modules: list[ast.Module]) -> Iterator[str]:
    """Yield the constants that are given as `wchan`, by argument, default or assignment."""
    where = slots(modules)
    for node in (node for module in modules for node in ast.walk(module)):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in where:
                given = node.args[where[name] : where[name] + 1]
            given += [keyword.value for keyword in node.keywords if keyword.arg == "wchan"]
        elif isinstance(node, ast.FunctionDef) and "wchan" in [a.arg for a in node.args.args]:
            given = node.args.defaults[-1:]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            given = [node.value] if node.targets[0].attr == "wchan" else []
        yield from (e.value for e in given if isinstance(e, ast.Constant) and e.value)


def test_every_wait_channel_of_the_sources_is_classified():
    found = set(channels(sources()))
    assert found >= {"log_wait_commit", "xlog_wait_on_iclog", "dio_await_one", "mutex_lock"}
    assert found - WAITS.keys() == set()


def test_no_channel_is_classified_that_no_source_sleeps_in():
    from_the_timeline = {"CPU, user", "CPU, system", "CPU, interrupts", "run queue"}
    assert WAITS.keys() - set(channels(sources())) - from_the_timeline == set()


def test_a_channel_has_the_name_that_its_release_shows():
    assert kernel_name("sync_page", (2, 6, 16)) == "sync_page"
    assert kernel_name("sync_page", (4, 18)) == "wait_on_page_bit"
    assert kernel_name("sync_page", (6, 1)) == "folio_wait_bit_common"
    assert kernel_name("log_wait_commit", (6, 1)) == "jbd2_log_wait_commit"
    assert kernel_name("rwsem_down_write_slowpath", (4, 18)) == "rwsem_down_write_failed"
    assert kernel_name("mutex_lock", (6, 1)) == "mutex_lock"


def test_only_channels_have_names_by_release():
    assert _NAMES.keys() <= WAITS.keys()


def test_the_channels_of_both_journals_are_called_journal():
    logs = {name for name in channels(sources()) if name.startswith(("xlog_", "log_wait"))}
    assert len(logs) >= 7
    assert {WAITS[name] for name in logs} == {JOURNAL}
