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
# # 7. Working sets, swap, OOM
#
# *90 minutes. You need lesson 2.*
#
# ## The question
#
# A MySQL server of 4 GiB was killed by the kernel, because memory had run out. At that moment
# `free` showed more than a gigabyte of "cached" memory. **Why did the kernel not take the cache?**
#
# The usual advice is to add swap. Other administrators filled a server with swap on purpose. They
# asked when swapping begins, when it ends, and what `vm.swappiness` changes. **What does a page too
# many cost?**

# %%
from sim.lesson import SWAPPING, check, plot, recording, run, table, tool

# %% [markdown]
# ## The recording
#
# Of the first server only words are known. Of the second one only two sizes are.

# %%
print(recording("mysql-oom", "dataset.toml"))
print(recording("r3-swap", "dataset.toml"))

# %% [markdown]
# So all else is assumed here. The MySQL server grows by 30 MB/s towards 3000 MiB, as its buffer
# pool warms up. A report writes 1200 MiB of temporary tables to `/tmp`, which is a **tmpfs**: a
# file system that lies in memory alone. There is no swap.
#
# ## The estimate by hand
#
# A page of memory is 4 KiB. When the kernel runs short, it looks for pages that it can take. What
# has to happen first depends on what is in the page:
#
# | page | before it can be taken |
# | --- | --- |
# | of a file, unchanged | nothing: the disk has the same |
# | of a file, changed ("dirty") | it is written to its file |
# | a program's own ("anonymous") | it is written to swap |
# | of a tmpfs | it is written to swap |
#
# `Cached` counts the first two rows and the last one. So without swap a cached page of a tmpfs
# cannot go anywhere. Neither can any page of MySQL. When is memory full?
#
# The kernel itself has 96 MiB. It also keeps a reserve of 4 times the square root of the memory in
# KiB, again in KiB: 8 MiB here.

# %%
memory_mib = 4096
reserve_mib = 4 * (memory_mib * 1024) ** 0.5 / 1024
for_pages_mib = memory_mib - 96 - reserve_mib
growth_mib_s = 30e6 / 2**20
full_s = (for_pages_mib - 1200) / growth_mib_s
print(f"memory is full after {full_s:.1f} s")

# %%
server = run("mysql-oom")
print(f"killed after {server['oom_kill_s']}")
tool("free -m", server, at="95 s")
assert abs(full_s / server["oom_kill_s"] - 1) < 0.02

# %% [markdown]
# Three seconds before the end `free` seems to promise more than a gigabyte: "-/+ buffers/cache"
# adds the whole cache to what is free. That line is wrong by the size of the tmpfs. `/proc/meminfo`
# knows better. The pages of the tmpfs are `Shmem` there. They are on the lists of anonymous pages,
# beside those of MySQL. (From 3.14 on there is a line `MemAvailable`, which leaves them out.)

# %%
tool("cat /proc/meminfo", server, at="95 s")

# %% [markdown]
# MySQL was not refused any memory. It had been promised all of it at the beginning: Linux promises
# more than there is, and gives a page when it is first used. At that use it is too late to refuse.
# If nothing can be freed, the **OOM killer** ends the program with the worst score. To 2.6.35 that
# is mostly the size of its address space, later mostly its pages in memory and swap.
#
# What would have helped? Each row changes one thing.

# %%
what_ifs = ["tmpdir_on_disk", "twice_the_memory", "smaller_pool"]
helped = table("mysql-oom", what_ifs=what_ifs, of=["oom_kills", "mem_cached_bytes", "work_per_s"])
print(helped)
assert helped.column("oom_kills") == [1, 0, 0, 0]
assert abs(helped[1]["mem_cached_bytes"] / helped[0]["mem_cached_bytes"] - 1) < 0.1

# %% [markdown]
# With the temporary tables on the disk there is as much cache as before. But the same pages are now
# dirty pages of a file. They are written, and then they can be taken. With twice the memory, or a
# smaller pool, there is room for both.
#
# ### A page too many
#
# Now a server with swap. It is an r3.large as far as its SSD is concerned, but with 1000 MiB of
# memory, so that the simulation is short. The kernel has 50 MiB of these. A program takes some
# memory. Then it uses 2000 of its pages, chosen by chance, sleeps for 100 ms, and so on. As long as
# all its pages are in memory, that makes nearly 20,000 uses a second.
#
# A use of a page that has to be read from swap is a **major fault**. The program sleeps until the
# page is there. This kernel, Linux 3.13, always reads what is in the 8 neighbouring places of the
# swap area (`vm.page-cluster` is 3, and two to the power of three is 8). The SSD is taken to do
# 7500 reads a second, and to move 500 MB/s.

