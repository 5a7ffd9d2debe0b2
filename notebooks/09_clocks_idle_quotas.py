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
# # 9. Clocks, idle states, quotas
#
# *90 minutes. You need lesson 4.*
#
# ## The question
#
# A web service moved to newer servers. The load is light, and the CPUs are idle for 97 % of the
# time. Yet its pages take nearly twice as long as before. **How can a CPU that has nothing to do be
# too slow? How much of a page's time is it, and where do you look?**
#
# There are three ways: the CPU runs slowly, it sleeps too deeply, or it is forbidden to run. This
# lesson has all three.

# %%
from sim.lesson import check, plot, recording, run, table, tool

# %% [markdown]
# ## The recording
#
# The administrators measured the time to the first byte of a page, at the balancer in front of the
# service. In the cloud it had been 60 ms. In their own data centre it was more. They changed the
# emulated disk and network card for virtio, and then did without virtual machines.

# %%
for what_if in (None, "virtio", "bare_metal"):
    server = run("web-governor", what_if)
    print(f"{server.scenario.label:30} recorded: {server.recorded['ttfb_ms']}")

# %% [markdown]
# Pinned virtual CPUs, huge pages and the merging of equal pages made no difference that anybody
# saw. Then somebody looked at `/proc/cpuinfo`. The CPUs of 2.4 GHz ran at 1.2 GHz. They were
# governed by `powersave`.
#
# A **governor** is the part of the kernel that chooses the clock of a CPU. This one belongs to the
# driver `intel_pstate`. It looks every 10 ms. A CPU that slept since the last look gets the lowest
# clock. A CPU that worked gets 0.1 GHz more.
#
# A CPU without work also sleeps. Its **idle states** are C1, C1E, C3, C6. A deeper one saves more
# energy, and waking from it takes longer.
#
# ## The estimate by hand
#
# What is a page made of? The service computes for 33 ms at 2.4 GHz. Between, it asks a cache 128
# times and a database 12 times, always one after the other. The cache computes for 15 microseconds
# each time, the database for 0.3 ms. These numbers were fitted or assumed.
#
# A slower clock makes computing longer, but not all of it. 15 % of the time a CPU waits for memory,
# and memory does not mind the clock.

# %%
work_ms = 33 + 128 * 0.015 + 12 * 0.3
waits_for_memory = 0.15


def computing_ms(ghz: float) -> float:
    """Return how long the computing of a page takes at a clock."""
    return work_ms * (waits_for_memory + (1 - waits_for_memory) * 2.4 / ghz)


for ghz in (1.2, 2.4, 3.0):
    print(f"at {ghz} GHz: {computing_ms(ghz):.1f} ms")

# %% [markdown]
# Which clock does a page have? It begins at the lowest, as the CPU slept before. While the page is
# made, the clock climbs one step every 10 ms. A page of 100 ms is made at 1.2 to 2.1 GHz, or 1.65
# on average.
#
# The rest of a page is waiting. Each of its 140 questions wakes a CPU twice: the one who is asked,
# and then the one who asked. Let us look at the simulated server, without virtual machines, how
# long waking takes.

# %%
slow = run("web-governor", "bare_metal")
tool("cpupower -c 4 idle-info", slow, at="10 s")

# %% [markdown]
# "Latency" is in microseconds. Nearly all sleep is in C6. The table has the worst case. Measured
# wake-ups took a tenth to a half of it, so we take 0.4. Each question also needs two ways of 40
# microseconds through a switch, and a page waits 5 ms for another site.

# %%
questions = 128 + 12
waking_ms = 2 * questions * 0.4 * 133 / 1000
ways_ms = 2 * questions * 40 / 1000
bill = {"computing": computing_ms(1.65), "waking": waking_ms, "ways": ways_ms, "other site": 5}
for name, ms in bill.items():
    print(f"{name:10} {ms:5.1f} ms")
by_hand_ms = sum(bill.values())
print(f"a page: {by_hand_ms:.0f} ms by hand, {slow['ttfb_ms']} simulated")
assert 0.8 < by_hand_ms / slow["ttfb_ms"] < 1 and slow["cpu.idle_pct"] > 97

