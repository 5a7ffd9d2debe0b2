"""What the reader of sar's text says of texts of several generations and locales."""

import pytest

from calibration.readers import read_text
from tests.calibration.sar_texts import CHINESE, FILE_7, GERMAN, SAR_12, TEXTS, ZONE

HEADER = "10:00:00        CPU     %user     %nice   %system   %iowait    %steal     %idle\n"
ROW = "10:00:0{}        all      {}.25      0.00      1.00      0.00      0.00     98.75\n"
TITLE = "Linux 6.1.0 (vm) \t{} \t_x86_64_\t(2 CPU)\n\n"


def read(text):
    return read_text(text, "x")


def column(text, name, of=None):
    return [(s.time_s, s.report, s.value) for s in read(text).select(name, of)]


def problems(text):
    return [(problem.line, problem.why) for problem in read(text).problems]


@pytest.mark.parametrize("name", TEXTS)
def test_every_line_of_a_known_text_is_taken_as_sar(name):
    recording = read(TEXTS[name])
    assert recording.problems == ()
    assert "sar" in recording.formats
    assert not any(sample.since_boot for sample in recording.samples)


def test_tables_of_one_time_are_one_report_and_averages_are_none():
    assert column(SAR_12, "user_pct") == [(5.0, 0, 1.25), (10.0, 1, 2.25)]
    assert column(SAR_12, "load1") == [(5.0, 0, 1.25), (10.0, 1, 1.26)]


def test_sizes_are_bytes_and_names_are_kept():
    assert column(SAR_12, "read_bytes_per_s", "vda") == [
        (5.0, 0, 2004.0 * 1024),
        (10.0, 1, 20.0 * 1024),
    ]
    assert column(SAR_12, "mem_free_bytes")[0][2] == 22650212 * 1024
    assert column(SAR_12, "areq_bytes")[0][2] == 121.51 * 1024


def test_facts_are_those_of_the_title_and_the_clock():
    assert read(SAR_12).facts == {
        "kernel": "6.1.0",
        "hostname": "vm",
        "date": "11/21/26",
        "arch": "x86_64",
        "cpus": "2",
        "tool": "sar of sysstat 12.1.2 or later",
        "start": "2026-11-21T07:40:54",
        "interval_s": "5",
    }


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("sar -f 7", "sar of sysstat 6.1.1 to 11.5.6"),
        ("sar de", "sar of sysstat 11.5.6 or earlier"),
        ("sar IST", "sar of sysstat 9.1.7 or later"),
        ("sar zh", "sar"),
    ],
)
def test_titles_tell_the_generation(name, tool):
    assert read(TEXTS[name]).facts["tool"] == tool


def test_table_after_table_goes_back_in_time_and_midnight_does_not():
    assert column(FILE_7, "user_pct", "all") == [
        (598.0, 0, 1.49),
        (1199.0, 1, 3.49),
        (2999.0, 2, 5.49),
    ]
    assert column(FILE_7, "io_per_s") == [(598.0, 0, 1.01), (1199.0, 1, 2.02)]
    assert column(FILE_7, "read_bytes_per_s", "dev8-0")[0][2] == 16 * 512
    assert read(FILE_7).names("cpu") == ["all", "0"]


def test_commas_and_another_word_for_average_are_read():
    assert column(GERMAN, "read_bytes_per_s") == [(1.0, 0, 4096.0), (1.0, 0, 0.0)]


def test_a_clock_of_chinese_words_is_read():
    assert column(CHINESE, "all_read_bytes_per_s") == [(599.0, 0, 8192.0)]
    assert read(CHINESE).facts["start"] == "2025-04-26T11:40:02"


def test_a_zone_behind_the_time_is_no_column():
    assert column(ZONE, "procs_blocked") == [(2.0, 0, 0.0), (4.0, 1, 3.0)]


def test_rows_of_one_second_are_reports_of_their_own_where_a_name_comes_again():
    text = HEADER + ROW.format(1, 1) + ROW.format(1, 2) + ROW.format(2, 3)
    assert column(text, "user_pct") == [(1.0, 0, 1.25), (1.0, 1, 2.25), (2.0, 2, 3.25)]


def test_a_header_that_comes_again_goes_on():
    text = HEADER + ROW.format(1, 1) + HEADER.replace(":00 ", ":01 ") + ROW.format(2, 2)
    assert column(text, "user_pct") == [(1.0, 0, 1.25), (2.0, 1, 2.25)]


def test_colours_change_nothing():
    coloured = HEADER + ROW.format(1, 1).replace("1.25", "\x1b[34;22m1.25\x1b[0m")
    assert column(coloured, "user_pct") == column(HEADER + ROW.format(1, 1), "user_pct")


def test_human_units_are_powers_of_1024_whatever_the_column_counts_in():
    text = "10:00:00    kbmemfree  %memused\n10:00:01        21.5G      1.1%\n"
    assert column(text, "mem_free_bytes") == [(1.0, 0, 21.5 * 2**30)]
    assert column(text, "mem_used_pct") == [(1.0, 0, 1.1)]


def test_bytes_of_an_idle_interface_have_a_unit_too():
    titles = "10:00:00  IFACE  rxpck/s  rxkB/s  txkB/s  %ifutil\n"
    text = titles + "10:00:01  lo  0.00  0.0B  1.5k  0.0%\n"
    assert column(text, "rx_bytes_per_s") == [(1.0, 0, 0.0)]
    assert column(text, "tx_bytes_per_s") == [(1.0, 0, 1536.0)]


