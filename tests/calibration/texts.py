"""Texts as tools print them, one or more of each format, and random cuts and mixtures of them.

Texts of procps 4.0.2, util-linux, coreutils and GNU time were printed by them; those of older tools
follow the format strings of their sources.
"""

# ruff: noqa: E501 W291 (lines are as wide as the tools print them)

VMSTAT = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 5  0      0 23872808   2128 642112  287  278  1735  4765 2725 16624 43 17 27 12  0
 2  1      0 23872808   2128 642112    0    0   208     0  555  792  8  1 56 36  0
 2  1   1024 23872808   2128 642112    4    8   296     0  614  979  0  1 50 50  0
"""
VMSTAT_STAMPED = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free  inact active   si   so    bi    bo   in   cs us sy id wa st                 UTC
 3  0      0 22160988 1381944 343572    0    0   397   572  185  215 44  2 54  0  0 2026-11-21 07:37:26
 2  0      0 22160988 1381944 343572    0    0    16     8  466  409 48  3 49  0  0 2026-11-21 07:37:28
"""
VMSTAT_3_2 = """\
procs -----------memory---------- ---swap-- -----io---- --system-- ----cpu----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in    cs us sy id wa
 0  1      0 262520  80232 912404    0    0    21    83   47    62  1  0 98  1
 1  1      0 262512  80232 912404    0    0     0   388 1120   804  4  2 44 50
"""
VMSTAT_2 = """\
   procs                      memory    swap          io     system         cpu
 r  b  w   swpd   free   buff  cache  si  so    bi    bo   in    cs  us  sy  id
 0  0  0   1024  13440   1400  45348   0   0     1     2  103     9   1   0  99
"""
VMSTAT_WIDE = """\
--procs-- -----------------------memory---------------------- ---swap-- -----io---- -system-- ----------cpu----------
   r    b         swpd         free         buff        cache   si   so    bi    bo   in   cs  us  sy  id  wa  st  gu
   3    0            0     22167724        25276      2113012    0    0   397   573  185  215  44   2  54   0   0   0
   2    0            0     22167724        25276      2113012    0    0    72    96  865 1396  35  19  40   0   0   6
"""
VMSTAT_DISK = """\
disk- ------------reads------------ ------------writes----------- -----IO------
       total merged sectors      ms  total merged sectors      ms    cur    sec
sda    12004   1402  480112   60021   6001    606  480112   60033      0     90
loop0      0      0       0       0      0      0       0       0      0      0
"""
VMSTAT_PARTITION = """\
sda1          reads   read sectors  writes    requested writes
               12004     480112       6001     480112
"""
VMSTAT_SUM = """\
     24684084 K total memory
       680928 K used memory
       343776 K active memory
      1370440 K inactive memory
     22177684 K free memory
        25328 K buffer memory
      2113696 K swap cache
            0 K total swap
            0 K used swap
            0 K free swap
      1027697 non-nice user cpu ticks
        41277 nice user cpu ticks
        53847 system cpu ticks
      1299370 idle cpu ticks
         3497 IO-wait cpu ticks
            0 IRQ cpu ticks
          622 softirq cpu ticks
          765 stolen cpu ticks
            0 non-nice guest cpu ticks
            0 nice guest cpu ticks
      9634785 K paged in
     13894572 K paged out
            0 pages swapped in
            0 pages swapped out
      4496550 interrupts
      5208684 CPU context switches
   1795234493 boot time
        88659 forks
"""
UPTIME = """\
 07:37:31 up  3:22,  0 user,  load average: 1.98, 1.57, 1.18
 07:37:36 up 12 days,  3:22,  1 user,  load average: 2.15, 1.60, 1.19
 07:37:41 up 1 day, 22 min,  2 users,  load average: 0,15, 0,20, 0,25
 07:37:46 up 10 min,  load average: 37.10 20.04 9.99
"""
TOP_3_2 = """\
top - 11:45:12 up 1246 days, 14:49,  3 users,  load average: 1.55, 1.73, 1.67
Tasks: 108 total,   1 running, 107 sleeping,   0 stopped,   0 zombie
Cpu(s): 10.6%us,  1.7%sy,  0.0%ni,  4.6%id, 82.3%wa,  0.0%hi,  0.2%si,  0.6%st
Mem:   1695600k total,  1682160k used,    13440k free,     1400k buffers
Swap:  2096120k total,  1003088k used,  1093032k free,    45348k cached

  PID USER      PR  NI  VIRT  RES  SHR S %CPU %MEM    TIME+  COMMAND
29702 john      20   0 2956m 1.3g 3984 S 21.4 77.9 490:35.59 factomd
"""
TOP_2_0 = """\
  3:54pm  up 1 day, 21:01,  3 users,  load average: 0.04, 0.03, 0.00
61 processes: 60 sleeping, 1 running, 0 zombie, 0 stopped
CPU states:  1.0% user  0.5% system  0.0% nice 98.5% idle
Mem:   255992K av,  250036K used,    5956K free,       0K shrd,   66476K buff
Swap:  530104K av,    1684K used,  528420K free                  103604K cached

  PID USER     PRI  NI  SIZE  RSS SHARE STAT %CPU %MEM   TIME COMMAND
    1 root       8   0   476  432   416 S     0.0  0.1   0:04 init
"""
TOP_4_0 = """\
top - 07:37:31 up  3:22,  0 user,  load average: 1.98, 1.57, 1.18
Tasks:  91 total,   1 running,  90 sleeping,   0 stopped,   0 zombie
%Cpu(s):  0.0 us,  0.0 sy,  0.0 ni,100.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st 
MiB Mem :  24105.6 total,  21870.7 free,    460.7 used,   2080.5 buff/cache     
MiB Swap:      0.0 total,      0.0 free,      0.0 used.  23644.8 avail Mem 

  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    1 root      20   0   52388  20612   6304 S   0.0   0.1   0:39.15 init
"""
FREE_4_0 = """\
               total        used        free      shared  buff/cache   available
Mem:        24684084      476784    22391280        8872     2129568    24207300
Swap:        2096120      945552     1150568
"""
FREE_3_2 = """\
             total       used       free     shared    buffers     cached
Mem:       1695600    1682160      13440          0       1400      45348
-/+ buffers/cache:    1635412      60188
Swap:      2096120    1003088    1093032
"""
FREE_HUMAN = """\
               total        used        free      shared  buff/cache   available
Mem:            23Gi       465Mi        21Gi       8.7Mi       2.0Gi        23Gi
Swap:             0B          0B          0B
"""
SWAPON = """\
Filename                                Type            Size    Used    Priority
/dev/xvdk1                              partition       2096120 945552  -1
"""
SWAPON_SHOW = """\
NAME       TYPE      SIZE   USED PRIO
/dev/xvdk1 partition   2G 923.4M   -2
/swapfile  file        1G     0B   -3
"""
CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) CPU E5-2650 0 @ 2.00GHz
cpu MHz\t\t: 1799.999
flags\t\t: fpu de tsc msr
bogomips\t: 3599.99

