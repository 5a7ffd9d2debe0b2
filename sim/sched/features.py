"""What the scheduler of each release does: the one table of versions of this folder.

Linux counterpart: kernel/sched.c, kernel/sched_fair.c, kernel/sched/*.c, include/linux/topology.h.
Each row says which change it stands for.
"""

from dataclasses import dataclass
from typing import Final

from sim.sched.version import Change, KernelVersion, in_force

MS: Final = 1_000_000

# How a woken task finds its CPU.
WAKE_PREVIOUS: Final = "previous"  # Its last, or the waker's; no search for an idle one.
WAKE_IDLE_SIBLING: Final = "idle sibling"  # Any idle CPU that shares the cache.

# What a CPU takes that is not idle, but has been for part of the last tens of milliseconds.
SPARE_AS_ANY: Final = 0  # what any other takes
SPARE_HALF: Final = 1  # half of the difference in the number of tasks
SPARE_NOTHING: Final = 2

# Rounding of the load average (kernel/timer.c CALC_LOAD, kernel/sched.c calc_load).
ROUND_DOWN: Final = "down"
ROUND_HALF_UP: Final = "half up"
ROUND_TOWARDS_ACTIVE: Final = "towards active"


@dataclass(frozen=True, kw_only=True)
class Features:
    """What one release does."""

    prio_array: bool  # O(1) scheduler instead of the fair one
    eevdf: bool  # earliest eligible virtual deadline first
    wake: str
    wake_wide: bool  # who wakes many leaves them where they were
    child_runs_first: bool
    balance_fork: bool  # a child may start on another, idler CPU
    newidle_by_tick: bool  # new-idle balance sees loads of the last tick, not those of now
    newidle_by_chance: bool  # new-idle balance throws a die, loaded with its success so far
    cache_hot_ns: int  # a task that ran so recently is not pulled at first
    imbalance_pct: int  # how much more than one's own load is too much
    small_imbalance_tasks: int  # what is too much for moving one task; 0: what failures make of it
    spare_busy: int  # what a busy CPU with capacity to spare does about one with too many tasks
    busy_balance_ms: int  # how often a busy CPU looks for a busier one, if
    busy_balance_per_cpu: bool  # times the number of CPUs
    busy_balance_off_beat: bool  # less one tick
    busy_balance_most: int  # half as often after each look that found balance, to so many times
    load_rounding: str
    load_extra_tick: bool  # sampled every 5 s plus one tick
    idle_weight: int  # of a SCHED_IDLE task
    mutex_spins: bool  # who finds the lock's owner on the way out spins (optimistic spinning)
    mutex_handoff: bool  # a mutex is kept for the first waiter that was woken in vain
    rwsem_handoff: bool  # a rw_semaphore for one that has waited for more than a tick or two
    rwsem_spins: bool  # who wants to write spins on a writer that runs,
    rwsem_spins_on_readers: bool  # and on readers, for a while
    rwsem_readers_spin: bool  # so does who wants to read
    rwsem_readers_steal: bool  # a reader takes the lock that no reader has, whoever sleeps
    rwsem_wakes_all_readers: bool  # also those behind a writer


