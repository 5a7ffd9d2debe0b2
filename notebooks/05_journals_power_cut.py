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
# # 5. Journals, group commit, power cut
#
# *75 minutes. You need lesson 1, and what `fsync` does.*
#
# ## The question
#
# A mail server answers "250": the message is accepted, and from now on it is the server's to lose.
# A database answers "commit". Both have made a promise that must survive a power cut.
#
# **What does the promise cost on a disk? Who shares the cost? And what is left when the power
# goes?**

# %%
from sim.lesson import check, cut, plot, recording, run, table

# %% [markdown]
# ## The recording
#
# You know this server from lesson 1. Its mail queue is on `sdb`, a disk of 15,000 rpm.

# %%
report = recording("sendmail", "iostat.txt")
print("\n".join(line for line in report.splitlines() if line.startswith(("Device", "sdb"))))

# %% [markdown]
# It accepted 11 messages a second then. So each message cost the disk some 16 writes, and with
# their merges many more blocks. A message has four kilobytes and more: why so many writes? Each
# promise asks the journal of the file system, several times.
#
# ## The estimate by hand
#
# Take the simplest promise first: a database that overwrites a block of its log and calls `fsync`.
# The disk turns 7200 times a minute. Its average seek takes 8 ms, and a write settles for 1 ms
# more.
#
# - The block itself: its place lies elsewhere than the journal, so a seek, and half a turn.
# - The file's new modification time: into the journal, so a seek back, and half a turn.
# - The commit block of the journal. It lies just behind, but it may be written only when the others
#   are on the platter. By then its place has passed: a whole turn.

# %%
TURN_MS = 60_000 / 7200
SEEK_MS = 8 + 1


def commit_ms(seek_ms: float, turn_ms: float) -> float:
    """Return the time of a commit of ext4's journal with one block of data."""
    return 2 * (seek_ms + turn_ms / 2) + turn_ms


T_MS = commit_ms(SEEK_MS, TURN_MS)
print(f"a commit takes {T_MS:.0f} ms by hand: {1000 / T_MS:.0f} a second")

# %%
FSYNC = {"process.database.method": "fsync", "process.database.group": False}
FSYNC |= {"process.database.commits": 400}
one = run("fsync-where", set={**FSYNC, "process.database.committers": 1})
print(f"simulated: {one['commits_per_s']}, {one['commit_us'] / 1000:.1f} ms each")
assert abs(one["commit_us"] / 1000 / T_MS - 1) < 0.15

# %% [markdown]
# Thirty promises a second, on a disk that writes a hundred megabytes in that time. Now several
# writers, each with promises of its own.
#
# While a commit runs, nobody can join it: its blocks are fixed. Who calls `fsync` in the meantime
# waits for its rest and for the whole next one. That one has all who waited. So two groups take
# turns, and each writer is in every second commit:
#
#     X(n) = n / (2 T)
#
# ## Your prediction
#
# Eight writers: how many commits a second do they do together?

# %%
prediction = None  # commits a second
check("5.0", prediction, "/s")

# %% [markdown]
# ## The simulation

# %%
writers = (1, 2, 4, 8, 16)
rows = table("fsync-where", "process.database.committers", writers, of=["commits_per_s"], set=FSYNC)
simulated = rows.column("commits_per_s")
by_law = [1000 / T_MS if n == 1 else n * 1000 / (2 * T_MS) for n in writers]
for n, law, found in zip(writers, by_law, simulated, strict=True):
    print(f"{n:2} writers: {law:6.1f} a second by hand, {float(found):6.1f} simulated")
    assert abs(law / found - 1) < 0.15
plot(
    {
        "by hand": list(zip(writers, by_law, strict=True)),
        "simulated": list(zip(writers, simulated, strict=True)),
    },
    x="writers",
    y="commits a second",
)

# %% [markdown]
# Two writers do no more than one. From then on the rate grows with the number of writers, and
# nobody waits longer: the journal makes a promise to all of them at once. That is **group
# commit**. It is why a busy server is not eight times as slow as a quiet one.
#
# ### The power goes
#
# Now the mail server. Two hundred messages come from 5 s on. At 8 s somebody pulls the plug. Before
# that it has answered "250" to some of them. After the next boot the queue is what the journal has.

# %%
STORM = {"process.blast.messages": 200, "process.blast.start": "5 s"}
disk = cut("sendmail", at="8 s", set=STORM)
print(disk)
assert disk["messages_lost"] == 0 and disk["changes_undone"] > 0

