# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 6. The page cache and its dirty pages
#
# *75 minutes. You need to know what the page cache is, and what `fsync` does.*
#
# ## The question
#
# Somebody copies a film of 2 GB to a slow USB stick. The copy begins at hundreds of megabytes a
# second, slows down, and is "done". Yet the stick may not be pulled out for minutes. Meanwhile an
# editor stands still each time it saves a small file, and it saves to the **fast** disk.
#
# **How long does the copy seem to take? How long does it take? And why does a writer of one disk
# wait for another?**

# %%
from sim.lesson import check, plot, recording, run, table, tool

# %% [markdown]
# ## The recording
#
# Of the stick nothing was recorded. It is an example: a stick that takes 8 MB/s, as many do, on a
# desktop with 2 GiB of memory and Linux 2.6.18. Of the second server in this lesson, an
# administrator left words and no figures.

# %%
told = recording("nfs-backup", "dataset.toml")
print("\n".join(line for line in told.splitlines() if line.startswith(("title", "login"))))

# %% [markdown]
# The rest is known from the kernel's sources, and you need four things of them.
#
# - `write()` copies into the page cache and returns. Such a page is **dirty**. While it is on its
#   way to the device it is **under writeback**. Then it is clean.
# - Above a **background threshold**, kernel threads begin to write. In 2.6.18 it is 10 % of memory
#   (`dirty_background_ratio`).
# - Above a **limit**, a task that dirties pages is held back. In 2.6.18 it is 40 % of memory
#   (`dirty_ratio`). Dirty pages and those under writeback count together.
# - A held back task of 2.6.18 writes up to 6 MiB itself, of what is dirty on the device of its own
#   file. What it writes goes into the device's queue, and when that is full it waits.
#
# ## The estimate by hand
#
# The copy is `dd bs=1M count=2000`. Let S be the film's size, r the stick's rate, D the limit. The
# copy fills the memory up to the limit at memory's pace. From there on it is as fast as the stick.
# `dd` ends when all but D is written: after (S - D) / r.

# %%
film_mb = 2000 * 1.048576  # dd's blocks are MiB
stick_mb_per_s = 8
gib_mb = 1073.7


def limit_mb(memory_gib: float) -> float:
    """Return how much may be dirty."""
    return 0.4 * memory_gib * gib_mb


def copy_s(memory_gib: float) -> float:
    """Return how long dd runs; what goes into memory takes hardly any time."""
    return max(film_mb - limit_mb(memory_gib), 0) / stick_mb_per_s


print(f"film: {film_mb:.0f} MB, limit: {limit_mb(2):.0f} MB; dd runs for {copy_s(2):.0f} s")

# %% [markdown]
# Is it so? The run must be longer than the scenario's, so that `dd` gets to its end.

# %%
WHOLE = {"run.duration": "300 s"}


def dd_s(what_if: str | None = None, **changes: object) -> float:
    """Return how long the simulated dd ran; memory="4 GiB", fsync=True and so on change it."""
    paths = {"memory": "machine.memory", "fsync": "process.copy.fsync"}
    paths |= {"limit": "machine.vm.dirty_limit", "background": "machine.vm.dirty_background_limit"}
    changed = {**WHOLE, **{paths[name]: value for name, value in changes.items()}}
    [(_, ns)] = run("usb-stick", what_if, set=changed).marks("dd_ns")
    return ns / 1e9


base_s = dd_s()
print(f"dd runs for {base_s:.0f} s, and says that it copied {film_mb / base_s:.1f} MB/s")
assert 1 < base_s / copy_s(2) < 1.05 and film_mb / base_s > 1.5 * stick_mb_per_s
tool("cat /proc/meminfo", "usb-stick", at="60 s")

# %% [markdown]
# `dd` says 13 MB/s of a stick that takes 8. The rest of the film is in the memory. Look at `Dirty`
# and `Writeback`: together they are at the limit, and stay there for as long as `dd` runs.
#
# ## Your prediction
#
# The desktop gets 4 GiB of memory instead of 2 GiB. The stick is the same. How long does `dd` run?

# %%
prediction = None  # seconds
check("6.0", prediction, "s")

# %% [markdown]
# ## The simulation

# %%
sizes = (1, 2, 4, 6)
simulated = [(size, dd_s(memory=f"{size} GiB")) for size in sizes]
for size, seconds in simulated:
    print(f"{size} GiB: dd {seconds:5.1f} s; by hand {copy_s(size):5.1f} s")
    assert 0 < seconds - copy_s(size) < 8
