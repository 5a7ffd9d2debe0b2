"""Texts of tools that were run on one server within minutes, shortened: sysstat 12.6.1, iotop 0.6,
node_exporter 1.5.0 and Prometheus 2.42.0; CloudWatch's follows its documentation.
"""

# ruff: noqa: E501 (lines are as wide as the tools print them)

NODE_EXPORTER = """\
# TYPE node_boot_time_seconds gauge
node_boot_time_seconds 1.795721538e+09
# TYPE node_context_switches_total counter
node_context_switches_total 3.953231e+06
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 2941.43
node_cpu_seconds_total{cpu="0",mode="iowait"} 1.64
node_cpu_seconds_total{cpu="0",mode="irq"} 0
node_cpu_seconds_total{cpu="0",mode="nice"} 1068.84
node_cpu_seconds_total{cpu="0",mode="softirq"} 0.51
node_cpu_seconds_total{cpu="0",mode="steal"} 1.06
node_cpu_seconds_total{cpu="0",mode="system"} 122.43
node_cpu_seconds_total{cpu="0",mode="user"} 1034.25
node_cpu_seconds_total{cpu="1",mode="idle"} 2699.92
node_cpu_seconds_total{cpu="1",mode="iowait"} 5.4
node_cpu_seconds_total{cpu="1",mode="irq"} 0
node_cpu_seconds_total{cpu="1",mode="nice"} 1265.98
node_cpu_seconds_total{cpu="1",mode="softirq"} 5.23
node_cpu_seconds_total{cpu="1",mode="steal"} 1.09
node_cpu_seconds_total{cpu="1",mode="system"} 145.76
node_cpu_seconds_total{cpu="1",mode="user"} 1049.76
# TYPE node_disk_discard_time_seconds_total counter
node_disk_discard_time_seconds_total{device="vda"} 4.204
# TYPE node_disk_discarded_sectors_total counter
node_disk_discarded_sectors_total{device="vda"} 3.558656e+06
# TYPE node_disk_discards_completed_total counter
node_disk_discards_completed_total{device="vda"} 48315
# TYPE node_disk_discards_merged_total counter
node_disk_discards_merged_total{device="vda"} 62
# TYPE node_disk_flush_requests_time_seconds_total counter
node_disk_flush_requests_time_seconds_total{device="vda"} 0.8220000000000001
# TYPE node_disk_flush_requests_total counter
node_disk_flush_requests_total{device="vda"} 7330
# TYPE node_disk_io_now gauge
node_disk_io_now{device="vda"} 0
# TYPE node_disk_io_time_seconds_total counter
node_disk_io_time_seconds_total{device="vda"} 28.66
# TYPE node_disk_io_time_weighted_seconds_total counter
node_disk_io_time_weighted_seconds_total{device="vda"} 254.802
# TYPE node_disk_read_bytes_total counter
node_disk_read_bytes_total{device="vda"} 8.856916992e+09
# TYPE node_disk_read_time_seconds_total counter
node_disk_read_time_seconds_total{device="vda"} 149.91
# TYPE node_disk_reads_completed_total counter
node_disk_reads_completed_total{device="vda"} 370581
# TYPE node_disk_reads_merged_total counter
node_disk_reads_merged_total{device="vda"} 36116
# TYPE node_disk_write_time_seconds_total counter
node_disk_write_time_seconds_total{device="vda"} 99.864
# TYPE node_disk_writes_completed_total counter
node_disk_writes_completed_total{device="vda"} 114336
# TYPE node_disk_writes_merged_total counter
node_disk_writes_merged_total{device="vda"} 354434
# TYPE node_disk_written_bytes_total counter
node_disk_written_bytes_total{device="vda"} 1.0624012288e+10
# TYPE node_forks_total counter
node_forks_total 34127
# TYPE node_intr_total counter
node_intr_total 2.302067e+06
# TYPE node_load1 gauge
node_load1 6.13
# TYPE node_load15 gauge
node_load15 5.64
# TYPE node_load5 gauge
node_load5 6.99
# TYPE node_memory_Buffers_bytes gauge
node_memory_Buffers_bytes 3.7306368e+07
# TYPE node_memory_Cached_bytes gauge
node_memory_Cached_bytes 2.472091648e+09
# TYPE node_memory_Dirty_bytes gauge
node_memory_Dirty_bytes 1.6248832e+07
# TYPE node_memory_MemFree_bytes gauge
node_memory_MemFree_bytes 2.127765504e+10
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 2.5276510208e+10
# TYPE node_procs_blocked gauge
node_procs_blocked 0
# TYPE node_procs_running gauge
node_procs_running 6
# TYPE node_time_seconds gauge
node_time_seconds 1.7957267173268507e+09
# TYPE node_uname_info gauge
node_uname_info{domainname="(none)",machine="x86_64",nodename="vm",release="6.18.44",sysname="Linux",version="#1 SMP PREEMPT_DYNAMIC @0"} 1
# TYPE node_vmstat_pgfault untyped
node_vmstat_pgfault 3.6369835e+07
# TYPE node_vmstat_pgmajfault untyped
node_vmstat_pgmajfault 9992
# TYPE node_vmstat_pgpgin untyped
node_vmstat_pgpgin 8.876722e+06
# TYPE node_vmstat_pgpgout untyped
node_vmstat_pgpgout 1.6846268e+07
# TYPE node_vmstat_pswpin untyped
node_vmstat_pswpin 0
# TYPE node_vmstat_pswpout untyped
node_vmstat_pswpout 0
# TYPE node_boot_time_seconds gauge
node_boot_time_seconds 1.795721538e+09
# TYPE node_context_switches_total counter
node_context_switches_total 3.960823e+06
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 2941.43
node_cpu_seconds_total{cpu="0",mode="iowait"} 1.64
node_cpu_seconds_total{cpu="0",mode="irq"} 0
node_cpu_seconds_total{cpu="0",mode="nice"} 1072.17
node_cpu_seconds_total{cpu="0",mode="softirq"} 0.51
node_cpu_seconds_total{cpu="0",mode="steal"} 1.06
node_cpu_seconds_total{cpu="0",mode="system"} 122.5
node_cpu_seconds_total{cpu="0",mode="user"} 1035
node_cpu_seconds_total{cpu="1",mode="idle"} 2699.92
node_cpu_seconds_total{cpu="1",mode="iowait"} 5.4
node_cpu_seconds_total{cpu="1",mode="irq"} 0
node_cpu_seconds_total{cpu="1",mode="nice"} 1269.56
node_cpu_seconds_total{cpu="1",mode="softirq"} 5.23
node_cpu_seconds_total{cpu="1",mode="steal"} 1.09
node_cpu_seconds_total{cpu="1",mode="system"} 145.91
node_cpu_seconds_total{cpu="1",mode="user"} 1050.2
# TYPE node_disk_discard_time_seconds_total counter
node_disk_discard_time_seconds_total{device="vda"} 4.205
# TYPE node_disk_discarded_sectors_total counter
node_disk_discarded_sectors_total{device="vda"} 3.559328e+06
# TYPE node_disk_discards_completed_total counter
node_disk_discards_completed_total{device="vda"} 48325
# TYPE node_disk_discards_merged_total counter
node_disk_discards_merged_total{device="vda"} 62
# TYPE node_disk_flush_requests_time_seconds_total counter
node_disk_flush_requests_time_seconds_total{device="vda"} 0.842
# TYPE node_disk_flush_requests_total counter
node_disk_flush_requests_total{device="vda"} 7730
# TYPE node_disk_io_now gauge
node_disk_io_now{device="vda"} 0
# TYPE node_disk_io_time_seconds_total counter
node_disk_io_time_seconds_total{device="vda"} 28.716
# TYPE node_disk_io_time_weighted_seconds_total counter
node_disk_io_time_weighted_seconds_total{device="vda"} 255.171
# TYPE node_disk_read_bytes_total counter
node_disk_read_bytes_total{device="vda"} 8.861586432e+09
# TYPE node_disk_read_time_seconds_total counter
node_disk_read_time_seconds_total{device="vda"} 150.183
# TYPE node_disk_reads_completed_total counter
node_disk_reads_completed_total{device="vda"} 371182
# TYPE node_disk_reads_merged_total counter
node_disk_reads_merged_total{device="vda"} 36203
# TYPE node_disk_write_time_seconds_total counter
node_disk_write_time_seconds_total{device="vda"} 99.93900000000001
# TYPE node_disk_writes_completed_total counter
node_disk_writes_completed_total{device="vda"} 115547
# TYPE node_disk_writes_merged_total counter
node_disk_writes_merged_total{device="vda"} 354434
# TYPE node_disk_written_bytes_total counter
node_disk_written_bytes_total{device="vda"} 1.0652213248e+10
# TYPE node_forks_total counter
node_forks_total 34162
# TYPE node_intr_total counter
node_intr_total 2.306252e+06
# TYPE node_load1 gauge
node_load1 6.04
# TYPE node_load15 gauge
node_load15 5.63
# TYPE node_load5 gauge
node_load5 6.96
# TYPE node_memory_Buffers_bytes gauge
node_memory_Buffers_bytes 4.2074112e+07
# TYPE node_memory_Cached_bytes gauge
node_memory_Cached_bytes 2.506829824e+09
# TYPE node_memory_Dirty_bytes gauge
node_memory_Dirty_bytes 3.36896e+07
# TYPE node_memory_MemFree_bytes gauge
node_memory_MemFree_bytes 2.1185769472e+10
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 2.5276510208e+10
# TYPE node_procs_blocked gauge
node_procs_blocked 0
# TYPE node_procs_running gauge
node_procs_running 8
# TYPE node_time_seconds gauge
node_time_seconds 1.7957267214892426e+09
# TYPE node_uname_info gauge
node_uname_info{domainname="(none)",machine="x86_64",nodename="vm",release="6.18.44",sysname="Linux",version="#1 SMP PREEMPT_DYNAMIC @0"} 1
# TYPE node_vmstat_pgfault untyped
node_vmstat_pgfault 3.6390188e+07
# TYPE node_vmstat_pgmajfault untyped
node_vmstat_pgmajfault 10012
# TYPE node_vmstat_pgpgin untyped
node_vmstat_pgpgin 8.881282e+06
# TYPE node_vmstat_pgpgout untyped
node_vmstat_pgpgout 1.6873808e+07
# TYPE node_vmstat_pswpin untyped
node_vmstat_pswpin 0
# TYPE node_vmstat_pswpout untyped
node_vmstat_pswpout 0
# TYPE node_boot_time_seconds gauge
node_boot_time_seconds 1.795721538e+09
# TYPE node_context_switches_total counter
node_context_switches_total 3.968156e+06
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 2941.43
node_cpu_seconds_total{cpu="0",mode="iowait"} 1.64
node_cpu_seconds_total{cpu="0",mode="irq"} 0
node_cpu_seconds_total{cpu="0",mode="nice"} 1076.17
node_cpu_seconds_total{cpu="0",mode="softirq"} 0.51
node_cpu_seconds_total{cpu="0",mode="steal"} 1.06
node_cpu_seconds_total{cpu="0",mode="system"} 122.55
node_cpu_seconds_total{cpu="0",mode="user"} 1035.02
node_cpu_seconds_total{cpu="1",mode="idle"} 2699.92
node_cpu_seconds_total{cpu="1",mode="iowait"} 5.4
node_cpu_seconds_total{cpu="1",mode="irq"} 0
node_cpu_seconds_total{cpu="1",mode="nice"} 1272.06
node_cpu_seconds_total{cpu="1",mode="softirq"} 5.24
node_cpu_seconds_total{cpu="1",mode="steal"} 1.09
node_cpu_seconds_total{cpu="1",mode="system"} 146.01
node_cpu_seconds_total{cpu="1",mode="user"} 1051.65
# TYPE node_disk_discard_time_seconds_total counter
node_disk_discard_time_seconds_total{device="vda"} 4.212
# TYPE node_disk_discarded_sectors_total counter
node_disk_discarded_sectors_total{device="vda"} 3.610688e+06
# TYPE node_disk_discards_completed_total counter
node_disk_discards_completed_total{device="vda"} 48348
# TYPE node_disk_discards_merged_total counter
node_disk_discards_merged_total{device="vda"} 62
# TYPE node_disk_flush_requests_time_seconds_total counter
node_disk_flush_requests_time_seconds_total{device="vda"} 0.855
# TYPE node_disk_flush_requests_total counter
node_disk_flush_requests_total{device="vda"} 8130
# TYPE node_disk_io_now gauge
node_disk_io_now{device="vda"} 0
# TYPE node_disk_io_time_seconds_total counter
node_disk_io_time_seconds_total{device="vda"} 28.736
# TYPE node_disk_io_time_weighted_seconds_total counter
node_disk_io_time_weighted_seconds_total{device="vda"} 255.27
# TYPE node_disk_read_bytes_total counter
node_disk_read_bytes_total{device="vda"} 8.86188544e+09
# TYPE node_disk_read_time_seconds_total counter
node_disk_read_time_seconds_total{device="vda"} 150.19400000000002
# TYPE node_disk_reads_completed_total counter
node_disk_reads_completed_total{device="vda"} 371235
# TYPE node_disk_reads_merged_total counter
node_disk_reads_merged_total{device="vda"} 36203
# TYPE node_disk_write_time_seconds_total counter
node_disk_write_time_seconds_total{device="vda"} 100.008
# TYPE node_disk_writes_completed_total counter
node_disk_writes_completed_total{device="vda"} 116800
# TYPE node_disk_writes_merged_total counter
node_disk_writes_merged_total{device="vda"} 354449
# TYPE node_disk_written_bytes_total counter
node_disk_written_bytes_total{device="vda"} 1.0680356864e+10
# TYPE node_forks_total counter
node_forks_total 34168
# TYPE node_intr_total counter
node_intr_total 2.310527e+06
# TYPE node_load1 gauge
node_load1 6.04
# TYPE node_load15 gauge
node_load15 5.63
# TYPE node_load5 gauge
node_load5 6.94
# TYPE node_memory_Buffers_bytes gauge
node_memory_Buffers_bytes 4.3384832e+07
# TYPE node_memory_Cached_bytes gauge
node_memory_Cached_bytes 2.467815424e+09
# TYPE node_memory_Dirty_bytes gauge
node_memory_Dirty_bytes 4.4191744e+07
# TYPE node_memory_MemFree_bytes gauge
node_memory_MemFree_bytes 2.124896256e+10
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 2.5276510208e+10
# TYPE node_procs_blocked gauge
node_procs_blocked 0
# TYPE node_procs_running gauge
node_procs_running 8
# TYPE node_time_seconds gauge
node_time_seconds 1.7957267255597901e+09
# TYPE node_uname_info gauge
node_uname_info{domainname="(none)",machine="x86_64",nodename="vm",release="6.18.44",sysname="Linux",version="#1 SMP PREEMPT_DYNAMIC @0"} 1
# TYPE node_vmstat_pgfault untyped
node_vmstat_pgfault 3.6400965e+07
# TYPE node_vmstat_pgmajfault untyped
node_vmstat_pgmajfault 10018
# TYPE node_vmstat_pgpgin untyped
node_vmstat_pgpgin 8.881574e+06
# TYPE node_vmstat_pgpgout untyped
node_vmstat_pgpgout 1.6901292e+07
# TYPE node_vmstat_pswpin untyped
node_vmstat_pswpin 0
# TYPE node_vmstat_pswpout untyped
node_vmstat_pswpout 0
"""
PROMETHEUS = """\
{"status":"success","data":{"resultType":"matrix","result":[
{"metric":{"__name__":"node_context_switches_total","instance":"mail1:9100","job":"node"},"values":[[1795726720,"3955891"],[1795726722,"3960502"],[1795726724,"3962797"],[1795726726,"3967510"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"0","instance":"mail1:9100","job":"node","mode":"idle"},"values":[[1795726720,"2941.43"],[1795726722,"2941.43"],[1795726724,"2941.43"],[1795726726,"2941.43"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"0","instance":"mail1:9100","job":"node","mode":"iowait"},"values":[[1795726720,"1.64"],[1795726722,"1.64"],[1795726724,"1.64"],[1795726726,"1.64"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"0","instance":"mail1:9100","job":"node","mode":"irq"},"values":[[1795726720,"0"],[1795726722,"0"],[1795726724,"0"],[1795726726,"0"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"0","instance":"mail1:9100","job":"node","mode":"nice"},"values":[[1795726720,"1070.57"],[1795726722,"1072.09"],[1795726724,"1074.05"],[1795726726,"1076.01"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"0","instance":"mail1:9100","job":"node","mode":"softirq"},"values":[[1795726720,"0.51"],[1795726722,"0.51"],[1795726724,"0.51"],[1795726726,"0.51"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"0","instance":"mail1:9100","job":"node","mode":"steal"},"values":[[1795726720,"1.06"],[1795726722,"1.06"],[1795726724,"1.06"],[1795726726,"1.06"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"0","instance":"mail1:9100","job":"node","mode":"system"},"values":[[1795726720,"122.49"],[1795726722,"122.5"],[1795726724,"122.52"],[1795726726,"122.55"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"0","instance":"mail1:9100","job":"node","mode":"user"},"values":[[1795726720,"1034.53"],[1795726722,"1034.99"],[1795726724,"1035.02"],[1795726726,"1035.02"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"1","instance":"mail1:9100","job":"node","mode":"idle"},"values":[[1795726720,"2699.92"],[1795726722,"2699.92"],[1795726724,"2699.92"],[1795726726,"2699.92"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"1","instance":"mail1:9100","job":"node","mode":"iowait"},"values":[[1795726720,"5.4"],[1795726722,"5.4"],[1795726724,"5.4"],[1795726726,"5.4"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"1","instance":"mail1:9100","job":"node","mode":"irq"},"values":[[1795726720,"0"],[1795726722,"0"],[1795726724,"0"],[1795726726,"0"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"1","instance":"mail1:9100","job":"node","mode":"nice"},"values":[[1795726720,"1267.56"],[1795726722,"1269.48"],[1795726724,"1270.88"],[1795726726,"1272"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"1","instance":"mail1:9100","job":"node","mode":"softirq"},"values":[[1795726720,"5.23"],[1795726722,"5.23"],[1795726724,"5.23"],[1795726726,"5.23"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"1","instance":"mail1:9100","job":"node","mode":"steal"},"values":[[1795726720,"1.09"],[1795726722,"1.09"],[1795726724,"1.09"],[1795726726,"1.09"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"1","instance":"mail1:9100","job":"node","mode":"system"},"values":[[1795726720,"145.83"],[1795726722,"145.89"],[1795726724,"145.94"],[1795726726,"145.99"]]},
{"metric":{"__name__":"node_cpu_seconds_total","cpu":"1","instance":"mail1:9100","job":"node","mode":"user"},"values":[[1795726720,"1050.19"],[1795726722,"1050.19"],[1795726724,"1050.76"],[1795726726,"1051.57"]]},
{"metric":{"__name__":"node_disk_discard_time_seconds_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"4.205"],[1795726722,"4.205"],[1795726724,"4.205"],[1795726726,"4.211"]]},
{"metric":{"__name__":"node_disk_discarded_sectors_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"3559328"],[1795726722,"3559328"],[1795726724,"3559328"],[1795726726,"3610528"]]},
{"metric":{"__name__":"node_disk_discards_completed_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"48325"],[1795726722,"48325"],[1795726724,"48325"],[1795726726,"48328"]]},
{"metric":{"__name__":"node_disk_discards_merged_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"62"],[1795726722,"62"],[1795726724,"62"],[1795726726,"62"]]},
{"metric":{"__name__":"node_disk_flush_requests_time_seconds_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"0.8220000000000001"],[1795726722,"0.842"],[1795726724,"0.842"],[1795726726,"0.854"]]},
{"metric":{"__name__":"node_disk_flush_requests_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"7346"],[1795726722,"7715"],[1795726724,"7730"],[1795726726,"8100"]]},
{"metric":{"__name__":"node_disk_io_now","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"1"],[1795726722,"0"],[1795726724,"0"],[1795726726,"0"]]},
{"metric":{"__name__":"node_disk_io_time_seconds_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"28.696"],[1795726722,"28.716"],[1795726724,"28.716"],[1795726726,"28.732"]]},
{"metric":{"__name__":"node_disk_io_time_weighted_seconds_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"255.079"],[1795726722,"255.168"],[1795726724,"255.173"],[1795726726,"255.252"]]},
{"metric":{"__name__":"node_disk_read_bytes_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"8861434880"],[1795726722,"8861578240"],[1795726724,"8861594624"],[1795726726,"8861606912"]]},
{"metric":{"__name__":"node_disk_read_time_seconds_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"150.18200000000002"],[1795726722,"150.183"],[1795726724,"150.183"],[1795726726,"150.184"]]},
{"metric":{"__name__":"node_disk_reads_completed_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"371176"],[1795726722,"371180"],[1795726724,"371184"],[1795726726,"371187"]]},
{"metric":{"__name__":"node_disk_reads_merged_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"36172"],[1795726722,"36203"],[1795726724,"36203"],[1795726726,"36203"]]},
{"metric":{"__name__":"node_disk_write_time_seconds_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"99.868"],[1795726722,"99.937"],[1795726724,"99.94"],[1795726726,"100.002"]]},
{"metric":{"__name__":"node_disk_writes_completed_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"114397"],[1795726722,"115503"],[1795726724,"115549"],[1795726726,"116692"]]},
{"metric":{"__name__":"node_disk_writes_merged_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"354434"],[1795726722,"354434"],[1795726724,"354449"],[1795726726,"354449"]]},
{"metric":{"__name__":"node_disk_written_bytes_total","device":"vda","instance":"mail1:9100","job":"node"},"values":[[1795726720,"10625544192"],[1795726722,"10651234304"],[1795726724,"10652295168"],[1795726726,"10678255616"]]},
{"metric":{"__name__":"node_intr_total","instance":"mail1:9100","job":"node"},"values":[[1795726720,"2303615"],[1795726722,"2306091"],[1795726724,"2307477"],[1795726726,"2310168"]]},
{"metric":{"__name__":"node_load1","instance":"mail1:9100","job":"node"},"values":[[1795726720,"6.04"],[1795726722,"6.04"],[1795726724,"6.04"],[1795726726,"6.04"]]},
{"metric":{"__name__":"node_load15","instance":"mail1:9100","job":"node"},"values":[[1795726720,"5.63"],[1795726722,"5.63"],[1795726724,"5.63"],[1795726726,"5.63"]]},
{"metric":{"__name__":"node_load5","instance":"mail1:9100","job":"node"},"values":[[1795726720,"6.96"],[1795726722,"6.96"],[1795726724,"6.94"],[1795726726,"6.94"]]},
{"metric":{"__name__":"node_memory_Buffers_bytes","instance":"mail1:9100","job":"node"},"values":[[1795726720,"39616512"],[1795726722,"41644032"],[1795726724,"43343872"],[1795726726,"43372544"]]},
{"metric":{"__name__":"node_memory_Cached_bytes","instance":"mail1:9100","job":"node"},"values":[[1795726720,"2474180608"],[1795726722,"2504634368"],[1795726724,"2510807040"],[1795726726,"2465722368"]]},
{"metric":{"__name__":"node_memory_Dirty_bytes","instance":"mail1:9100","job":"node"},"values":[[1795726720,"23867392"],[1795726722,"31985664"],[1795726724,"38903808"],[1795726726,"44191744"]]},
{"metric":{"__name__":"node_memory_MemFree_bytes","instance":"mail1:9100","job":"node"},"values":[[1795726720,"21240143872"],[1795726722,"21187375104"],[1795726724,"21186342912"],[1795726726,"21242601472"]]},
{"metric":{"__name__":"node_memory_MemTotal_bytes","instance":"mail1:9100","job":"node"},"values":[[1795726720,"25276510208"],[1795726722,"25276510208"],[1795726724,"25276510208"],[1795726726,"25276510208"]]},
{"metric":{"__name__":"node_procs_blocked","instance":"mail1:9100","job":"node"},"values":[[1795726720,"0"],[1795726722,"1"],[1795726724,"0"],[1795726726,"1"]]},
{"metric":{"__name__":"node_procs_running","instance":"mail1:9100","job":"node"},"values":[[1795726720,"11"],[1795726722,"11"],[1795726724,"7"],[1795726726,"8"]]},
{"metric":{"__name__":"node_vmstat_pswpin","instance":"mail1:9100","job":"node"},"values":[[1795726720,"0"],[1795726722,"0"],[1795726724,"0"],[1795726726,"0"]]},
{"metric":{"__name__":"node_vmstat_pswpout","instance":"mail1:9100","job":"node"},"values":[[1795726720,"0"],[1795726722,"0"],[1795726724,"0"],[1795726726,"0"]]}]}}"""
SADF_D = """\
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util
vm;2;2026-11-26 20:39:17 UTC;loop0;0.00;0.00;0.00;0.00;0.00;0.00;0.00;0.00
vm;2;2026-11-26 20:39:17 UTC;vda;1135.50;3234.00;17736.00;110.00;18.56;0.08;0.07;1.80
vm;2;2026-11-26 20:39:19 UTC;loop0;0.00;0.00;0.00;0.00;0.00;0.00;0.00;0.00
vm;2;2026-11-26 20:39:19 UTC;vda;1287.50;320.00;22570.00;0.00;17.78;0.39;0.30;1.20
# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle
vm;2;2026-11-26 20:39:17 UTC;-1;22.31;74.69;3.01;0.00;0.00;0.00
vm;2;2026-11-26 20:39:19 UTC;-1;22.44;74.81;2.74;0.00;0.00;0.00
"""
IOTOP = """\
20:39:23 Total DISK READ:         0.00 K/s | Total DISK WRITE:         0.00 K/s
20:39:23 Current DISK READ:       0.00 K/s | Current DISK WRITE:       0.00 K/s
    TIME  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND
20:39:25 Total DISK READ:       332.55 K/s | Total DISK WRITE:       127.45 K/s
20:39:25 Current DISK READ:     332.55 K/s | Current DISK WRITE:     183.20 K/s
    TIME  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND
20:39:25 15026 be/4 root        0.00 K/s  117.49 K/s ?unavailable?  [kworker/u8:3-writeback]
20:39:25 24827 be/4 root        0.00 K/s    3.98 K/s ?unavailable?  sar -A -o sar.bin 2 6
20:39:25 24828 be/4 root        0.00 K/s    1.99 K/s ?unavailable?  pidstat -urdw 2 6
20:39:25 24829 be/4 root        0.00 K/s    1.99 K/s ?unavailable?  sadc 2 7 -Z -S XALL sar.bin
20:39:25 24905 be/4 root        0.00 K/s    1.99 K/s ?unavailable?  iotop -botk
20:39:25 24901 be/6 root      332.55 K/s    0.00 K/s ?unavailable?  dd if=/dev/sda of=/dev/nullead-jobs4-hdd7200.r1,a_randread/randread-jobs16-hdd7200.r1,4 c_mailq/ext4-p8-hdd7200.r1,c_mailq/ext4-p32-hdd7200.r1,4 c_mailq/xfs-p8-hdd7200.r1,c_mailq/xfs-p32-hdd7200.r1,4 c_mailq/ext3-p8-hdd7200.r1,c_mailq/ext3-p32-hdd7200.r1,4 p_pgbench/tpcb-c8-ext4-hdd7200.r1,p_pgbench/tpcb-c32-ext4-hdd7200.r1,4 p_pgbench/tpcb-c8-ext4-ssd4.r1,p_pgbench/tpcb-c32-ext4-ssd4.r1,4 p_pgbench/tpcb-c8-ext4-ebs.r1,p_pgbench/tpcb-c32-ext4-ebs.r1,4 u_c_mailq/ext4-p8-hdd7200.r1,u_c_mailq/ext4-p32-hdd7200.r1,4
20:39:27 Total DISK READ:       411.13 K/s | Total DISK WRITE:         2.00 K/s
20:39:27 Current DISK READ:     413.13 K/s | Current DISK WRITE:      17.96 K/s
"""
MPSTAT = """\
Linux 6.18.44 (vm) 	11/26/26 	_x86_64_	(2 CPU)

20:39:15     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
20:39:17     all   22.31   74.44    3.26    0.00    0.00    0.00    0.00    0.00    0.00    0.00
20:39:17       0   40.50   53.50    6.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00
20:39:17       1    4.02   95.48    0.50    0.00    0.00    0.00    0.00    0.00    0.00    0.00

20:39:17     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
20:39:19     all   22.50   75.00    2.50    0.00    0.00    0.00    0.00    0.00    0.00    0.00
20:39:19       0   45.00   51.00    4.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00
"""
MPSTAT_JSON = """\
{"sysstat": {
	"hosts": [
		{
			"nodename": "vm",
			"sysname": "Linux",
			"release": "6.18.44",
			"machine": "x86_64",
			"number-of-cpus": 2,
			"date": "11/26/26",
			"statistics": [
				{
					"timestamp": "20:39:29",
					"cpu-load": [
						{"cpu": "all", "usr": 37.16, "nice": 60.85, "sys": 1.75, "iowait": 0.00, "irq": 0.00, "soft": 0.25, "steal": 0.00, "guest": 0.00, "gnice": 0.00, "idle": 0.00}
					]
				},
				{
					"timestamp": "20:39:31",
					"cpu-load": [
						{"cpu": "all", "usr": 47.38, "nice": 49.13, "sys": 3.49, "iowait": 0.00, "irq": 0.00, "soft": 0.00, "steal": 0.00, "guest": 0.00, "gnice": 0.00, "idle": 0.00}
					]
				},
				{
					"timestamp": "20:39:33",
					"cpu-load": [
						{"cpu": "all", "usr": 57.71, "nice": 39.30, "sys": 2.99, "iowait": 0.00, "irq": 0.00, "soft": 0.00, "steal": 0.00, "guest": 0.00, "gnice": 0.00, "idle": 0.00}
					]
				}
			]
		}
	]
}}
"""
PIDSTAT = """\
Linux 6.18.44 (vm) 	11/26/26 	_x86_64_	(2 CPU)

20:39:15      UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command
20:39:17        0         1    0.00    0.50    0.00    0.00    0.50     1  init
20:39:17        0        44    0.00    0.50    0.00    0.00    0.50     1  kworker/1:1H-kblockd
20:39:17        0        77    0.00    0.50    0.00    0.99    0.50     0  kdamond.0
20:39:17        0     23071   91.58    0.00    0.00    7.92   91.58     1  python

"""
PIDSTAT_D = """\
Linux 4.18 (vm) 	11/26/26 	_x86_64_	(2 CPU)

20:39:15      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
20:39:17        0        44      0.00    117.00      4.00       3  a b c
20:39:17      999        50   1024.00      0.00      0.00      90  postgres: writer

20:39:17      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
20:39:19      999        50    512.00      0.00      0.00      10  postgres: writer

Average:      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
Average:        0        44      0.00     58.50      2.00       2  a b c
Average:      999        50    768.00      0.00      0.00      50  postgres: writer
"""
_DISKIO = (
    "diskio,host=vm,name=sda,serial=a\\ b reads={r}i,writes={w}i,read_bytes={rb}i,write_bytes={wb}i,"
    "read_time={rt}i,write_time={wt}i,io_time={t}i,weighted_io_time={q}i,iops_in_progress=0i,"
    "merged_reads=0i,merged_writes=0i {ns}\n"
)
_CPU = "cpu,cpu=cpu{n},host=vm time_user={u},time_system=1,time_idle={i},time_iowait=2 {ns}\n"