# %% [markdown]
# The bill explains most of a page. What is missing is the kernel's own work, on packets and
# switches. Nothing in the bill is an overloaded CPU.
#
# ## Your prediction
#
# The governor `performance` keeps the clock at the highest, here 3 GHz. Nothing else changes. How
# long does a page take then? Type a number before you run the cell.

# %%
prediction = None  # ms
check("9.0", prediction, "ms")

# %% [markdown]
# ## The simulation

# %%
what_ifs = ["bare_metal", "governor_performance", "max_cstate_0"]
rows = table("web-governor", what_ifs=what_ifs, of=["ttfb_ms", "ping_ms", "cpu.idle_pct"])
print(rows)

# %%
emulated, bare, fast, awake = rows.column("ttfb_ms")
assert fast < 0.8 * bare and awake < 0.9 * bare and bare < 0.95 * emulated
assert min(rows.column("cpu.idle_pct")) > 95
assert 0.05 < rows.column("ping_ms")[1] - rows.column("ping_ms")[3] < 0.15
assert "outcome = 60" in recording("web-governor", "dataset.toml")

# %% [markdown]
# The real administrators set `performance` too, and measured 60 ms, as before in the cloud. It was
# the clock. The virtual machine had its part of it, but a smaller one.
#
# The last row keeps the CPUs from sleeping at all: they poll. It helps a page as well, as the bill
# said. A ping has only a few wake-ups, so it gains a fraction of a millisecond.
#
# Now the strange part. What happens to a page if **more** customers come?

# %%
rates = (2, 10, 40)
curves: dict[str, list[tuple[float, float]]] = {}
for what_if in ("bare_metal", "governor_performance"):
    curves[what_if] = []
    for rate in rates:
        load = {"process.clients.rate": f"{rate} /s", "process.clients.duration": "6 s"}
        found = run("web-governor", what_if, set=load)["ttfb_ms"]
        curves[what_if].append((rate, found))
        print(f"{what_if:20} {rate:2} pages a second: {found}")
    assert curves[what_if][0][1] > curves[what_if][1][1] > curves[what_if][2][1]
plot(curves, x="pages a second", y="ms")

# %% [markdown]
# With twenty times the load a page is **faster**. A CPU that works more keeps a higher clock. It
# also sleeps for shorter times, and so less deeply. Lesson 4 says that more load means more
# waiting. That is true of queues, and there is no queue here.
#
# So a test with one request at a time can show the worst case of such a server, and not its best.
#
# ### A limit
#
# The third way is a **quota**. A container may be limited to one CPU: in each period of 100 ms, its
# tasks together may use 100 ms of CPU time. When that is used up, all of them stand still until
# the period ends. The kernel calls that **throttled**.
#
# Another service, of which nothing was recorded, has such a limit. Its server has four CPUs, and a
# batch job uses what is left. A page takes 20 ms of CPU and nothing else. There are 40 a second.

# %%
used_cpus = 40 * 0.020
print(f"used: {used_cpus:.1f} CPUs of the one that is allowed")

# %% [markdown]
# That fits. But pages come by chance. Four come in a period on average, and five use up the quota.
# How often do more than five come? Chance without memory is a Poisson distribution: `k` of them
# come with probability `exp(-4) 4^k / k!`.

# %%
e, mean_pages = 2.718281828, 4
share = e**-mean_pages
shares = [share]
for k in range(1, 6):
    share *= mean_pages / k
    shares.append(share)
crowded_pct = 100 * (1 - sum(shares))
print(f"periods with more than five pages: {crowded_pct:.0f} %")

# %%
columns = ["ttfb_ms", "ttfb_p95_ms", "throttled_periods_pct"]
limits = table("web-limits", what_ifs=["no_quota", "two_cpus", "burst"], of=columns)
print(limits)
tool("cat /sys/fs/cgroup/pods/web/cpu.stat", "web-limits", at="60 s")

# %%
page_ms, p95_ms = limits.column("ttfb_ms"), limits.column("ttfb_p95_ms")
throttled_pct = limits.column("throttled_periods_pct")
assert throttled_pct[0] > 1.5 * crowded_pct and throttled_pct[1] < 1 > throttled_pct[2]
assert page_ms[0] > 1.5 * page_ms[1] and p95_ms[0] > 150
assert abs(page_ms[2] / page_ms[1] - 1) < 0.05 and page_ms[3] < page_ms[0]