plot(
    {"by hand": [(size, copy_s(size)) for size in sizes], "simulated": simulated},
    x="memory in GiB",
    y="s",
)

# %% [markdown]
# Twice the memory makes `dd` three times as fast, and three times the memory makes the stick
# vanish. Nothing about the stick has changed. Only the moment at which `dd` stops looking has.
#
# What we left out by hand is a few seconds everywhere. Memory has a speed too. And each request to
# the stick costs a millisecond more.
#
# ### Who else is held back?
#
# Four programs on this desktop save 16 KiB about ten times a second each, to the fast disk. How
# long does a save take, at most? The other rows are one change each.

# %%
what_ifs = ["small_limits", "kernel_2_6_32", "kernel_3_2"]
saves = table("usb-stick", what_ifs=what_ifs, of=["transaction_p95_ms", "transaction_max_ms"])
print(saves)
slow = [ns / 1e9 for _, ns in run("usb-stick").marks("transaction_ns") if ns > 1e8]
print(f"Linux 2.6.18: {len(slow)} saves took more than 0.1 s, {sum(slow):.0f} s in all")

# %%
longest_ms = saves.column("transaction_max_ms")
usual_ms = saves.column("transaction_p95_ms")
assert usual_ms[0] < 2 and usual_ms[1] > 10 * usual_ms[0]
assert longest_ms[0] > 800 and longest_ms[1] > 800 and max(longest_ms[2:]) < 20
assert len(slow) > 50 and run("usb-stick")["disk.sda.util_pct"] < 5

# %% [markdown]
# Nineteen of twenty saves take a millisecond, and some take a second. The fast disk is nearly idle.
# Three sentences explain it.
#
# 1. Linux 2.6.18 counts the dirty pages **of all devices together**. The copy keeps that number at
#    the limit.
# 2. Whoever dirties a page looks at the limit now and then. An editor that looks while the number
#    is above it is held back, whatever it writes to.
# 3. The editor would have to write what is dirty on **its** disk, and there is next to nothing. So
#    it waits until the number falls below the limit. The stick decides when that is. And the copy
#    takes the free room as soon as there is some.
#
# Smaller limits do not help the editors. The number is at the limit sooner, and for longer, so more
# saves wait.
#
# Newer kernels tell the writers apart. From 2.6.24 on each device has its share of the limit, by
# what it wrote lately, and a task that dirties most meets a lower limit than others. From 3.2 on a
# task that is held back no longer writes. It **pauses**, for as long as its pages take at its share
# of its device's rate.
#
# ### The pause
#
# In Linux 3.2 the background threshold is 10 % and the limit 20 %, of free memory and page cache.
# Below the middle of both, 15 %, nobody is held back. Above it the kernel steers the number towards
# the middle of 15 % and 20 %. So `dd` ends when about 17.5 % are still dirty.

# %%
setpoint_mb = 0.175 * (2 * gib_mb - 100)  # 100 MB are the kernel's own
paced_s = (film_mb - setpoint_mb) / stick_mb_per_s
new_s = dd_s("kernel_3_2")
print(f"Linux 3.2: dd runs for {new_s:.0f} s; by hand {paced_s:.0f} s")
assert 1 < new_s / paced_s < 1.06

# %% [markdown]
# ### A backup to another host
#
# NFS has a page cache as well. A database server with Linux 2.6.18 dumps 12 GiB to a filer that
# writes 20 MB/s. Let it have 4 GiB of memory. The dump begins 5 s after the start, and somebody
# logs in once a second. A log-in needs 60 ms, and writes three small records to the local disk.
#
# When does the first log-in wait? The limit is 40 % of 4096 MiB. How fast the dump is read says
# `iostat`.

# %%
BACKUP = {"machine.memory": "4 GiB", "process.sshd.rate": "1 /s", "process.backup.start": "5 s"}
BACKUP |= {"run.duration": "60 s"}
database = run("nfs-backup", set=BACKUP)
tool("iostat -x -m sdb 5 3", database, at="5 s")

# %% [markdown]
# The filer takes 19 MiB of that each second. But a page that the filer has received is not yet
# safe. The filer may keep it in its own memory until the client sends a COMMIT. Until the answer to
# that, the page counts as dirty, as `NFS_Unstable`. So the truth lies between two figures: nothing
# has been committed, or all that was written.

