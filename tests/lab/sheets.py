"""Sheets that are filled in as a student would, and what is right in them."""

from statistics import fmean

from sim.lab.kinds.design import Design
from sim.lab.kinds.name import RESOURCE, Name
from sim.lab.labs import open_lab
from sim.lab.number import Number
from sim.lab.sheet import read_sheet, sheet_text
from sim.study.trial import trial_of
from sim.units import parse_quantity

QUEUE = 'machine.mount."/var/spool"'

# A design for each task that reaches its goal. They stand here and not in the labs' own files: what
# is installed has no solutions.
DESIGNS = {
    ("arm", "depth"): {"process.reader.count": "8"},
    ("cache", "keep"): {"process.backup.input_nocache": "true"},
    ("commit", "twice"): {"process.database.method": '"fdatasync"'},
    ("dirty", "stall"): {
        "machine.vm.dirty_limit": '"4 MiB"',
        "machine.vm.dirty_background_limit": '"1 MiB"',
    },
    ("raid", "level"): {"machine.array.md0.level": '"raid10"'},
    ("swap", "work"): {"machine.memory": '"176 MiB"'},
    ("crash", "fastest"): {f"{QUEUE}.dirsync": "false"},
    ("util", "enough"): {"process.reader.count": "10"},
    ("iostat", "p95"): {"machine.disk.sda.profile": '"sas-15k"', "machine.cpus": "4"},
    ("quota", "p95"): {'machine.cgroup."pods/web".cpu_burst': '"100 ms"'},
}

# What a server of lab `sick` has without its fault.
HEALTHY = {
    "machine.cgroup.cache.memory": '"1 GiB"',
    "machine.cgroup.database.cpu_quota": '"1 s"',
    "machine.cpufreq.governor": '"performance"',
    "machine.cpus": "2",
    "machine.disk.sda.profile": '"sas-10k"',
    "machine.disk.sda.scheduler": '"deadline"',
    "machine.disk.sda.throttle.riops": '"1000 /s"',
    "machine.disk.sda.write_cache": "true",
    "machine.guest.neighbours": "0",
    "machine.memory": '"4 GiB"',
    "process.batch.count": "0",
    "process.scan.count": "0",
}

# And what somebody would set who believes what the lab is about.
DECOYS = {
    "arm": {"depth": {"process.reader.count": "64", "machine.cpus": "16"}},
    "cache": {"keep": {"machine.memory": '"320 MiB"', "process.backup.nice": "19"}},
    "commit": {"twice": {"process.database.group": "true", "machine.cpus": "16"}},
    "dirty": {"stall": {"machine.memory": '"8 GiB"', "machine.disk.sdb.scheduler": '"deadline"'}},
    "crash": {
        "fastest": {
            f"{QUEUE}.data": '"journal"',
            f"{QUEUE}.dirsync": "false",
            "process.sendmail.super_safe": "false",
            "process.sendmail.requires_dir_fsync": "false",
        }
    },
    "iostat": {"p95": {"machine.memory": '"16 GiB"', "machine.disk.sda.scheduler": '"deadline"'}},
    "quota": {"p95": {"process.batch.nice": "19", "machine.cgroup.pods.cpu_weight": "10000"}},
    "raid": {"level": {"machine.array.md0.chunk": '"512 KiB"', "machine.memory": '"16 GiB"'}},
    "sick": {"heal": {"machine.vm.swappiness": "60", "machine.disk.sda.queue.nr_requests": "128"}},
    "swap": {"work": {"machine.vm.swappiness": "0", "machine.cpus": "16"}},
    "util": {"enough": {"process.reader.count": "64", "machine.cpus": "64"}},
}


def right_answers(name, seed, laboratory):
    """Return the figures that a lab asks for, with their units; they are worked out here again."""
    lab = open_lab(name).drawn(seed)
    found = {}
    for task in lab.tasks:
        if isinstance(task, Number):
            scenario = lab.read(seed, task.change)
            seeds = range(seed, seed + task.runs)
            runs = asked_of(task, scenario, seeds, laboratory)
            unit = task.units(scenario)[task.figure]
            found[task.name] = fmean(run[task.figure] for run in runs), unit
    return found


def right_names(name, seed):
    """Return the words that the seed drew, by the task that asks for them."""
    lab = open_lab(name).drawn(seed)
    asked = [(one, lab.sick[one.server][0]) for one in lab.tasks if isinstance(one, Name)]
    return {one.name: wrong.resource if one.of == RESOURCE else wrong.name for one, wrong in asked}


def asked_of(task, scenario, seeds, laboratory):
    """Return the figures among which a task asks for one: of runs, or of power cuts."""
    cuts_ns = tuple(int(parse_quantity(one, "time_ns")) for one in task.cuts)
    return [
        task.figures(run)
        for run in laboratory.run([trial_of(scenario, one, cuts_ns=cuts_ns) for one in seeds])
    ]


def filled(folder, name, seed, answers, designs=None, *, student="", text=None):
    """Write a sheet with answers in its blanks; return it, read again."""
    text = sheet_text(name, seed, student) if text is None else text
    for task, answer in answers.items():
        assert f'\n{task} = ""\n' in text
        text = text.replace(f'\n{task} = ""\n', f'\n{task} = "{answer}"\n')
    for task, values in (designs or {}).items():
        lines = "".join(f"{path} = {value}\n" for path, value in values.items())
        text = text.replace(f"[design.{task}]\n", f"[design.{task}]\n{lines}")
    path = folder / f"{name}-{student or seed}.toml"
    path.write_text(text)
    return read_sheet(path)


def designs_of(name, seed):
    """Return a good design for each task of a lab that wants one."""
    lab = open_lab(name).drawn(seed)
    found = {task: values for (of, task), values in DESIGNS.items() if of == name}
    for task in lab.tasks:
        if isinstance(task, Design) and task.as_healthy:
            paths = [text.split("=")[0] for text in lab.sick[task.server][0].settings]
            found[task.name] = {path: HEALTHY[path] for path in paths if path in task.allow}
    return found
