"""What iostat of several generations printed: two reports, the first since boot, of one server."""

TITLE_7 = "Linux 2.6.16.60-0.21-smp (mx1) \t05/01/07\n\n"
TITLE_9 = "Linux 2.6.32-131.el6.x86_64 (mx1) \t05/01/2017 \t_x86_64_\t(4 CPU)\n\n"
CPU_5 = (
    "avg-cpu:  %user   %nice    %sys %iowait   %idle\n"
    "           5.92    0.00    5.36   21.74   66.98\n\n"
)
CPU = (
    "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
    "           5.92    0.00    5.36   21.74    0.00   66.98\n\n"
)
CPU_HUMAN = (
    "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
    "           5.9%    0.0%    5.4%   21.7%    0.0%   67.0%\n\n"
)
# -x of 5 and 6: sectors and kB side by side; names with /dev/.
EXTENDED_5 = (
    "Device:    rrqm/s wrqm/s   r/s   w/s  rsec/s  wsec/s    rkB/s    wkB/s avgrq-sz avgqu-sz"
    "   await  svctm  %util\n"
    "/dev/sda     0.00  10.00  0.00  3.00    0.00  112.00     0.00    56.00    37.33     0.03"
    "    8.53   5.33   1.60\n\n"
)
# -k -x of 7: a name of more than 13 letters has a line of its own.
EXTENDED_7 = (
    "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await"
    "  svctm  %util\n"
    "sda               0.00    10.00    0.00    3.00     0.00    56.00    37.33     0.03    8.53"
    "   5.33   1.60\n"
    "cciss/c0d0p12345\n"
    "                  0.00     0.00    1.00    0.00     4.00     0.00     8.00     0.01   10.00"
    "  10.00   1.00\n\n"
)
BASIC_9 = (
    "Device:            tps   Blk_read/s   Blk_wrtn/s   Blk_read   Blk_wrtn\n"
    "sda               3.00         0.00       112.00          0        560\n\n"
)
# -h of 10 and 11: every name on a line of its own; 11.5.3 adds units.
HUMAN_11 = (
    "Device:            tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\n"
    "sda\n"
    "                  3.00         0.0k        56.0k       0.0k     280.0k\n\n"
)
# -x of 12.0: discards are not yet there, svctm still is.
EXTENDED_12_0 = (
    "Device            r/s     w/s     rkB/s     wkB/s   rrqm/s   wrqm/s  %rrqm  %wrqm r_await"
    " w_await aqu-sz rareq-sz wareq-sz  svctm  %util\n"
    "sda              0.00    3.00      0.00     56.00     0.00    10.00   0.00  76.92    0.00"
    "    8.53   0.03     0.00    18.67   5.33   1.60\n\n"
)
# -h -x of 12.1.5 and later: four tables, the name last.
HUMAN_12 = (
    "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n"
    "    0.00      0.0k     0.00   0.0%    0.00     0.0k sda\n\n"
    "     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device\n"
    "    3.00     56.0k    10.00  76.9%    8.53    18.7k sda\n\n"
    "     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz Device\n"
    "    0.00      0.0k     0.00   0.0%    0.00     0.0k sda\n\n"
    "     f/s f_await  aqu-sz  %util Device\n"
    "    0.20    4.12    0.03   1.6% sda\n\n\n"
)
SHORT_12 = (
    "Device             tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util\n"
    "sda               3.00     56.00    10.00    8.53    18.67    0.03   1.60\n"
    " all              3.00     56.00    10.00    8.53    18.67    0.03   0.80\n\n\n"
)
SHORT_BASIC_12 = (
    "Device             tps    kB_read/s     kB_w+d/s    kB_read     kB_w+d\n"
    "sda               3.00         0.00        56.00          0        280\n\n\n"
)


def _twice(title, report, times=("", "")):
    return title + "".join(time + report for time in times)


# name -> two reports
TEXTS = {
    "5": _twice(TITLE_7, CPU_5 + EXTENDED_5, ("Time: 11:59:58 PM\n", "Time: 12:00:03 AM\n")),
    "7 -k -x": _twice(TITLE_7, CPU + EXTENDED_7, ("Time: 23:59:58\n", "Time: 00:00:03\n")),
    "9": _twice(TITLE_9, CPU + BASIC_9, ("04/30/2017 11:59:58 PM\n", "05/01/2017 12:00:03 AM\n")),
    "11 -h": _twice(
        TITLE_9, CPU_HUMAN + HUMAN_11, ("30.04.2017 23:59:58\n", "01.05.2017 00:00:03\n")
    ),
    "12.0": _twice(TITLE_9, CPU + EXTENDED_12_0, ("30/04/17 23:59:58\n", "01/05/17 00:00:03\n")),
    "12 -h -x": _twice(
        TITLE_9, CPU_HUMAN + HUMAN_12, ("2017-04-30T23:59:58+0000\n", "2017-05-01T01:00:03+0100\n")
    ),
    "12 -s -x -g": _twice(TITLE_9, CPU + SHORT_12, ("04/30/17 23:59:58\n", "05/01/17 00:00:03\n")),
    "12 -s": _twice(TITLE_9, CPU + SHORT_BASIC_12, ("04/30/17 23:59:58\n", "05/01/17 00:00:03\n")),
}
# the sda of every one of them, in the columns that it has
SDA = {
    "rrqm_per_s": 0,
    "wrqm_per_s": 10,
    "r_per_s": 0,
    "w_per_s": 3,
    "d_per_s": 0,
    "f_per_s": 0.2,
    "drqm_per_s": 0,
    "rqm_per_s": 10,
    "io_per_s": 3,
    "read_bytes_per_s": 0,
    "write_bytes_per_s": 57344,
    "discard_bytes_per_s": 0,
    "bytes_per_s": 57344,
    "write_discard_bytes_per_s": 57344,
    "read_bytes": 0,
    "write_bytes": 286720,
    "write_discard_bytes": 286720,
    "rrqm_pct": 0,
    "wrqm_pct": 76.92,
    "drqm_pct": 0,
    "await_ms": 8.53,
    "r_await_ms": 0,
    "w_await_ms": 8.53,
    "d_await_ms": 0,
    "f_await_ms": 4.12,
    "svctm_ms": 5.33,
    "areq_bytes": 19115,
    "rareq_bytes": 0,
    "wareq_bytes": 19115,
    "dareq_bytes": 0,
    "aqu_sz": 0.03,
    "util_pct": 1.6,
}