# %%
room_mib = 1000 - 50 - 4 * (1000 * 1024) ** 0.5 / 1024
ssd_s = 1 / 7500 + 8 * 4096 / 500e6
print(f"room for {room_mib:.0f} MiB of the program; a fault takes {1000 * ssd_s:.2f} ms")


def missing(size_mib: float) -> float:
    """Return the share of a program's pages that cannot be in memory."""
    return max(0.0, 1 - room_mib / size_mib)


def uses_per_s(size_mib: float, fault_s: float) -> float:
    """Return how many pages a program of a size uses in a second, if it chooses them by chance."""
    using_s = 2000 * (100e-9 + missing(size_mib) * fault_s)  # 100 ns: a cache miss
    return 2000 / (0.1 + using_s)


print(f"1000 MiB: {100 * missing(1000):.0f} % out, {uses_per_s(1000, ssd_s):.0f} uses a second")

# %% [markdown]
# The program is chosen so that it is easy to compute: no page is better than another one. So it
# does not matter which pages are out, and the kernel's choice cannot be wrong.
#
# ## Your prediction
#
# The program has 1100 MiB, a sixth more than the room. How many pages does it use in a second?

# %%
prediction = None  # uses a second
check("7.0", prediction, "/s")

# %% [markdown]
# ## The simulation

# %%
sizes = (800, 960, 1000, 1100)
by_hand = [(size, uses_per_s(size, ssd_s)) for size in sizes]
simulated = []
for size in sizes:
    crowded = run("r3-swap", set={**SWAPPING, "process.load.size": f"{size} MiB"})
    simulated.append((size, crowded.per_s("work_done", since="5 s")))
for (size, hand), (_, found) in zip(by_hand, simulated, strict=True):
    print(f"{size:4} MiB: {hand:5.0f} by hand, {found:5.0f} simulated")
    assert abs(hand / found - 1) < 0.1
plot({"by hand": by_hand, "simulated": simulated}, x="MiB", y="uses a second")

# %% [markdown]
# The program does 40 % less work because 14 % of its pages are out. A use in memory takes 100 ns,
# and a fault 2000 times as long. So even a small share of faults decides the mean. The **working
# set** of a program is what it uses within a while. Here it is the whole program, and it has to
# fit.
#
# How would an administrator see it?

# %%
tool("vmstat 5 3", crowded)
tool("iostat -x 5 3 xvdb", crowded)

# %% [markdown]
# The CPUs are idle for 80 % of the time, and the SSD is not full either. The sign is `si`: pages
# come back from swap all the time. `swpd` is no measure of what is missing. It is far more than
# what does not fit: a page that comes back, and is not changed, keeps its place in swap.

# %%
too_much_mib = 1100 - room_mib
print(f"too much: {too_much_mib:.0f} MiB; in swap: {crowded['swap_used_bytes'] / 2**20:.0f} MiB")
assert crowded["swap_used_bytes"] / 2**20 > 1.5 * too_much_mib
assert crowded["cpu.idle_pct"] > 70 and crowded["disk.xvdb.util_pct"] < 60

# %% [markdown]
# A later kernel, and swap in compressed memory:

# %%
for what_if in ("kernel_5_15", "zram"):
    other = run("r3-swap", what_if, set={**SWAPPING, "process.load.size": "1100 MiB"})
    per_s = other.per_s("work_done", since="5 s")
    print(f"{other.scenario.label}: {per_s:.0f} uses a second")
    print(f"    {other['major_faults_per_s']} faults, {other['swap_in_per_s']} read")
    assert per_s > simulated[-1][1]
assert per_s > 1.3 * simulated[-1][1]
assert other["major_faults_per_s"] > 1.5 * crowded["major_faults_per_s"]

# %% [markdown]
# From 3.14 on the number of pages adapts. If those that were read ahead are of no use, a single one
# is read. So a fault takes less time.
#
# **zram** is a swap device that compresses pages and keeps them in memory. It takes memory itself,
# so more pages are out, and there are more faults. But a fault takes a few microseconds of a CPU,
# and nobody waits for a device.
#
# ### When it begins, and when it ends
#
# Now the program grows by 100 MB/s. Beside it, `dd` reads a large file again and again, so that the
# page cache fills all memory that is free. After 14 s the program gives its memory back. When will
# there be the first figures below `so`? What would `vm.swappiness` change?

# %%
growing = {
    **SWAPPING,
    "process.reader.count": 1,
    "process.load.size": "1100 MiB",
    "process.load.growth": "100 MB/s",
    "process.load.uses": "5000 /s",
    "process.load.hold": "14 s",
    "run.duration": "18 s",
}
print(f"programs alone fill the room after {room_mib * 2**20 / 100e6:.1f} s")
out_per_s = []
for what_if in (None, "swappiness_0", "swappiness_100"):
    grown = run("r3-swap", what_if, set=growing)
    print(f"\n{grown.scenario.label}")
    tool("vmstat 2 10", grown)
    out_per_s.append(grown["swap_out_per_s"])