PRIO_ARRAY: Final = ((2, 6, 0), True), ((2, 6, 23), False)
# Page table isolation against Meltdown, on processors that need it (arch/x86/mm/pti.c).
PTI: Final = ((2, 6, 0), False), ((4, 15), True)  # aa8c6248f8c7
EEVDF: Final = ((2, 6, 0), False), ((6, 6), True)  # 147f3efaa241
# wake_idle() searches in domains with SD_WAKE_IDLE: hyperthreads only, until select_idle_sibling()
# (a1f84a3ab8e0, 2.6.33; distributions' 2.6.32 have it too, so it counts from there).
WAKE: Final = ((2, 6, 0), WAKE_PREVIOUS), ((2, 6, 32), WAKE_IDLE_SIBLING)
WAKE_WIDE: Final = ((2, 6, 0), False), ((3, 12), True)  # 62470419e993
# sysctl_sched_child_runs_first is 0 from 2bba22c50b06 (2.6.32) on.
CHILD_RUNS_FIRST: Final = ((2, 6, 0), True), ((2, 6, 32), False)
# SD_BALANCE_FORK in SD_CPU_INIT.
BALANCE_FORK: Final = ((2, 6, 0), False), ((2, 6, 32), True)
# newidle_idx of SD_CPU_INIT: 2 in 2.6.12 to 2.6.24, 0 in 2.6.32: cpu_load[] of ticks or of now.
# The release in between that changed it: assumed.
NEWIDLE_BY_TICK: Final = ((2, 6, 0), True), ((2, 6, 31), False)
# 33cf66d88306 (6.19), in 6.18.y: "Proportional newidle balance". Which 6.18.y: assumed.
NEWIDLE_BY_CHANCE: Final = ((2, 6, 0), False), ((6, 18, 2), True)
# SD_CPU_INIT cache_hot_time 2.5 ms; sysctl_sched_migration_cost 0.5 ms.
CACHE_HOT_NS: Final = ((2, 6, 0), 2_500_000), ((2, 6, 23), 500_000)
# find_busiest_group: max_load - this_load >= 2 * SCHED_LOAD_SCALE; since smpnice (2dd73a4f09be,
# 2.6.18) one task suffices, so three hogs take turns on two CPUs.
# From 5.10 on, detach_tasks() moves any task whose load >> nr_balance_failed fits (5a7f55590467).
SMALL_IMBALANCE_TASKS: Final = ((2, 6, 0), 2), ((2, 6, 18), 1), ((5, 10), 0)
# sd_init(): 2208cdaa56c9 (5.10).
IMBALANCE_PCT: Final = ((2, 6, 0), 125), ((5, 10), 117)
# calculate_imbalance() asks first for group_has_spare (0b0695f2b34a, 5.5; counted from 5.10 on, as
# the rest of that rework here): migrate_task of half the difference, which sibling_imbalance()
# makes 0 for who is not idle (7ff1693236f5, 6.6).
SPARE_BUSY: Final = (
    ((2, 6, 0), SPARE_AS_ANY),
    ((5, 10), SPARE_HALF),
    ((6, 6), SPARE_NOTHING),
)
# SD_CPU_INIT: min_interval 1 ms x busy_factor 64; sd_init(): sd_weight ms x 32; x 16 less a tick
# (6e7499135db7, e4d32e4d5444, 5.10).
BUSY_BALANCE_MS: Final = ((2, 6, 0), 64), ((3, 16), 32), ((5, 10), 16)
BUSY_BALANCE_PER_CPU: Final = ((2, 6, 0), False), ((3, 16), True)
BUSY_BALANCE_OFF_BEAT: Final = ((2, 6, 0), False), ((5, 10), True)
# All releases double balance_interval: SD_CPU_INIT from min_interval 1 ms to max_interval 4 ms,
# sd_init() from sd_weight to 2 * sd_weight (143e1e28cb40, 3.16).
BUSY_BALANCE_MOST: Final = ((2, 6, 0), 4), ((3, 16), 2)
# 0f004f5a696a (2.6.37) and 20878232c52329 (4.7).
LOAD_ROUNDING: Final = (
    ((2, 6, 0), ROUND_DOWN),
    ((2, 6, 37), ROUND_HALF_UP),
    ((4, 7), ROUND_TOWARDS_ACTIVE),
)
# LOAD_FREQ 5*HZ+1: 0c2043abefa (2.6.23).
LOAD_EXTRA_TICK: Final = ((2, 6, 0), False), ((2, 6, 23), True)

# -- The fair class.

# How many periods of credit a sleeper has: a part of one.
WHOLE_PERIOD: Final = 1
HALF_PERIOD: Final = 2