def test_names_may_stand_last():
    text = "10:00:00          tps     rkB/s DEV\n10:00:01         1.00      2.00 vda\n"
    assert column(text, "read_bytes_per_s", "vda") == [(1.0, 0, 2048.0)]


def test_mpstat_is_read_by_its_titles_in_its_order():
    text = (
        TITLE.format("11/21/26")
        + "10:00:00     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest"
        "  %gnice   %idle\n"
        "10:00:01     all    1.00    0.00    2.00    3.00    4.00    5.00    6.00    0.00"
        "    0.00   79.00\n"
    )
    assert column(text, "steal_pct") == [(1.0, 0, 6.0)]
    assert column(text, "irq_pct") == [(1.0, 0, 4.0)]


def test_a_report_at_the_time_of_its_header_is_since_boot_after_a_title_only():
    rows = HEADER + ROW.format(0, 1) + ROW.format(1, 2)
    assert [s.since_boot for s in read(rows).samples] == [False] * 12
    titled = read(TITLE.format("11/21/26") + rows)
    assert [s.since_boot for s in titled.samples] == [True] * 6 + [False] * 6


def test_a_title_starts_anew_on_the_day_it_names():
    day = HEADER + ROW.format(1, 1)
    text = TITLE.format("11/20/26") + day + TITLE.format("11/22/26") + day
    assert [time_s for time_s, *_ in column(text, "user_pct")] == [1.0, 1.0 + 2 * 86400]


def test_a_comment_is_no_row_and_no_header():
    comment = "10:00:01  COM the backup begins\n"
    text = HEADER + ROW.format(1, 1) + comment + ROW.format(2, 2)
    assert len(column(text, "user_pct")) == 2
    assert problems(text) == []
    assert [line for line, _ in problems(comment + text)] == [1]


def test_a_release_that_looks_like_a_date_is_none():
    text = "Linux 2.6.16 (mail) \t10/13/2006\n\n" + HEADER + ROW.format(1, 1)
    assert read(text).facts["start"] == "2006-10-13T10:00:00"


def test_a_date_of_two_readings_is_the_nearer_to_the_one_before():
    day = HEADER + ROW.format(1, 1)
    text = TITLE.format("04/05/26") + day + TITLE.format("05/05/26") + day
    assert [time_s for time_s, *_ in column(text, "user_pct")] == [1.0, 1.0 + 86400]
    assert read(text).facts["start"] == "10:00:00"


def test_the_sum_of_interrupts_is_taken_and_single_ones_are_not():
    text = "10:00:00 INTR intr/s\n10:00:01 sum 561.00\n10:00:01 24 1.00\n"
    assert column(text, "intr_per_s") == [(1.0, 0, 561.0)]
    assert problems(text) == []


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("10:00:01        all      1.00      0.00      1.00\n", "sar: 4 words under 7 titles"),
        ("10:00:01        all 1.00 0.00 1.00 0.00 0.00 -nan\n", "sar: '-nan' is not a number"),
        ("10:00:01        all 1.00 0.00 1.00 0.00 0.00 ****\n", "sar: '****' is not a number"),
        (
            "10:00:01        all 1.00 0.00 1.00 0.00 0.00 1e999\n",
            "sar: '1e999' is too large a number",
        ),
        ("10:00:01        all 1.000.00 1.00 0.00 0.00 9.00\n", "sar: 6 words under 7 titles"),
        ("10:00:01        all 1.00 0.00 1.00.5 0.00 0.00 9.0\n", "sar: '1.00.5' is not a number"),
        ("10:00:01        all\n", "not of a known format"),
        ("Average:        all      1.00\n", "not of a known format"),
    ],
)
def test_a_row_that_is_not_as_its_header_says_is_reported(row, why):
    text = HEADER + row + ROW.format(2, 1)
    assert problems(text) == [(2, why)]
    assert len(column(text, "user_pct")) == 1


def test_the_last_line_is_reported_where_it_may_be_cut():
    row = ROW.format(2, 1).rstrip()
    assert problems(HEADER + ROW.format(1, 1) + row) == []
    assert problems(HEADER + ROW.format(1, 1) + row[:-1]) == [
        (3, "sar: the end of the last line may be cut")
    ]
    assert problems(ZONE[: ZONE.index("Average") - 1]) == [
        (3, "sar: the end of the last line may be cut")
    ]


def test_a_table_that_is_not_taken_is_reported_once_and_its_rows_are_not_of_the_table_before():
    sockets = (
        "10:00:0{}       totsck    tcpsck    udpsck    rawsck   ip-frag    tcp-tw\n"
        "10:00:0{}           16         1         0         0         0         0\n"
    )
    text = ZONE[: ZONE.index("Average")].replace("  IST", "") + sockets.format(0, 1) * 2
    assert problems(text) == [(4, "sar: table is not taken")]
    assert len(column(text, "procs_total")) == 2


def test_columns_newer_than_the_reader_are_named():
    text = "10:00:00     pgpgin/s   pgnew/s\n10:00:01         1.00      2.00\n"
    assert problems(text) == [(1, "sar: columns pgnew/s are not taken")]
    assert column(text, "pgin_bytes_per_s") == [(1.0, 0, 1024.0)]


def test_a_line_of_a_log_is_reported_each_time_and_rows_after_it_are_not_guessed():
    log = "10:00:01 ERROR connection lost\n"
    text = HEADER + ROW.format(1, 1) + log + ROW.format(2, 1) + log
    assert [line for line, _ in problems(text)] == [3, 4, 5]