assert max(out_per_s) < 1.1 * min(out_per_s)

# %% [markdown]
# Memory is full in the fifth second, but nothing is swapped then. The cache shrinks instead, from
# 500 MB to nearly nothing. The file's pages were read once only, so they are on the *inactive*
# list. As long as that list is the longer one of the two lists of files, this kernel takes nothing
# else. Only when the cache is gone do pages go to swap, as late as if there had been no cache.
#
# `vm.swappiness` weighs programs' pages against those of files where it has a choice. Here it has
# none, so 0, 60 and 100 are alike. It moves what both sides use, and not what streams by.
#
# When the program gives its memory back, its places in swap are free at once. Nothing is read back.
#
# ## Three exercises
#
# **7.1** The MySQL server again. The report writes 1600 MiB instead of 1200. After how many seconds
# is MySQL killed?

# %%
answer = None  # seconds
check("7.1", answer, "s")

# %% [markdown]
# **7.2** The program of 1100 MiB, but its swap is on a disk of 15,000 revolutions a minute. The
# swap area lies together on that disk. A seek within it takes about half a millisecond. How many
# uses a second?

# %%
answer = None  # uses a second
check("7.2", answer, "/s")

# %% [markdown]
# **7.3** The SSD again. Now 19 of 20 uses go to a **hot** part of 250 MiB, and one goes to any page
# of the other 850 MiB. The pages that have not been used for longest are taken, more or less. There
# are still about 20,000 uses a second. How many major faults a second are there after half a
# minute?

# %%
answer = None  # major faults a second
check("7.3", answer, "/s")

# %% [markdown]
# ## What the model leaves out
#
# - **The tmpfs in swap.** Linux writes pages of a tmpfs to swap as it writes a program's own. In
#   the twin they stay in memory. So it cannot say how MySQL would have done with swap. The real
#   tables that nobody reads any more would have gone out first.
# - **Huge pages.** Here every page has 4 KiB. Linux can give a program pages of 2 MiB, and takes
#   them apart before they go to swap.
# - **Locality.** A real program does not choose its pages by chance. Its hot part has no sharp
#   border, and it moves.
# - **What an administrator told the OOM killer.** `oom_score_adj` is left out, and so is the
#   bonus of root's programs.
# - **All sizes of MySQL are assumed.** That is why the time of its end tells nothing about the
#   real server. The order of events does.

# %% [markdown] tags=["solution"]
# ## Solutions
#
# **The prediction.** Of 2000 uses 14 % are faults, of 0.2 ms each. They take longer than half of
# the 100 ms that the program sleeps.

# %% tags=["solution"]
print(f"by hand: {uses_per_s(1100, ssd_s):.0f} uses a second")
assert 2000 * missing(1100) * ssd_s > 0.05
assert check("7.0", uses_per_s(1100, ssd_s), "/s")

# %% [markdown] tags=["solution"]
# **7.1** The tmpfs takes 400 MiB more, and MySQL has 400 MiB less.

# %% tags=["solution"]
earlier_s = (for_pages_mib - 1600) / growth_mib_s
print(f"by hand: {earlier_s:.1f} s")
assert check("7.1", earlier_s, "s")

# %% [markdown] tags=["solution"]
# **7.2** A fault waits for a seek of half a millisecond and half a revolution of 4 ms. The arm does
# not move far, as the area in use is a three-hundredth of the disk. It is called **thrashing**: the
# program is a sixth too large, and does a tenth of its work.

# %% tags=["solution"]
arm_s = 0.0005 + 0.004 / 2
print(f"by hand: {uses_per_s(1100, arm_s):.0f} uses a second")
assert uses_per_s(1100, arm_s) < 0.15 * uses_per_s(800, arm_s)
assert check("7.2", uses_per_s(1100, arm_s), "/s")

# %% [markdown] tags=["solution"]
# **7.3** Each hot page is used three times in ten seconds, each other page once in some minutes. So
# the hot part stays in memory. The rest of the room is for the other pages, and one use in twenty
# goes to them. The working set is the hot part, and it fits.

# %% tags=["solution"]
hot_pages, other_pages = 250 * 256, 850 * 256
print(f"hot: {19000 / hot_pages:.2f} uses a second, other: one in {other_pages / 1000:.0f} s")
others_out = 1 - (room_mib - 250) / 850
print(f"by hand: {1000 * others_out:.0f} major faults a second")
assert check("7.3", 1000 * others_out, "/s")
