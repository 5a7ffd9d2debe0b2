"""The CPU scheduler: tasks, run queues, sleeping and waking, CPU time, load (kernel/sched)."""
