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
# # 2. Reading iostat
#
# *60 minutes. You need lesson 1, or to have seen the output of iostat.*
#
# ## The question
#
# A disk is at 100 % of its time busy. Somebody says: "The disk is full. We need a faster one."
# Somebody else points at another column: "But there is less than one request at it." **Who is
# right? Which columns of iostat are measured, and which are only computed from others?**

# %%
from sim.lesson import ARM, FLASH, check, plot, recording, run, table, tool

# %% [markdown]
# ## The recording
#
# Here are two lines of the mail storm of lesson 1: the disk `sdb`, and the volume `dm-6` on it.

# %%
first = recording("sendmail", "iostat.txt").split("\n\nTime")[0].splitlines()
print("\n".join(line for line in first if line.startswith(("Device", "sdb", "dm-6"))))

# %% [markdown]
# The kernel keeps a few counters for each disk. iostat reads them twice and subtracts. Four figures
# come straight from counters:
#
# - `r/s` and `w/s` count requests that were **completed**.
# - `await` is the mean time of a request, from its arrival in the block layer to its completion.
# - `avgqu-sz` (`aqu-sz` today) is the mean number of requests that are under way.
# - `%util` is the share of time in which at least one request is under way.
#
# ## The estimate by hand
#
# **Little's law** ties three of them together. In any system where what goes in comes out, the mean
# number inside is the rate of arrivals times the mean time inside: `N = X W`. Try it on both lines.

# %%
recorded = (("sdb", 181.4, 25.35, 4.62), ("dm-6", 975.0, 21.39, 20.93))
for name, rate_per_s, await_ms, queue in recorded:
    little = rate_per_s * await_ms / 1000
    print(f"{name:5} {rate_per_s} /s x {await_ms} ms = {little:.2f} requests; iostat: {queue}")
    assert abs(little / queue - 1) < 0.02

# %% [markdown]
# The law holds, as it must. So `avgqu-sz` tells nothing that the other two do not. And `svctm`, the
# "service time"? iostat never sees a request being served. It divides the busy time by the number
# of requests.

# %%
svctm_by_hand_ms = 98.96 / 100 * 1000 / 181.4
print(f"busy time per request: {svctm_by_hand_ms:.2f} ms; iostat's svctm: 5.46 ms")
assert abs(svctm_by_hand_ms / 5.46 - 1) < 0.01

# %% [markdown]
# This is the time a request takes only if the disk serves **one request at a time**. A disk with
# one arm does. A flash drive does not. Let us put one reader on an NVMe drive: it reads 4 KiB at a
# random place, computes for a moment, and reads again. The drive alone needs some 90 microseconds
# for it.

# %%
alone = run("generic", set={**FLASH, "process.server.concurrency": 1})
for name in ("r_per_s", "await_ms", "avgqu_sz", "util_pct", "svctm_ms"):
    print(f"{name:10} {alone[f'disk.sda.{name}']!s:>12}")
assert alone["disk.sda.util_pct"] > 99 and alone["disk.sda.avgqu_sz"] < 1

# %% [markdown]
# There it is: 100 % busy, and less than one request under way. A single reader cannot fill any
# drive: while it computes, it asks for nothing.
#
# ## Your prediction
#
# Now **four** such readers work side by side. `%util` cannot rise any more. How many reads a second
# will the drive complete? Type a number before you run the cell.

# %%
prediction = None  # reads a second
check("2.0", prediction, "/s")

# %% [markdown]
# ## The simulation

# %%
columns = ["disk.sda.r_per_s", "disk.sda.await_ms", "disk.sda.avgqu_sz", "disk.sda.util_pct"]
columns.append("disk.sda.svctm_ms")
rows = table("generic", "process.server.concurrency", [1, 2, 4], of=columns, set=FLASH)
print(rows)

# %%
reads = rows.column("disk.sda.r_per_s")
assert abs(reads[2] / (4 * reads[0]) - 1) < 0.05
assert min(rows.column("disk.sda.util_pct")) > 99
await_ms, svctm_ms = rows.column("disk.sda.await_ms"), rows.column("disk.sda.svctm_ms")
assert abs(await_ms[2] / await_ms[0] - 1) < 0.05 and svctm_ms[2] < svctm_ms[0] / 3.5
plot({"simulated": list(zip((1, 2, 4), reads, strict=True))}, x="readers", y="reads a second")

