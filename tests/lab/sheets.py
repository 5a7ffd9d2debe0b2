"""Sheets that are filled in as a student would, and what is right in them."""

from statistics import fmean

from sim.lab.labs import DESIGN, PREDICT, open_lab
from sim.lab.marking import PREDICT_RUNS
from sim.lab.sheet import read_sheet, sheet_text
from sim.study.metrics import units_of
from sim.study.trial import trial_of

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
    ("util", "enough"): {"process.reader.count": "10"},
    ("iostat", "p95"): {"machine.disk.sda.profile": '"sas-15k"', "machine.cpus": "4"},
    ("quota", "p95"): {'machine.cgroup."pods/web".cpu_burst': '"100 ms"'},
}

# And what somebody would set who believes what the lab is about.
DECOYS = {
    "arm": {"depth": {"process.reader.count": "64", "machine.cpus": "16"}},
    "cache": {"keep": {"machine.memory": '"320 MiB"', "process.backup.nice": "19"}},
    "commit": {"twice": {"process.database.group": "true", "machine.cpus": "16"}},
    "dirty": {"stall": {"machine.memory": '"8 GiB"', "machine.disk.sdb.scheduler": '"deadline"'}},
    "iostat": {"p95": {"machine.memory": '"16 GiB"', "machine.disk.sda.scheduler": '"deadline"'}},
    "quota": {"p95": {"process.batch.nice": "19", "machine.cgroup.pods.cpu_weight": "10000"}},
    "raid": {"level": {"machine.array.md0.chunk": '"512 KiB"', "machine.memory": '"16 GiB"'}},
    "swap": {"work": {"machine.vm.swappiness": "0", "machine.cpus": "16"}},
    "util": {"enough": {"process.reader.count": "64", "machine.cpus": "64"}},
}


def right_answers(name, seed, laboratory):
    """Return the figures that a lab asks for, with their units; they are worked out here again."""
    lab = open_lab(name).drawn(seed)
    found = {}
    for task in lab.tasks:
        if task.kind != DESIGN:
            scenario = lab.read(seed, task.change)
            seeds = range(seed, seed + (PREDICT_RUNS if task.kind == PREDICT else 1))
            runs = laboratory.figures([trial_of(scenario, one) for one in seeds])
            value = fmean(run[task.figure] for run in runs)
            found[task.name] = value, units_of(scenario.measure)[task.figure]
    return found


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


def designs_of(name):
    """Return a good design for each task of a lab that wants one."""
    return {task: values for (lab, task), values in DESIGNS.items() if lab == name}
