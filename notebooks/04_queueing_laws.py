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
# # 4. Queueing laws and where they break
#
# *75 minutes. You need lesson 2.*
#
# ## The question
#
# A server carries 20 transactions a second with ease. It will get three or four times as many.
# **Can you compute from one measurement how busy it will be, and how long its customers will wait?
# Where does the computation go wrong?**

# %%
from sim.lesson import check, explore, plot, run, table

# %% [markdown]
# ## The recording
#
# Of this server nothing was recorded but what its transactions need. Each computes for 14 ms on one
# of two CPUs, reads one page or two from a disk, and one in four writes a record and makes it
# durable. They arrive by chance. The first simulation takes the place of the recording: a quiet
# hour at 20 a second.

# %%
quiet = run("generic", set={"process.server.rate": "20 /s"})
for name in ("transactions_per_s", "transaction_ms", "disk.sda.util_pct", "disk.sda.svctm_ms"):
    print(f"{name:20} {quiet[name]!s:>12}")

# %% [markdown]
# ## The estimate by hand
#
# Three laws are enough.
#
# 1. **The utilization law.** A resource is busy for the rate times the demand: `U = X D`. The
#    demand D is the time that a transaction needs of it, all visits together.
# 2. **The bound.** No resource is busy for more than all of the time. So `X` is at most `1 / D` of
#    the resource with the largest demand.
# 3. **Waiting.** Who comes to a resource by chance finds it busy with probability U. For one server
#    with random service times the mean time there is `D / (1 - U)`. For two servers with one queue
#    it is `D / (1 - U^2)`.
#
# The first law gives the demand of the disk from the quiet hour.

# %%
disk_s = quiet["disk.sda.util_pct"] / 100 / quiet["transactions_per_s"]
cpu_s = 0.010 + 0.004  # user and system
print(f"demand of the disk: {1000 * disk_s:.2f} ms; of a CPU: {1000 * cpu_s:.0f} ms")


def response_ms(rate: float) -> float:
    """Return the time of a transaction by the laws."""
    disk_u, cpu_u = rate * disk_s, rate * cpu_s / 2
    return 1000 * (disk_s / (1 - disk_u) + cpu_s / (1 - cpu_u**2))


print(f"at 20/s: {response_ms(20):.1f} ms by hand, {quiet['transaction_ms']} simulated")
assert abs(response_ms(20) / quiet["transaction_ms"] - 1) < 0.05

# %% [markdown]
# The laws give the time of a transaction within a few per cent, from two demands. Now the bound:
# which resource is full first, and when?

# %%
print(f"the disk is full at {1 / disk_s:.0f} transactions a second, the CPUs at {2 / cpu_s:.0f}")
assert disk_s > cpu_s / 2 and 75 < 1 / disk_s < 80

# %% [markdown]
# ## Your prediction
#
# At 80 transactions a second, how busy is the disk? Will the server keep up at all?

# %%
prediction = None  # % busy
check("4.0", prediction, "%")

# %% [markdown]
# ## The simulation

# %%
rates = (20, 40, 60, 80, 100)
columns = ["transactions_per_s", "transaction_ms", "disk.sda.util_pct", "disk.sda.w_per_s"]
columns.append("disk.sda.svctm_ms")
rows = table("generic", "process.server.rate", [f"{rate} /s" for rate in rates], of=columns)
print(rows)

# %%
simulated = rows.column("transaction_ms")
stable = [rate for rate in rates if rate * disk_s < 0.95]
by_law = [(rate, response_ms(rate)) for rate in stable]
for (rate, hand_ms), row in zip(by_law, rows, strict=False):
    print(f"{rate:3}/s: {hand_ms:6.1f} ms by hand, {row['transaction_ms']} simulated")
assert stable == [20, 40, 60]
assert abs(by_law[1][1] / simulated[1] - 1) < 0.12 and by_law[2][1] > 1.2 * simulated[2]
plot(
    {"by the laws": by_law, "simulated": list(zip(rates, simulated, strict=True))},
    x="transactions a second",
    y="ms",
)

# %% [markdown]
# Look again at what you like. In a notebook that has ipywidgets this is a slider; elsewhere it is
# the table.

# %%
explore("generic", "process.server.rate", [f"{rate} /s" for rate in rates], of=columns)

