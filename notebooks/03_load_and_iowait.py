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
# # 3. Load average and iowait
#
# *60 minutes. You need lesson 1.*
#
# ## The question
#
# Two numbers are looked at first when a server is slow: the load average, and `%iowait`. In the
# mail storm of lesson 1 the one stood at 37 and the other at 22 %. **What does each of them count?
# Why does one say "crowded" and the other "nearly idle", at the same moment?**

# %%
from sim.lesson import check, plot, recording, run, table, tool

# %% [markdown]
# ## The recording

# %%
for report in recording("sendmail", "iostat.txt").split("Time: ")[1:]:
    lines = report.splitlines()
    [disk] = [line for line in lines if line.startswith("sdb")]
    print(lines[1], lines[2], f"sdb: {disk.split()[-1]} % busy", sep="\n")

# %% [markdown]
# Three reports, three levels of load. Divide `%iowait` by the `%util` of the disk in each of them.

# %%
for iowait_pct, util_pct in ((21.74, 98.96), (19.98, 90.16), (10.83, 48.32)):
    print(f"{iowait_pct / util_pct:.3f}")
    assert abs(iowait_pct / util_pct - 0.22) < 0.005

# %% [markdown]
# The ratio is always the same, a little less than a quarter. Keep that in mind.
#
# ## The estimate by hand
#
# **iowait is idle time.** A CPU that has nothing to run is idle. If a task that sleeps inside an
# I/O went to sleep on this CPU, the kernel books the time as iowait instead. So two rules hold. A
# CPU that works shows no iowait, however many tasks wait. And each waiting task turns the idle time
# of at most one CPU into iowait.
#
# With one waiter on four CPUs, `%iowait` is a quarter of the time in which the disk is busy, less
# the share in which that CPU has other work. This is the constant ratio.

# %%
busy_pct = 5.92 + 5.36
ratio_by_hand = 1 / 4 * (1 - busy_pct / 100)
print(f"iowait / util by hand: {ratio_by_hand:.3f}")
assert abs(ratio_by_hand - 0.22) < 0.005

# %% [markdown]
# **The load average counts tasks.** Every five seconds the kernel counts the tasks that run, wait
# for a CPU, or sleep in state D (uninterruptibly). State D is not only I/O. A task that waits for a
# mutex in the kernel is in state D as well, and iowait does not count it.
#
# The load average is then an average with a memory of one minute. If `n` tasks are there from a
# moment on, it climbs towards `n` like this:
#
#     load(t) = n (1 - exp(-t / 60 s))
#
# Let us make the storm short: 600 messages at 10.7 a second last about a minute. Some 37 tasks run
# or wait at any time of it.

# %%
e = 2.718281828
for seconds in (15, 30, 60, 120, 190):
    print(f"after {seconds:3} s: {37 * (1 - e ** (-seconds / 60)):5.1f}")

# %% [markdown]
# ## Your prediction
#
# How high does the load average climb in a storm of one minute?

# %%
prediction = None  # tasks
check("3.0", prediction, "tasks")

# %% [markdown]
# ## The simulation

# %%
SHORT = {"process.blast.messages": 600}
storm = run("sendmail", set=SHORT)
for name in ("duration_s", "load1_peak", "tasks_d", "tasks_iowait", "cpu.iowait_of_util"):
    print(f"{name:20} {storm[name]!s:>12}")

# %%
by_hand = storm["tasks_d"] * (1 - e ** (-storm["duration_s"] / 60))
print(f"load average by hand: {by_hand:.1f}, simulated: {storm['load1_peak']}")
assert abs(by_hand / storm["load1_peak"] - 1) < 0.15
assert abs(storm["cpu.iowait_of_util"] - ratio_by_hand) < 0.01

# %%
plot(storm)

# %% [markdown]
# The load average still climbs when the storm is over. It never reached the number of tasks. In the
# long storm of lesson 1 it had three minutes, and came near.
#
# And on other machines? The same storm with another number of CPUs changes nearly nothing but
# `%iowait`.