processor\t: 1
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) CPU E5-2650 0 @ 2.00GHz
cpu MHz\t\t: 1200.000
"""
DD = """\
1000+0 records in
1000+0 records out
1048576000 bytes (1.0 GB, 1000 MiB) copied, 0.0199022 s, 52.7 GB/s
"""
DD_6 = """\
2048+0 records in
2048+0 records out
2147483648 bytes (2.1 GB) copied, 16.088 seconds, 133 MB/s
"""
DD_5 = "2147483648 bytes transferred in 16.088000 seconds (133483569 bytes/sec)\n"
DD_GERMAN = """\
8192+0 Datens\u00e4tze ein
8192+0 Datens\u00e4tze aus
8589934592 Bytes (8,6 GB, 8,0 GiB) kopiert, 136,916 s, 62,7 MB/s
"""
HDPARM = """\
/dev/sda1:
 Timing cached reads:   3810 MB in  2.00 seconds = 1904.67 MB/sec
 Timing buffered disk reads:  194 MB in  3.02 seconds =  64.25 MB/sec
"""
TIME_BASH = "real\t0m16.088s\nuser\t0m0.009s\nsys\t0m8.756s\n"
TIME_POSIX = "real 16.09\nuser 0.01\nsys 8.76\n"
TIME_GNU = """\
0.01user 8.75system 0:16.08elapsed 54%CPU (0avgtext+0avgdata 984maxresident)k
0inputs+0outputs (3major+70minor)pagefaults 0swaps
"""
TIME_VERBOSE = """\
\tCommand being timed: "dd if=/dev/zero of=x"
\tUser time (seconds): 0.01
\tSystem time (seconds): 8.75
\tPercent of CPU this job got: 54%
\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:02:16.50
\tMaximum resident set size (kbytes): 1032
\tMajor (requiring I/O) page faults: 1
\tMinor (reclaiming a frame) page faults: 71
\tVoluntary context switches: 3
\tInvoluntary context switches: 0
\tPage size (bytes): 4096
\tExit status: 0
"""
BLOCK_DUMP = "wc(3500): 1\nkjournald(1624): 582\n"
DISKSTATS = """\
   8       0 sda 120000 0 960000 600000 60000 6060 960000 600000 0 900000 1200000 0 0 0 0 10 5
   8       1 sda1 119000 0 950000 590000 60000 6060 960000 600000 0 890000 1190000 0 0 0 0 0 0
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""
STAT = """\
cpu  60600 0 20200 80800 40400 0 0 0 0 0
cpu0 30300 0 10100 40400 20200 0 0 0 0 0
cpu1 30300 0 10100 40400 20200 0 0 0 0 0
intr 500000 0 9
ctxt 2500000
btime 1795234493
processes 4000
procs_running 3
procs_blocked 7
softirq 1000 0 1
"""
LOADAVG = "12.34 5.67 2.50 3/456 12345\n"
UPTIME_PROC = "1010.00 808.00\n"
VMSTAT_PROC = "nr_free_pages 16384\nnr_dirty 55\nnr_writeback 2\npgpgin 480000\npswpin 50000\n"
MEMINFO = """\
MemTotal:        1048576 kB
MemFree:           65536 kB
Buffers:           32768 kB
Active(anon):      32768 kB
SwapTotal:       2097152 kB
SwapFree:        1572864 kB
HugePages_Total:       0
"""
PROC = UPTIME_PROC + LOADAVG + STAT + DISKSTATS + VMSTAT_PROC + MEMINFO
IOSTAT = """\
Linux 2.6.32 (host) \t05/01/17 \t_x86_64_\t(1 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           0.92    0.00    0.17    0.24    0.85   97.83

Device:            tps   Blk_read/s   Blk_wrtn/s   Blk_read   Blk_wrtn
xvdj              0.57         6.90         6.41        690        641
"""