# (latency, min granularity, wake-up granularity, periods of sleeper credit), before scaling.
# 2.6.24 gives sleepers a whole latency, GENTLE_FAIR_SLEEPERS (51e0304ce6e5, 2.6.32) half of it.
# sysctl_sched_* in kernel/sched_fair.c of 2.6.24, 2.6.32, 2.6.39, kernel/sched/fair.c of 6.5.
FAIR_DEFAULTS: Final[tuple[tuple[KernelVersion, tuple[int, int, int, int]], ...]] = (
    ((2, 6, 0), (20 * MS, 4 * MS, 10 * MS, WHOLE_PERIOD)),
    ((2, 6, 32), (5 * MS, 1 * MS, 1 * MS, HALF_PERIOD)),
    ((2, 6, 35), (6 * MS, 3 * MS // 4, 1 * MS, HALF_PERIOD)),
)

# sysctl_sched_base_slice: 0.75 ms (6.6), 0.70 ms (2ae891b82695, 6.15).
BASE_SLICE_NS: Final = ((6, 6), 750_000), ((6, 15), 700_000)
# DELAY_DEQUEUE and DELAY_ZERO: 152e11f6df29, 54a58a787791 (6.12).
DELAY_DEQUEUE: Final = ((6, 6), False), ((6, 12), True)
# PLACE_REL_DEADLINE: 82e9d0456e06 (6.12).
KEEP_DEADLINE: Final = ((6, 6), False), ((6, 12), True)
# PREEMPT_SHORT: 85e511df3cec (6.12).
PREEMPT_SHORT: Final = ((6, 6), False), ((6, 12), True)
# "Limit run to parity to the min slice of enqueued entities", and "Always trigger resched at the
# end of a protected period" (6.17): set_protect_slice, update_protect_slice, update_curr.
SHORTEST_PROTECTS: Final = ((6, 6), False), ((6, 17), True)

# -- Groups, policies, terms.

GROUPS_SINCE: Final = (2, 6, 24)
UNIFIED_SINCE: Final = (4, 15)  # cpu.weight, cpu.max: 0d5936344f30
BANDWIDTH_SINCE: Final = (3, 2)  # ab84d31e1550
BURST_SINCE: Final = (5, 14)  # f4183717b370
# de53fd7aedb1 (5.4): a CPU keeps what it has over the end of a period.
EXPIRES: Final = ((3, 2), True), ((5, 4), False)

# From which release on: b0a9499c3dd5 (2.6.16), 0e6aca43e08a (2.6.23).
POLICY_SINCE: Final = {"other": (2, 6), "batch": (2, 6, 16), "idle": (2, 6, 23)}
# Slices of a task's own, sched_attr::sched_runtime of who is no deadline task: 857b158dc5e8.
SLICE_SINCE: Final = (6, 12)

# WEIGHT_IDLEPRIO: cce7ade80369 (2.6.30).
IDLE_WEIGHT: Final = ((2, 6, 0), 2), ((2, 6, 30), 3)

# -- Locks.

MUTEX_SPINS: Final = ((2, 6, 0), False), ((2, 6, 30), True)  # 0d66bf6d3514
MUTEX_HANDOFF: Final = ((2, 6, 0), False), ((4, 10), True)  # 9d659ae14b54
RWSEM_HANDOFF: Final = ((2, 6, 0), False), ((5, 3), True)  # 4f23dbc1e657
RWSEM_SPINS: Final = ((2, 6, 0), False), ((3, 16), True)  # 4fc828e24cd9
RWSEM_SPINS_ON_READERS: Final = ((2, 6, 0), False), ((5, 3), True)  # 7d43f1ce9dd0
# cf69482d62d9 (5.3); 617f3ef95177 (5.11) removes it and 1a728dff855a lets readers steal instead.
RWSEM_READERS_SPIN: Final = ((2, 6, 0), False), ((5, 3), True), ((5, 11), False)
RWSEM_READERS_STEAL: Final = ((2, 6, 0), False), ((5, 11), True)
RWSEM_WAKES_ALL_READERS: Final = ((2, 6, 0), False), ((5, 3), True)  # d3681e269fff

# -- Clocks and idle states.

# How ondemand gets from a load below the threshold to a clock.
JUST_BELOW: Final = "just below the threshold"
OF_THE_TOP: Final = "load x highest"
BETWEEN: Final = "lowest + load x (highest - lowest)"
# dfa5bb622555 (3.12), 6393d6a10258 (3.17).
ONDEMAND: Final = ((2, 6, 0), JUST_BELOW), ((3, 12), OF_THE_TOP), ((3, 17), BETWEEN)
# Points below the threshold: 3 with micro accounting (2.6.28), 10 with ticks.
DOWN_DIFFERENTIAL: Final = ((2, 6, 0), 10), ((2, 6, 28), 3)
# x86 tells the scheduler its clock since 1567c3e3467c (5.7); before, util is of the present one.
INVARIANT: Final = ((2, 6, 0), False), ((5, 7), True)

AT_ITS_CLOCK: Final = "mean clock / wanted clock"
OF_THE_TIME: Final = "mean clock / wanted clock x share of time"
UNLESS_LATE: Final = "mean clock / wanted clock, less if late"
BY_LOAD: Final = "1.25 x share of time"
# fcb6a15c2e7e "Take core C0 time into account" (3.14); e66c17683746 "Remove C0 tracking" with
# c4ee841f602e "add sample time scaling" (3.15), also in RHEL 7's 3.10.0-229 and later;
# "Do not use PID-based P-state selection" (4.13).
PSTATE_BUSY: Final = (
    ((2, 6, 0), AT_ITS_CLOCK),
    ((3, 14), OF_THE_TIME),
    ((3, 15), UNLESS_LATE),
    ((4, 13), BY_LOAD),
)

# 1f85f87d4f81 "add a repeating pattern detector" (2.6.35).
DETECTS_PATTERNS: Final = ((2, 6, 0), False), ((2, 6, 35), True)
# 38f83090f515 "Remove iowait influence" (6.12).
COUNTS_IOWAIT: Final = ((2, 6, 0), True), ((6, 12), False)

# -- Parameters: what a release changes about their defaults.

SCHED_CHANGES: Final[tuple[Change, ...]] = (
    (
        (7, 0),
        "preemption",
        "lazy",
        "kernel/Kconfig.preempt 7.0: default PREEMPT_LAZY, 7dadeaa6e851",
    ),
)

# 19379b11819f (2.6.35): should_io_be_busy(), true for Intel CPUs of family 6 from model 15 on.
CPUFREQ_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 0), "up_threshold_percent", 80.0, "cpufreq_ondemand.c: DEF_FREQUENCY_UP_THRESHOLD"),
    (
        (2, 6, 28),
        "up_threshold_percent",
        95.0,
        "cpufreq_ondemand.c 2.6.28: MICRO_FREQUENCY_UP_THRESHOLD",
    ),
    ((2, 6, 35), "io_is_busy", True, "cpufreq_ondemand.c 2.6.35: should_io_be_busy"),
    (
        (3, 9),
        "driver",
        "intel_pstate",
        "drivers/cpufreq/intel_pstate.c 3.9: Sandy Bridge and later",
    ),
)