# %% [markdown]
# Read it line by line.
#
# - **Nothing that was accepted is lost.** Each "250" came after an `fsync`.
# - **Changes are undone**: names and sizes that nobody had been promised yet. The journal leaves a
#   change out whole, or has it whole. So there is no damage, and no long check of the disk.
# - **Some messages are sent twice.** They were handed on, and the removal from the queue was still
#   in memory only. A mail server may do that. It may not lose one.
#
# And with the queue on tmpfs, or on a flash drive?

# %%
for name in (None, "tmpfs", "ssd"):
    left = cut("sendmail", name, at="8 s", set=STORM)
    print(f"{name or 'disk':6} accepted {left['messages_accepted']}", end=", ")
    print(f"lost {left['messages_lost']}, sent twice {left['messages_sent_twice']}")

# %%
memory, flash = (cut("sendmail", name, at="8 s", set=STORM) for name in ("tmpfs", "ssd"))
assert memory["messages_lost"] > 10 and flash["messages_lost"] == 0
assert memory["messages_accepted"] > 2 * disk["messages_accepted"]
waiting = memory["messages_accepted"] - memory["messages_handed_on"]
assert memory["messages_lost"] == waiting

# %% [markdown]
# On tmpfs `fsync` returns at once, and has done nothing. All that was accepted and not handed on
# yet is lost: accepted less handed on. The flash drive keeps its promises, and is nearly as fast.
#
# ### A drive that lies
#
# A drive may have a write cache. It says "done" when it has the data in its memory. If nobody tells
# it to empty the cache, an `fsync` is no promise. The ext3 of this server (2006) does not, unless
# it is mounted with `barrier=1`.

# %%
CACHE = {"machine.disk.sdb.write_cache": True}
rows = []
for at in ("8 s", "10 s", "12 s"):
    left = cut("sendmail", at=at, set={**STORM, **CACHE})
    rows.append(left)
    print(f"cut at {at:>4}: accepted {left['messages_accepted']}, lost {left['messages_lost']}")
assert sum(left["messages_lost"] for left in rows) > 0

# %% [markdown]
# As fast as tmpfs, and it loses mail like tmpfs, though fewer. Who looks at the speed alone takes
# it for a good disk. Newer file systems send a **flush** before and after the commit block. Then a
# cache costs what the platter costs.
#
# ## Three exercises
#
# **5.1** Five writers, each with its own `fsync`: how many commits a second together?

# %%
answer = None  # commits a second
check("5.1", answer, "/s")

# %% [markdown]
# **5.2** One writer that calls `fdatasync`. The file is as long as before, so the journal is not
# needed. The next block lies just behind the last one. How many commits a second?

# %%
answer = None  # commits a second
check("5.2", answer, "/s")

# %% [markdown]
# **5.3** One writer with `fsync` on a disk of 15,000 rpm, whose average seek takes 4 ms with the
# settling. How many commits a second?

# %%
answer = None  # commits a second
check("5.3", answer, "/s")

# %% [markdown]
# ## What the model leaves out
#
# - **What the programs do after the boot.** Sendmail reads its queue, and a database replays its
#   log.
# - **Torn sectors, and drives that forget what they had flushed.** A sector is old or new here.
# - **The database's own group commit.** PostgreSQL lets one process sync for all who wait. The
#   lesson turned it off.
# - **Other work on the disk.** A reader's seek costs the log its turn.

# %% [markdown] tags=["solution"]
# ## Solutions
#
# **The prediction.** In 2 T each of the eight writes once.

# %% tags=["solution"]
assert check("5.0", 8 * 1000 / (2 * T_MS), "/s")

# %% [markdown] tags=["solution"]
# **5.1** The law holds for an odd number, too: the groups are of two and of three.

# %% tags=["solution"]
assert check("5.1", 5 * 1000 / (2 * T_MS), "/s")

# %% [markdown] tags=["solution"]
# **5.2** One turn for each commit. The place of the next block has just passed when a commit is
# over.

# %% tags=["solution"]
assert check("5.2", 1000 / TURN_MS, "/s")

# %% [markdown] tags=["solution"]
# **5.3** The same sum with 4 ms for the arm and 4 ms for a turn.

# %% tags=["solution"]
assert check("5.3", 1000 / commit_ms(4, 60_000 / 15_000), "/s")
