"""A small mail server for tests: sendmail, syslogd, the next host, a blast of a few messages."""

from typing import Any

from sim.machine import Machine
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, sleep_ns
from sim.syscall import Sys
from tests.user.servers import S, boot


def process(name: str, program: str, **params: object) -> str:
    """Return a process of a scenario; texts in quotes, numbers and booleans plain."""
    lines = [f"[process.{name}]", f'program = "{program}"']
    for key, value in params.items():
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        lines.append(f"{key} = {text}")
    return "\n".join(lines)


def blast(messages: int = 1, concurrency: int = 1, **params: object) -> dict[str, object]:
    """Return a closed blast's parameters; those of an open stream with arrivals = "open"."""
    given = {"messages": messages, "concurrency": concurrency, "marks_storm": True, "retry": "2 s"}
    return given | params


def mail_server(
    client: dict[str, object],
    *,
    accept: str = "20 ms",
    machine: Any = None,
    **sendmail: object,
) -> Machine:
    """Boot the server; more: sendmail's parameters. `machine` goes to boot()."""
    processes = [process("syslogd", "syslogd"), process("sendmail", "sendmail", **sendmail)]
    processes.append(process("relay", "smtp_relay", via="lan", accept=accept))
    processes.append(process("blast", "smtp_sender", via="lan", target="sendmail", **client))
    return boot("\n".join(processes), uses=["sendmail/program.py"], **(machine or {}))


def raise_load(machine: Machine, tasks: int, until_s: float) -> None:
    """Let `tasks` tasks sleep uninterruptibly: load average without any CPU time."""

    def sleeper(sys: Sys) -> Blocking[None]:
        yield from sleep_ns(sys.task, round(until_s * S), TASK_UNINTERRUPTIBLE)

    for _ in range(tasks):
        machine.kernel.start("sleeper", "sleeper", sleeper)


def run_to_mark(machine: Machine, mark: str, limit_s: float = 60, step_ns: int = 100_000) -> None:
    """Run until shortly after the first such mark."""
    while not any(record.name == mark for record in machine.records):
        assert machine.calendar.now < limit_s * S, f"no {mark}"
        machine.run_until(machine.calendar.now + step_ns)


def queue_files(machine: Machine) -> list[str]:
    """Return the names in the queue directory."""
    entries = machine.vfs.prepare_directory("/var/spool/mqueue").entries
    assert entries is not None
    return sorted(entries)


def commits(machine: Machine) -> int:
    """Return how many transactions the root file system's journal has committed."""
    return machine.vfs.file_system_of("/").info.journal.nr_commits  # type: ignore[attr-defined]


def daemon_children(machine: Machine) -> int:
    """Return how many sessions are going on: children of the oldest sendmail."""
    tasks = machine.sched.processes.tasks
    daemon = min(pid for pid, task in tasks.items() if task.comm == "sendmail")
    return len(tasks[daemon].children)