# %%
read_mib_per_s, filer_mib_per_s = 102, 19
none_s = 0.4 * 4096 / read_mib_per_s
all_s = 0.4 * 4096 / (read_mib_per_s - filer_mib_per_s)
logins = database.marks("login_ns")
first_s = min(end - ns / 1e9 for end, ns in logins if ns > 5e8) - 5
print(f"full after {none_s:.0f} to {all_s:.0f} s by hand; first log-in that waits: {first_s:.0f} s")
assert 0.9 * none_s < first_s < 1.1 * all_s

# %%
columns = ["login_duration_s", "login_duration_p95_s", "transaction_ms"]
what_ifs = ["small_limits", "limited_rate", "kernel_2_6_32"]
helped = table("nfs-backup", what_ifs=what_ifs, of=columns, set=BACKUP)
print(helped)
p95_s = helped.column("login_duration_p95_s")
assert p95_s[0] > 15 and 1 < p95_s[1] < p95_s[0] / 2 and max(p95_s[2:]) < 0.2

# %% [markdown]
# It is the same fault with another slow device. Three remedies, three ways.
#
# - **Smaller limits** shorten each wait, as less must be written before somebody may go on. The
#   waits begin sooner, and go on for as long as the dump does.
# - **A limited rate** (`pv -L 15m`), below the filer's, never comes to the limit at all.
# - **A newer kernel** holds back the dump, and nobody else.
#
# The administrator names the first two: with either, the server "stays usable".
#
# ## Three exercises
#
# **6.1** The desktop with 2 GiB and Linux 2.6.18. `dd` has ended. How long is it from there until
# the whole film is on the stick?

# %%
answer = None  # seconds
check("6.1", answer, "s")

# %% [markdown]
# **6.2** The desktop with Linux 3.2. You may set `dirty_bytes`, and `dirty_background_bytes` to
# half of it. When `dd` has ended, the film shall be on the stick 10 s later. How large may
# `dirty_bytes` be?

# %%
answer = None  # MB
check("6.2", answer, "MB")

# %% [markdown]
# **6.3** The database server gets 8 GiB of memory, and the dump is the same. How many seconds after
# the dump began does the first log-in have to wait?

# %%
answer = None  # seconds
check("6.3", answer, "s")

# %% [markdown]
# ## What the model leaves out
#
# - **Everything here is assumed**: the stick, the filer, how often somebody saves. The lesson shows
#   how it comes about, and no figure of a real server.
# - **Of 2.6.24 to 3.1 the model has the lower limit** of the task that dirties most. It does not
#   have each device's own limit. Both let the editors through.
# - **Real sticks are not steady.** They erase large blocks now and then, and stand still for
#   seconds.
# - **Real filers have other clients**, and a disk with an arm. This one has memory and a rate.
# - **Programs have hardly any memory here.** Where they have mapped more than a fifth of it, 2.6.18
#   lowers the limit, to half of what they leave.

# %% [markdown] tags=["solution"]
# ## Solutions
#
# **The prediction.** The limit doubles, so 859 MB more fit into memory. What is left for `dd` to
# wait for is 379 MB instead of 1238 MB.

# %% tags=["solution"]
assert check("6.0", copy_s(4), "s")

# %% [markdown] tags=["solution"]
# **6.1** What is left is what may be dirty, D. With `conv=fsync` `dd` waits for it, and prints a
# true rate.

# %% tags=["solution"]
left_s = limit_mb(2) / stick_mb_per_s
honest_s = dd_s(fsync=True)
print(f"by hand {left_s:.0f} s; with conv=fsync dd says {film_mb / honest_s:.1f} MB/s")
assert film_mb / honest_s < stick_mb_per_s
assert check("6.1", left_s, "s")

# %% [markdown] tags=["solution"]
# **6.2** 80 MB may be left. They are the middle of three quarters of the limit and the limit, so
# 7/8 of it. The simulation needs a little less than 10 s.

# %% tags=["solution"]
dirty_mb = 10 * stick_mb_per_s / (7 / 8)
limits = {"limit": f"{dirty_mb:.0f} MB", "background": f"{dirty_mb / 2:.0f} MB"}
left_s = dd_s("kernel_3_2", fsync=True, **limits) - dd_s("kernel_3_2", **limits)
print(f"dirty_bytes {dirty_mb:.0f} MB: {left_s:.1f} s are left")
assert 8.5 < left_s < 10.5
assert check("6.2", dirty_mb, "MB")

# %% [markdown] tags=["solution"]
# **6.3** The limit doubles, and all rates stay. So both figures double, and their middle is their
# old sum. Whoever buys memory against this fault buys some seconds.

# %% tags=["solution"]
assert check("6.3", none_s + all_s, "s")