# %%
columns = ["tasks_d", "load1_peak", "cpu.iowait_pct", "cpu.idle_pct", "disk.sdb.util_pct"]
cpus = (2, 4, 8)
rows = table("sendmail", "machine.cpus", cpus, of=columns, set=SHORT)
print(rows)
for number, row in zip(cpus, rows, strict=True):
    assert abs(row["cpu.iowait_pct"] * number / 80 - 1) < 0.1
    assert abs(row["tasks_d"] / 37 - 1) < 0.1

# %% [markdown]
# Whoever has an alarm at 30 % of iowait is woken on the small server, and sleeps on the large one.
# The disk is as busy on both, and as many tasks wait. Look at the disk itself for the disk, and at
# the tasks for the tasks: `top` shows the state of each.

# %%
tool("top -b -n 1", storm, at="1 min")

# %% [markdown]
# ## Three exercises
#
# **3.1** The load average is highest 85 s after boot. What does `uptime` show a minute later?

# %%
answer = None  # tasks
check("3.1", answer, "tasks")

# %% [markdown]
# **3.2** The same storm on a server with **one** CPU. It accepts fewer messages, and so its CPU
# works for 35 % of the time. What is `%iowait`?

# %%
answer = None  # %
check("3.2", answer, "%")

# %% [markdown]
# **3.3** Another server, `generic`, has two CPUs and a disk with several waiters. Here are its
# figures. Now its transactions compute three times as long, and read from the disk as often as
# before. The CPUs work for 78.5 % of the time then. What does `%iowait` become?

# %%
server = run("generic")
for name in ("cpu.user_pct", "cpu.system_pct", "cpu.iowait_pct", "cpu.idle_pct"):
    print(f"{name:18} {server[name]!s:>10}")
answer = None  # %
check("3.3", answer, "%")

# %% [markdown]
# ## What the model leaves out
#
# - **Kernels differ.** On this kernel a task that sleeps for the journal is not inside an I/O.
#   Later kernels count some of these waits as iowait.
# - **The normal mail** of the day goes on after the storm. It keeps the load average from falling
#   to zero.
# - **Virtual machines.** Time that a host takes away is `%steal`. It is neither idle nor iowait.
# - **Newer figures.** `/proc/pressure/io` says for how long tasks were held up. It does not depend
#   on the number of CPUs. This kernel is too old to have it.

# %% [markdown] tags=["solution"]
# ## Solutions
#
# **The prediction.** The number of tasks in state D, and a storm as long as the memory of the
# average.

# %% tags=["solution"]
assert check("3.0", 37 * (1 - 1 / e), "tasks")

# %% [markdown] tags=["solution"]
# **3.1** After one time constant `1 / e` is left. The few tasks of the normal mail hardly matter.

# %% tags=["solution"]
tool("uptime", storm, at="145 s")
assert check("3.1", storm["load1_peak"] / e, "tasks")

# %% [markdown] tags=["solution"]
# **3.2** There is nearly always a waiter. So whatever time the CPU does not work is iowait.

# %% tags=["solution"]
one = run("sendmail", set={**SHORT, "machine.cpus": 1})
works_pct = one["cpu.user_pct"] + one["cpu.system_pct"]
idle = one["cpu.idle_pct"]
print(f"the CPU works for {works_pct:.1f} %, and is idle without a waiter for {idle}")
assert abs(works_pct - 35) < 1 and idle < 5
assert check("3.2", 100 - 35, "%")

# %% [markdown] tags=["solution"]
# **3.3** The share of idle time in which somebody waits stays about the same. There is only less
# idle time. So `%iowait` falls although each transaction waits for the disk as before. It is no
# measure of waiting.

# %% tags=["solution"]
share = server["cpu.iowait_pct"] / (server["cpu.iowait_pct"] + server["cpu.idle_pct"])
busier = run("generic", set={"process.server.user": "30 ms"})
assert abs(busier["cpu.user_pct"] + busier["cpu.system_pct"] - 78.5) < 0.5
assert busier["disk.sda.util_pct"] >= server["disk.sda.util_pct"]
assert check("3.3", share * (100 - 78.5), "%")