# %% [markdown]
# Four readers get four times as much, and none of them waits longer. A drive with many channels is
# not full when it is never idle. `svctm` fell to a quarter although nothing became faster. That is
# why it was removed from iostat: it is a quotient, and no time of anything.
#
# Why is `%util` at 100 % with a single reader, who leaves the drive alone for a third of the time?
# Since Linux 5.0 the kernel counts more coarsely. It no longer looks at every moment. When a
# request **begins** in a tick of the clock in which none was counted yet, it counts the whole tick,
# here 4 ms, as busy.
#
# Let us look at a drive with little to do: 100 reads a second that come by chance, 90 microseconds
# each. It is busy for less than one per cent of the time. In how many ticks does a read begin? If
# reads come by chance, a tick of length T stays without one with probability `exp(-rate T)`.

# %%
e, tick_s = 2.718281828, 0.004
hit_pct = 100 * (1 - e ** (-100 * tick_s))
slowly = {
    **FLASH,
    "process.server.arrivals": "open",
    "process.server.rate": "100 /s",
    "process.server.warm_up": "1 s",
    "run.duration": "11 s",
    "measure.interval": "5 s",
}
new = run("generic", set=slowly)
old = run("generic", set={**slowly, "machine.kernel": "4.18"})
print(f"%util on Linux 4.18: {old['disk.sda.util_pct']}")
print(f"%util on Linux 5.15: {new['disk.sda.util_pct']}; by hand: {hit_pct:.1f} %")
assert old["disk.sda.util_pct"] < 1
assert abs(new["disk.sda.util_pct"] / hit_pct - 1) < 0.05

# %% [markdown]
# The same drive, the same reads: under one per cent or a third, as the kernel counts. The columns
# that survive are the rate, `await`, and their product.

# %%
tool("iostat -dx 5 2", new, at="5 s")

# %% [markdown]
# ## Three exercises
#
# **2.1** Little's law does not care what is inside the box. The server below works for 60 customers
# a second with sixteen threads. How many of these threads have a transaction, on average?

# %%
server = run("generic", set={"process.server.rate": "60 /s"})
for name in ("transactions_per_s", "transaction_ms", "disk.sda.avgqu_sz"):
    print(f"{name:20} {server[name]!s:>12}")
answer = None  # threads
check("2.1", answer)

# %% [markdown]
# **2.2** The flash drive gets 250 reads a second by chance, on Linux 5.15. What will `%util` be?

# %%
answer = None  # %
check("2.2", answer, "%")

# %% [markdown]
# **2.3** Sixteen readers work on a 15K disk, and hardly compute between two reads. Here is how many
# reads a second it completes. What is `await`? (Work it out before you look at other columns.)

# %%
disk = run("generic", set={**ARM, "process.server.concurrency": 16})
print(disk["disk.sda.r_per_s"])
answer = None  # ms
check("2.3", answer, "ms")

# %% [markdown]
# ## What the model leaves out
#
# - **The drive is simple.** Each read of this flash drive takes nearly the same time. A real one
#   has slow reads behind writes and erasures, which `await` hides in a mean.
# - **The caches of the drive.** All reads here are at random places in a table much larger than
#   memory.
# - **Interrupts and polling.** At a million reads a second the CPU is the limit, and not the drive.
# - **Chance.** Each figure is one run with one seed. The errors of a few per cent are partly
#   chance.

# %% [markdown] tags=["solution"]
# ## Solutions
#
# **The prediction.** One reader has a read under way for two thirds of its time, and the drive can
# work on many at once. So each further reader adds what the first one got.

# %% tags=["solution"]
assert 0.6 < alone["disk.sda.avgqu_sz"] < 0.7
assert check("2.0", 4 * alone["disk.sda.r_per_s"], "/s")

# %% [markdown] tags=["solution"]
# **2.1** The rate of transactions times the time of one. Fewer than half of these transactions are
# at the disk.

# %% tags=["solution"]
inside = server["transactions_per_s"] * server["transaction_ms"] / 1000
print(f"{inside:.2f} in the server, {server['disk.sda.avgqu_sz']} of them at the disk")
assert server["disk.sda.avgqu_sz"] < inside / 2
assert check("2.1", inside)

# %% [markdown] tags=["solution"]
# **2.2** There are 250 ticks a second, and 250 reads. They do not fall into one tick each: some
# ticks get several, and a share of `exp(-1)` gets none.

# %% tags=["solution"]
assert check("2.2", 100 * (1 - e ** (-250 * tick_s)), "%")

# %% [markdown] tags=["solution"]
# **2.3** Little's law, the other way round: `W = N / X`. The disk is not slow. Each request waits
# for the fifteen others.

# %% tags=["solution"]
assert check("2.3", 1000 * 16 / disk["disk.sda.r_per_s"], "ms")
