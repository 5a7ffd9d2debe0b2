"""First estimates from a recording, by operational analysis, before any simulation.

Models: what an experienced administrator works out on paper from iostat, and the doubts.
Linux counterpart: none; Denning and Buzen, The Operational Analysis of Queueing Network Models
(ACM Computing Surveys 10, 1978), names the laws; the counters are Linux's.
Invariants: nothing is fitted or assumed of distributions: the laws hold for any recording whose
counters are right, so that a law that does not hold is a finding about the recording; reports since
boot, the warm-up and the cool-down of a data set are not used; a guess says from what it is made.
Left out: confidence intervals (calibration/fit), anything that needs to know the application.

With T the length of an interval, and per resource C requests completed, B time busy, W the sum of
all response times:

    throughput        X = C / T            iostat: r/s + w/s
    utilisation law   U = X S              S = B / C: svctm, if one request is served at a time
    Little's law      N = X R              N = W / T: aqu-sz;  R = W / C: await
    so                R / S = N / U        await >= svctm, always: of n requests in flight one at
                                           least makes the device busy
    forced flow       X_k = V_k X          V_k: requests of resource k a transaction makes
    demand            D_k = V_k S_k = U_k / X        for c CPUs: D = c U / X
    bounds            X <= 1 / max D_k     (c / D for CPUs)
                      X <= N / (sum D_k + Z)         N customers that think Z between transactions

Merging: what enters a queue is X + merges; a volume (dm) that hands its requests down shows as
entries of the disk below: w(dm) = w(disk) + wrqm(disk).

iowait (kernel/sched/cputime.c:account_idle_time): an idle CPU counts as iowait while a task that
went to sleep on it waits in I/O. With n such tasks, each asleep on any of c CPUs with equal chance,
all waiting for the same device of utilisation U, and busy CPUs independent of that:

    iowait = U (1 - busy) (1 - (1 - 1/c)^n)          one waiter: U (1 - busy) / c

and idle time comes in steps of 1/c where a waiter waits all through an interval. The chance is not
quite equal: tasks that are woken together gather on one CPU, so that n is at least what follows.
"""

from calibration.look.summary import Look, look, steady

__all__ = ["Look", "look", "steady"]