# %% [markdown]
# Many more periods are throttled than crowds come. The pages that a stop leaves undone use up the
# quota of the next period. One page in twenty takes more than 150 ms, although the service uses
# less than it may.
#
# Two CPUs are as good as no limit: a crowd fits in. So is nearly a *burst*, which lets the
# container save what it did not use.
#
# Where would you see it? `cpu.stat` has the number of periods, and of those that were throttled.
# The CPU time that was used, `usage_usec`, looks harmless.
#
# ## Three exercises
#
# **9.1** The first service again, without virtual machines. Another driver, `acpi-cpufreq`, has a
# governor with the name `powersave` as well. That one never leaves the lowest clock, 1.2 GHz. How
# long does a page take? (Begin with the page at 3 GHz.)

# %%
answer = None  # ms
check("9.1", answer, "ms")

# %% [markdown]
# **9.2** The governor is `intel_pstate`'s again. The idle states are limited to C1 and C1E. How
# long does a page take? The table that `cpupower` printed has the latency of C1E.

# %%
answer = None  # ms
check("9.2", answer, "ms")

# %% [markdown]
# **9.3** The service with the quota. Somebody makes the period shorter: 10 ms of CPU time in each
# 10 ms. "Many short stops are better than a few long ones." How long does a page take on average?
# (One page alone has a whole CPU. Two pages at a time use the quota up in half of the period: they
# share one CPU. For one resource that all share, lesson 4 has a law.)

# %%
answer = None  # ms
check("9.3", answer, "ms")

# %% [markdown]
# ## What the model leaves out
#
# - **Which processor it was.** Nobody recorded its highest clock, its idle states, or how much it
#   waits for memory. They are assumed. Newer processors choose their clocks by themselves.
# - **How long waking takes.** The real ping gained 0.2 ms without idle states. The simulated one
#   gains about half of that. So the real CPUs woke more slowly than these. Nobody recorded what it
#   did to a page.
# - **Heat.** Here 3 GHz last for ever. A real turbo clock falls when many cores work.
# - **The second service is assumed**, with its pages that all are equal. Pages that wait for a
#   database come in smoother crowds.
# - **One run with one seed.** Under a quota, another seed gives clearly other waits.

# %% [markdown] tags=["solution"]
# ## Solutions
#
# **The prediction.** Only the computing gets shorter: from an average of 1.65 GHz to 3 GHz.

# %% tags=["solution"]
saved_ms = computing_ms(1.65) - computing_ms(3.0)
print(f"by hand: {slow['ttfb_ms'] - saved_ms:.0f} ms")
assert check("9.0", slow["ttfb_ms"] - saved_ms, "ms")

# %% [markdown] tags=["solution"]
# **9.1** The computing takes 2.2 times as long as at 3 GHz, and all else stays. A page takes far
# less than 2.5 times as long, which is the ratio of the clocks.

# %% tags=["solution"]
longer_ms = computing_ms(1.2) - computing_ms(3.0)
print(f"by hand: {fast + longer_ms:.0f} ms")
assert abs(computing_ms(1.2) / computing_ms(3.0) - 2.2) < 0.05
assert check("9.1", fast + longer_ms, "ms")

# %% [markdown] tags=["solution"]
# **9.2** Each of the 280 wake-ups takes 10 microseconds instead of 133, times 0.4. It is nearly as
# good as no sleep at all, and saves energy.

# %% tags=["solution"]
earlier_ms = 2 * questions * 0.4 * (133 - 10) / 1000
print(f"by hand: {slow['ttfb_ms'] - earlier_ms:.0f} ms; without any sleep: {awake}")
assert check("9.2", slow["ttfb_ms"] - earlier_ms, "ms")

# %% [markdown] tags=["solution"]
# **9.3** The service is one CPU that all pages share, and it is busy for 0.8 of the time: `D / (1 -
# U)`. It is worse than the long period. There, five pages at a time ran at full speed, and only the
# sixth had to wait.

# %% tags=["solution"]
shared_ms = 20 / (1 - used_cpus)
print(f"by hand: {shared_ms:.0f} ms; with a period of 100 ms: {page_ms[0]}")
assert shared_ms > 1.3 * page_ms[0]
assert check("9.3", shared_ms, "ms")
