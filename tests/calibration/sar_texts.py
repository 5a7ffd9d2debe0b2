"""Texts as sar prints them, of several generations and locales.

SAR_12 was printed by sysstat 12.6.1 (`sar -u -q -d -r 5 2`, cut to what differs); the others follow
the format strings of their sources.
"""

SAR_12 = """\
Linux 6.1.0 (vm) \t11/21/26 \t_x86_64_\t(2 CPU)

07:40:54        CPU     %user     %nice   %system   %iowait    %steal     %idle
07:40:59        all      1.25     99.00      1.00      0.00      0.00      0.50

07:40:54    kbmemfree   kbavail kbmemused  %memused kbbuffers  kbcached  kbcommit   %commit  kbactive   kbinact   kbdirty
07:40:59     22650212  24045508    278920      1.13     93648    988892    328608      1.33    373624    897510       220

07:40:54      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked
07:40:59            2       105      1.25      1.20      1.10         0

07:40:54          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util
07:40:59          vda     45.00   2004.00   2308.00   1156.00    121.51      0.06      1.29      0.80

07:40:59        CPU     %user     %nice   %system   %iowait    %steal     %idle
07:41:04        all      2.25     98.00      1.00      0.00      0.00      0.75

07:40:59    kbmemfree   kbavail kbmemused  %memused kbbuffers  kbcached  kbcommit   %commit  kbactive   kbinact   kbdirty
07:41:04     22650000  24045500    278921      1.14     93648    988893    328609      1.34    373625    897511       221

07:40:59      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked
07:41:04            3       106      1.26      1.21      1.11         1

07:40:59          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util
07:41:04          vda      5.00     20.00     80.00      0.00     20.00      0.01      2.00      0.40

Average:        CPU     %user     %nice   %system   %iowait    %steal     %idle
Average:        all      1.75     98.50      1.00      0.00      0.00      0.62

Average:    kbmemfree   kbavail kbmemused  %memused kbbuffers  kbcached  kbcommit   %commit  kbactive   kbinact   kbdirty
Average:     22650106  24045504    278920      1.14     93648    988892    328608      1.34    373624    897510       220

Average:      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked
Average:            2       106      1.25      1.20      1.10         0

Average:          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util
Average:          vda     25.00   1012.00   1194.00    578.00    111.36      0.04      1.36      0.60
"""  # noqa: E501
# A day's file of sysstat 7 over midnight, and a restart (sar -f, -u -P ALL and -d).
FILE_7 = """\
Linux 2.6.18-194.el5PAE (dev-db) \t03/26/2011

11:50:01 PM       CPU     %user     %nice   %system   %iowait    %steal     %idle
11:59:59 PM       all      1.49      0.00      1.49     93.53      0.00      3.49
11:59:59 PM         0      2.49      0.00      1.49     92.53      0.00      3.49
12:10:00 AM       all      3.49      0.00      1.49     91.53      0.00      3.49
12:10:00 AM         0      4.49      0.00      1.49     90.53      0.00      3.49
Average:          all      2.49      0.00      1.49     92.53      0.00      3.49
Average:            0      3.49      0.00      1.49     91.53      0.00      3.49

11:50:01 PM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
11:59:59 PM    dev8-0      1.01     16.00      8.00     23.76      0.02      4.00      1.00      0.10
12:10:00 AM    dev8-0      2.02     32.00     16.00     23.76      0.04      4.25      1.25      0.25
Average:       dev8-0      1.51     24.00     12.00     23.76      0.03      4.12      1.12      0.17

12:30:00 AM       LINUX RESTART

12:35:00 AM       CPU     %user     %nice   %system   %iowait    %steal     %idle
12:40:00 AM       all      5.49      0.00      1.49     89.53      0.00      3.49
12:40:00 AM         0      6.49      0.00      1.49     88.53      0.00      3.49
Average:          all      5.49      0.00      1.49     89.53      0.00      3.49
Average:            0      6.49      0.00      1.49     88.53      0.00      3.49
"""  # noqa: E501
# Commas, another word for Average, a clock of words (\u65f6 \u5206 \u79d2), the middle of a text.
GERMAN = """\
13:57:03          DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util
13:57:04      dev8-16      1,00      8,00      0,00      8,00      0,01      5,00      5,00      0,50
13:57:04       dev8-0      0,00      0,00      0,00      0,00      0,00      0,00      0,00      0,00
Durchschn.:   dev8-16      1,00      8,00      0,00      8,00      0,01      5,00      5,00      0,50
Durchschn.:    dev8-0      0,00      0,00      0,00      0,00      0,00      0,00      0,00      0,00
"""  # noqa: E501
CHINESE = """\
Linux 3.10.0-1160.el7.x86_64 (localhost) \t2025\u5e7404\u670826\u65e5 \t_x86_64_\t(2 CPU)

11\u65f640\u520602\u79d2       tps      rtps      wtps   bread/s   bwrtn/s
11\u65f650\u520601\u79d2      0.80      0.20      0.60     16.00     21.61
\u5e73\u5747\u65f6\u95f4:      0.80      0.20      0.60     16.00     21.61
"""
ZONE = """\
02:00:44  IST   runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked
02:00:46  IST         1       431      1.67      1.22      0.97         0
02:00:48  IST         2       432      1.70      1.23      0.98         3
Average:              2       431      1.68      1.22      0.97         2
"""
PSI = """\
Linux 6.18.44 (vm) \t11/30/26 \t_x86_64_\t(2 CPU)

11:44:01     %scpu-10  %scpu-60 %scpu-300     %scpu
11:44:02         1.28      0.94      2.88      1.71

11:44:01      %sio-10   %sio-60  %sio-300      %sio   %fio-10   %fio-60  %fio-300      %fio
11:44:02        78.40     87.54     77.65     77.30     74.85     84.82     75.34     74.19

11:44:01     %smem-10  %smem-60 %smem-300     %smem  %fmem-10  %fmem-60 %fmem-300     %fmem
11:44:02         0.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00
"""
TEXTS = {
    "sar psi": PSI,
    "sar 12": SAR_12,
    "sar -f 7": FILE_7,
    "sar de": GERMAN,
    "sar zh": CHINESE,
    "sar IST": ZONE,
}