def features(kernel: KernelVersion) -> Features:
    """Return what that release does."""
    return Features(
        prio_array=in_force(PRIO_ARRAY, kernel),
        eevdf=in_force(EEVDF, kernel),
        wake=in_force(WAKE, kernel),
        wake_wide=in_force(WAKE_WIDE, kernel),
        child_runs_first=in_force(CHILD_RUNS_FIRST, kernel),
        balance_fork=in_force(BALANCE_FORK, kernel),
        newidle_by_tick=in_force(NEWIDLE_BY_TICK, kernel),
        newidle_by_chance=in_force(NEWIDLE_BY_CHANCE, kernel),
        cache_hot_ns=in_force(CACHE_HOT_NS, kernel),
        imbalance_pct=in_force(IMBALANCE_PCT, kernel),
        small_imbalance_tasks=in_force(SMALL_IMBALANCE_TASKS, kernel),
        spare_busy=in_force(SPARE_BUSY, kernel),
        busy_balance_ms=in_force(BUSY_BALANCE_MS, kernel),
        busy_balance_per_cpu=in_force(BUSY_BALANCE_PER_CPU, kernel),
        busy_balance_off_beat=in_force(BUSY_BALANCE_OFF_BEAT, kernel),
        busy_balance_most=in_force(BUSY_BALANCE_MOST, kernel),
        load_rounding=in_force(LOAD_ROUNDING, kernel),
        load_extra_tick=in_force(LOAD_EXTRA_TICK, kernel),
        idle_weight=in_force(IDLE_WEIGHT, kernel),
        mutex_spins=in_force(MUTEX_SPINS, kernel),
        mutex_handoff=in_force(MUTEX_HANDOFF, kernel),
        rwsem_handoff=in_force(RWSEM_HANDOFF, kernel),
        rwsem_spins=in_force(RWSEM_SPINS, kernel),
        rwsem_spins_on_readers=in_force(RWSEM_SPINS_ON_READERS, kernel),
        rwsem_readers_spin=in_force(RWSEM_READERS_SPIN, kernel),
        rwsem_readers_steal=in_force(RWSEM_READERS_STEAL, kernel),
        rwsem_wakes_all_readers=in_force(RWSEM_WAKES_ALL_READERS, kernel),
    )