TEXTS = {
    "vmstat": VMSTAT,
    "vmstat -t -a": VMSTAT_STAMPED,
    "vmstat 3.2": VMSTAT_3_2,
    "vmstat 2": VMSTAT_2,
    "vmstat -w": VMSTAT_WIDE,
    "vmstat -d": VMSTAT_DISK,
    "vmstat -p": VMSTAT_PARTITION,
    "vmstat -s": VMSTAT_SUM,
    "uptime": UPTIME,
    "top 3.2": TOP_3_2,
    "top 2.0": TOP_2_0,
    "top 4.0": TOP_4_0,
    "free 4.0": FREE_4_0,
    "free 3.2": FREE_3_2,
    "free -h": FREE_HUMAN,
    "swapon": SWAPON,
    "swapon --show": SWAPON_SHOW,
    "cpuinfo": CPUINFO,
    "dd": DD,
    "dd 6": DD_6,
    "dd 5": DD_5,
    "dd German": DD_GERMAN,
    "hdparm": HDPARM,
    "time bash": TIME_BASH,
    "time -p": TIME_POSIX,
    "time GNU": TIME_GNU,
    "time -v": TIME_VERBOSE,
    "block_dump": BLOCK_DUMP,
    "diskstats": DISKSTATS,
    "stat": STAT,
    "loadavg": LOADAVG,
    "vmstat /proc": VMSTAT_PROC,
    "meminfo": MEMINFO,
    "proc": PROC,
}


def values(recording, column, *, since_boot=False):
    """Return the values of a column in the order recorded."""
    return [sample.value for sample in recording.select(column, since_boot=since_boot)]


def row(recording, report=0, name=None, *, since_boot=False):
    """Return column -> value of one report."""
    return {
        sample.column: sample.value
        for sample in recording.samples
        if sample.report == report
        and sample.since_boot == since_boot
        and (name is None or sample.name == name)
    }


def iostat_row(
    name: str,
    *,
    r: float = 0,
    r_await: float = 0,
    w: float = 0,
    w_await: float = 0,
    f: float = 0,
    f_await: float = 0,
    util: float,
    kib: float = 8,
    merged: float = 0,
) -> str:
    """Return a device's row of sysstat 12: reads, writes and flushes a second, what each takes."""
    queue = (r * r_await + w * w_await) / 1000
    return (
        f"{name} {r:.2f} {kib * r:.2f} 0.00 0.00 {r_await:.2f} {kib if r else 0:.2f}"
        f" {w:.2f} {kib * w:.2f} {merged:.2f} 0.00 {w_await:.2f} {kib if w else 0:.2f}"
        " 0.00 0.00 0.00 0.00 0.00 0.00"
        f" {f:.2f} {f_await:.2f} {queue:.2f} {util:.2f}\n"
    )


def task(name: str, state: str = "D", flags: int = 0) -> str:
    """Return the line of a task in a recorder's sample."""
    return f"77 ({name}) {state} 1 77 77 0 -1 {flags} 0\n"


def samples_of_tasks(*seconds: str) -> str:
    """Return a recorder's samples, one a second, each with the lines of its tasks."""
    text = "=== start 2024-03-01T10:00:00.000+0000 interval_s=1\n"
    for second, tasks in enumerate(seconds):
        text += f"=== 2024-03-01T10:00:0{second}.000+0000\n==> /proc/PID/task/TID/stat <==\n"
        text += f"{tasks}=== end\n"
    return text