def _telegraf_moment(at_s: int, seconds: int) -> str:
    """Return a moment, `seconds` after which 100 reads of 4 KiB and 8 ms have been done a second."""
    ns = at_s * 10**9
    reads = 100 * seconds
    disk = _DISKIO.format(
        r=reads, w=0, rb=4096 * reads, wb=0, rt=8 * reads, wt=0, t=500 * seconds, q=8 * reads, ns=ns
    )
    cpus = "".join(_CPU.format(n=n, u=0.25 * seconds, i=0.75 * seconds, ns=ns) for n in (0, 1))
    total = f"cpu,cpu=cpu-total,host=vm usage_user=25,usage_idle=75 {ns}\n"
    return f"{disk}{cpus}{total}system,host=vm load1=1.5,load5=1,load15=0.5,uptime=9i {ns}\n"


TELEGRAF = "".join(
    _telegraf_moment(1_700_000_000 + 10 * n, seconds) for n, seconds in enumerate((5, 15, 25))
)
TELEGRAF_CSV = (
    "timestamp,measurement,host,name,io_time,iops_in_progress,merged_reads,merged_writes,"
    "read_bytes,read_time,reads,weighted_io_time,write_bytes,write_time,writes\n"
) + "".join(
    f"{1_700_000_000 + 10 * n},diskio,vm,sda,{500 * s},0,0,0,{409600 * s},{800 * s},{100 * s},"
    f"{800 * s},0,0,0\n"
    for n, s in enumerate((5, 15, 25))
)
CLOUDWATCH = """\
{"MetricDataResults": [
 {"Id":"r","Label":"vol-0ab1 VolumeReadOps","Timestamps":["2024-05-01T10:02:00+00:00","2024-05-01T10:01:00+00:00","2024-05-01T10:00:00+00:00"],"Values":[6000,3000,600],"StatusCode":"Complete"},
 {"Id":"w","Label":"vol-0ab1 VolumeWriteOps","Timestamps":["2024-05-01T10:02:00+00:00","2024-05-01T10:01:00+00:00","2024-05-01T10:00:00+00:00"],"Values":[60,0,600],"StatusCode":"Complete"},
 {"Id":"rt","Label":"vol-0ab1 VolumeTotalReadTime","Timestamps":["2024-05-01T10:02:00+00:00","2024-05-01T10:01:00+00:00","2024-05-01T10:00:00+00:00"],"Values":[6,3,1.2],"StatusCode":"Complete"},
 {"Id":"i","Label":"vol-0ab1 VolumeIdleTime","Timestamps":["2024-05-01T10:02:00+00:00","2024-05-01T10:01:00+00:00","2024-05-01T10:00:00+00:00"],"Values":[54,57,59],"StatusCode":"Complete"}],"Messages":[]}
"""
IOSTAT_JSON = """\
{"sysstat": {
	"hosts": [
		{
			"nodename": "vm",
			"sysname": "Linux",
			"release": "6.18.44",
			"machine": "x86_64",
			"number-of-cpus": 2,
			"date": "11/26/26",
			"statistics": [
				{
					"avg-cpu":  {"user": 21.85, "nice": 26.77, "system": 2.89, "iowait": 0.06, "steal": 0.02, "idle": 48.41},
					"disk": [
						{"disk_device": "loop0", "r/s": 10.54, "w/s": 31.35, "d/s": 0.00, "f/s": 0.01, "rkB/s": 45.25, "wkB/s": 1802.22, "dkB/s": 718.90, "rrqm/s": 0.00, "wrqm/s": 0.09, "drqm/s": 0.00, "rrqm": 0.00, "wrqm": 0.30, "drqm": 0.00, "r_await": 1.00, "w_await": 5.10, "d_await": 0.00, "f_await": 0.53, "rareq-sz": 4.29, "wareq-sz": 57.49, "dareq-sz": 1398102.67, "aqu-sz": 0.17, "util": 0.95},
						{"disk_device": "vda", "r/s": 78.50, "w/s": 22.20, "d/s": 9.87, "f/s": 1.75, "rkB/s": 1963.14, "wkB/s": 1858.48, "dkB/s": 442.96, "rrqm/s": 7.80, "wrqm/s": 63.46, "drqm/s": 0.01, "rrqm": 9.03, "wrqm": 74.09, "drqm": 0.11, "r_await": 0.37, "w_await": 0.81, "d_await": 0.09, "f_await": 0.13, "rareq-sz": 25.01, "wareq-sz": 83.73, "dareq-sz": 44.90, "aqu-sz": 0.05, "util": 0.59}
					]
				},
				{
					"avg-cpu":  {"user": 30.85, "nice": 51.24, "system": 17.91, "iowait": 0.00, "steal": 0.00, "idle": 0.00},
					"disk": [

					]
				}
			]
		}
	]
}}
"""

MORE = {
    "iostat json": IOSTAT_JSON,
    "node exporter": NODE_EXPORTER,
    "prometheus": PROMETHEUS,
    "sadf d": SADF_D,
    "iotop": IOTOP,
    "mpstat": MPSTAT,
    "mpstat json": MPSTAT_JSON,
    "pidstat": PIDSTAT,
    "pidstat -d": PIDSTAT_D,
    "telegraf": TELEGRAF,
    "telegraf csv": TELEGRAF_CSV,
    "cloudwatch": CLOUDWATCH,
}
