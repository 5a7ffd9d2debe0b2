"""The small scenario with something to fit, for tests of calibrate and predict."""

from tests.cli.small import SMALL

PLAN = """
[recorded]
before = "sendmail"

[calibrate]
recording = "sendmail"
duration = "2 min"

[calibrate.parameter."process.blast.concurrency"]
distribution = "log-uniform"
low = 2
high = 20
source = "assumed: a test"

[calibrate.parameter."process.sendmail.message_user"]
distribution = "log-normal"
low = "1 ms"
high = "100 ms"
source = "assumed: a test"

[calibrate.against.before.column]
load1_peak = { discrepancy = "30 %", source = "a test" }
"cpu.user_pct" = { discrepancy = "30 %", source = "a test" }

[calibrate.against.before.left_out]
"""
REASONS = "\n".join(
    f'"{name}" = "of another server"'
    for name in (
        "messages_accepted",
        "duration_s",
        "throughput_per_s",
        "cpu_idle_pct_min",
        "port_refused_s",
        "cpu.system_pct",
        "cpu.iowait_pct",
        "disk.sdb.w_per_s",
        "disk.sdb.wrqm_per_s",
        "disk.sdb.avgrq_sectors",
        "disk.sdb.await_ms",
        "disk.sdb.svctm_ms",
        "disk.sdb.avgqu_sz",
        "disk.sdb.util_pct",
        "disk.dm-6.w_per_s",
        "disk.dm-6.avgrq_sectors",
        "disk.dm-6.await_ms",
    )
)
FITTED = SMALL.replace("\n[what_if.slow]", f"{PLAN}{REASONS}\n\n[what_if.slow]")