# %% [markdown]
# The laws say that this server cannot do more than 77 a second. The simulated one does nearly a
# hundred, and its disk is not even full at 80. Which law broke? Not the utilization law: it is an
# identity. What changed is the **demand**.

# %%
pairs = zip(rows.column("disk.sda.util_pct"), rows.column("transactions_per_s"), strict=True)
demands_ms = [10 * util / rate for util, rate in pairs]
print("demand of the disk, ms:", " ".join(f"{one:.1f}" for one in demands_ms))
assert demands_ms == sorted(demands_ms, reverse=True) and demands_ms[-1] < 0.8 * demands_ms[0]
per_s = zip(rows.column("disk.sda.w_per_s"), rows.column("transactions_per_s"), strict=True)
writes = [done / rate for done, rate in per_s]
print("writes of a transaction:", " ".join(f"{one:.2f}" for one in writes))
assert writes[-1] < 0.6 * writes[0]
services_ms = rows.column("disk.sda.svctm_ms")
assert services_ms[-1] < 0.9 * services_ms[0]

# %% [markdown]
# A fuller disk works better, for two reasons.
#
# - **Group commit.** Transactions that wait for the journal at the same time share one commit. So
#   each needs fewer writes.
# - **The elevator.** Where several requests wait, the next one can be chosen near the head. So each
#   request takes less time.
#
# A law with a constant demand is right at low load, and pessimistic at high load. For a disk with
# an arm that is the rule. Other resources get worse when they are full: memory that is swapped, or
# a lock with a long queue.
#
# ## Three exercises
#
# **4.1** The disk is replaced by a flash drive, and there are 80 transactions a second. How long
# does a transaction take?

# %%
answer = None  # ms
check("4.1", answer, "ms")

# %% [markdown]
# **4.2** With the flash drive, sixteen customers send their next transaction as soon as they have
# an answer. How many transactions a second?

# %%
answer = None  # transactions a second
check("4.2", answer, "/s")

# %% [markdown]
# **4.3** The old disk again, and a single customer who waits for each answer. How many transactions
# a second?

# %%
answer = None  # transactions a second
check("4.3", answer, "/s")

# %% [markdown]
# ## What the model leaves out
#
# - **The laws assume chance.** Arrivals here are as random as the laws want. Real ones come in
#   bursts, and then waits are longer at the same utilization.
# - **Means.** A customer feels the slowest answers. No law of this lesson gives a percentile.
# - **The transactions are assumed**, as is their demand. On your own server they are measured.
# - **One minute with one seed.** Near the limit another seed gives clearly other waits.

# %% [markdown] tags=["solution"]
# ## Solutions
#
# **The prediction.** By the law the disk would be busy for more than all of the time. That cannot
# be, so either the server does not keep up or the demand changes. Only a look inside tells which.

# %% tags=["solution"]
print(f"by the law: {100 * 80 * disk_s:.0f} %; simulated: {rows[3]['disk.sda.util_pct']}")
assert 80 * disk_s > 1 and rows[3]["disk.sda.util_pct"] < 90
assert abs(rows[3]["transactions_per_s"] / 80 - 1) < 0.05

# %% [markdown] tags=["solution"]
# **4.1** The two CPUs remain. The simulation is slower by a fifth. The law leaves out the reads and
# commits of the flash drive, and the CPU time of interrupts and switches.

# %% tags=["solution"]
flash = run("generic", "ssd", set={"process.server.rate": "80 /s"})
waiting_ms = 1000 * cpu_s / (1 - (80 * cpu_s / 2) ** 2)
print(f"by hand: {waiting_ms:.1f} ms, simulated: {flash['transaction_ms']}")
assert flash["cpu.user_pct"] + flash["cpu.system_pct"] > 100 * 80 * cpu_s / 2
assert 0.75 < waiting_ms / flash["transaction_ms"] < 0.85
assert check("4.1", waiting_ms, "ms")

# %% [markdown] tags=["solution"]
# **4.2** The CPUs are full, and there are two of them.

# %% tags=["solution"]
assert check("4.2", 2 / cpu_s, "/s")

# %% [markdown] tags=["solution"]
# **4.3** Alone, a transaction takes the sum of its demands, and the next one begins when it is
# done.

# %% tags=["solution"]
assert check("4.3", 1 / (cpu_s + disk_s), "/s")
