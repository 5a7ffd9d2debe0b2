"""Job files of fio: what they say, fio's units, and one clear message for each mistake."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.scenario.fio_file import (
    ALIASES,
    OPTIONS,
    REFUSED,
    amount,
    duration_ns,
    law,
    read_fio_text,
    weights,
)
from sim.toml.errors import ScenarioError
from sim.user.fio import Fio

JOB = "[job]\nfilename=/dev/sda\n"


def read(text):
    return read_fio_text(text, Path("x.fio"))


def job(lines):
    [found] = read(JOB + lines).jobs
    return found


def problems(text):
    with pytest.raises(ScenarioError) as caught:
        read(text)
    return [
        (p.place.line, p.place.col, p.message, p.given, p.nearest) for p in caught.value.problems
    ]


# -- Units.


@given(number=st.integers(0, 10**6), power=st.integers(1, 4), base=st.sampled_from([1000, 1024]))
def test_a_prefix_is_that_of_kb_base_and_with_an_i_the_other_one(number, power, base):
    letter = "kmgt"[power - 1]
    for text in (f"{number}{letter}", f"{number}{letter.upper()}", f"{number}{letter}b"):
        assert amount(text, base) == number * base**power
    assert amount(f"{number}{letter}i", base) == number * (2024 - base) ** power


def test_numbers_may_be_hexadecimal_and_bytes():
    assert [amount(text, 1024) for text in ("0x1000", "512", "512b")] == [4096, 512, 512]


@pytest.mark.parametrize(
    ("text", "ns"),
    [("5", 5e9), ("5s", 5e9), ("2m", 120e9), ("1h", 3600e9), ("300ms", 3e8), ("7us", 7e3)],
)
def test_times_are_seconds_without_a_unit(text, ns):
    assert duration_ns(text, "s") == ns


def test_a_think_time_without_a_unit_is_microseconds():
    assert job("thinktime=250").params.think_ns == 250_000


def test_weights_left_open_share_the_rest():
    assert weights("4k/50:8k:16k", 1024) == ((4096, 50.0), (8192, 25.0), (16384, 25.0))


def test_laws_have_fio_s_defaults():
    assert [law(text) for text in ("zipf", "zipf:0.9", "pareto")] == [
        ("zipf", 1.1),
        ("zipf", 0.9),
        ("pareto", 0.2),
    ]


# -- Sections.


def test_global_counts_for_the_sections_behind_it():
    file = read(
        "[global]\nbs=8k\n[a]\nfilename=/dev/sda\n[global]\nbs=16k\n[b]\nfilename=/dev/sda\n"
    )
    assert [found.params.read_split[0][0] for found in file.jobs] == [8192, 16384]
    assert file.global_options == {"bs": "16k"}


def test_defaults_are_fio_s_own():
    params = job("").params
    assert (params.rw, params.ioengine, params.iodepth, params.direct) == (
        "read",
        "psync",
        1,
        False,
    )
    assert params.splits() == (((4096, 100.0),),) * 3
    assert not params.norandommap and not params.time_based and params.invalidate


def test_a_pair_of_sizes_is_for_reads_and_writes():
    assert job("bs=4k,64k").params.splits()[:2] == (((4096, 100.0),), ((65536, 100.0),))
    assert job("bs=,64k").params.splits()[:2] == (((4096, 100.0),), ((65536, 100.0),))


def test_rates_are_for_both_or_for_one():
    params = job("rate_iops=100\nrate=,1m").params
    assert (params.read_iops, params.write_iops) == (100, 100)
    assert (params.read_rate_bytes_per_s, params.write_rate_bytes_per_s) == (0, 2**20)


def test_stonewall_begins_a_group_and_numjobs_is_several_jobs():
    file = read("[global]\nfilename=/dev/sda\n[a]\nnumjobs=2\n[b]\nstonewall\n[c]\n")
    assert [(found.name, found.group) for found in file.jobs] == [
        ("a", 0),
        ("a", 0),
        ("b", 1),
        ("c", 1),
    ]
    assert len({found.params.stream for found in file.jobs}) == 4


def test_a_new_group_reports_apart_and_runs_at_the_same_time():
    file = read("[global]\nfilename=/dev/sda\n[a]\n[b]\nnew_group\n[c]\nstonewall\n")
    assert [(found.group, found.wave) for found in file.jobs] == [(0, 0), (1, 0), (2, 1)]


def test_what_is_overwritten_is_there_beforehand():
    options = "size=1m\nrw=write\nfilename=/f\n"
    [made], [there] = read(f"[a]\n{options}").jobs, read(f"[a]\n{options}overwrite=1").jobs
    assert Fio(made.sized(0)).files() == {}
    assert Fio(there.sized(0)).files() == {"/f": 2**20}


def test_a_file_without_a_name_is_called_as_fio_calls_it():
    file = read("[a]\nsize=1m\ndirectory=/data\nnumjobs=2\n[b]\nsize=1m\nfilename=x\n")
    assert [found.params.filename for found in file.jobs] == ["/data/a.0.0", "/data/a.1.0", "/x"]


def test_shares_are_of_the_whole_in_whole_blocks():
    params = job("size=50%\noffset=10%\nbs=4k").sized(1_000_000)
    assert params.offset_bytes == 24 * 4096
    assert params.size_bytes == 1_000_000 // 2 // 4096 * 4096  # of the file, as fio 3.33
    rest = job("size=95%\noffset=10%\nbs=4k").sized(1_000_000)
    assert rest.offset_bytes + rest.size_bytes <= 1_000_000
    assert rest.size_bytes == (1_000_000 - rest.offset_bytes) // 4096 * 4096


def test_without_a_size_a_job_has_the_rest_of_its_device():
    assert job("offset=4k").sized(10**6).size_bytes == 10**6 - 4096


def test_buffered_is_the_opposite_of_direct():
    assert job("buffered=0").params.direct and not job("buffered=1").params.direct


def test_comments_and_blanks_are_passed_over():
    assert job("; a comment\n\n  # another\n  bs = 8k  ").params.read_split == ((8192, 100.0),)


@pytest.mark.parametrize("hint", ["0", "1", "random", "sequential"])
def test_a_job_says_what_the_kernel_is_told_for_its_read_ahead(hint):
    assert job("").params.fadvise_hint == "1"
    assert job(f"fadvise_hint={hint}").params.fadvise_hint == hint


# -- Mistakes.


@pytest.mark.parametrize(
    ("line", "col", "told"),
    [
        ("iodeph=4", 1, "fio has no option 'iodeph'"),
        ("  bs=4q", 6, "bs: no amount"),
        ("rw=randraed", 4, "rw: 'randraed' is not modelled"),
        ("rw=trimwrite", 4, "rw: mixtures with trims are not modelled"),
        ("rw=read:8", 4, "rw: several of a kind in turn are not modelled"),
        ("ioengine=mmap", 10, "ioengine: 'mmap' is not modelled"),
        ("fadvise_hint=willneed", 14, "fadvise_hint: 'willneed' is not modelled"),
        ("iodepth=0", 9, "iodepth: no such number"),
        ("numjobs=many", 9, "numjobs: no such number"),
        ("runtime=5 parsecs", 9, "runtime: no time"),
        ("direct=yes", 8, "direct: no flag"),
        ("bs=4k,8k,16k", 4, "bs: trims have the value of writes"),
        ("bs=0", 4, "bs: a size of 0"),
        ("bssplit=4k/70:8k/20", 9, "bssplit: weights of 90 %"),
        ("random_distribution=zoned:50/5", 21, "random_distribution: 'zoned' is not modelled"),
        ("random_distribution=zipf:1", 21, "random_distribution: zipf with 1"),
        ("random_distribution=pareto:1.5", 21, "random_distribution: pareto with 1.5"),
        ("size=120%", 6, "size: a share"),
        ("filename=/a:/b", 10, "filename: several files a job are not modelled"),
        ("nrfiles=4", 9, "nrfiles: no such number"),
        ("directory=here", 11, "directory: no path from /"),
        ("verify=md5", 1, "'verify' is not modelled: a simulated file has a size and no contents"),
        ("bs=${SIZE}", 1, "environment variables are not read"),
        ("time_based", 1, "time_based needs 'runtime'"),
        ("ioengine=io_uring\nhipri", 1, "hipri: the page cache is not polled"),
        ("ioengine=libaio\nsqthread_poll=1", 1, "sqthread_poll is an option of io_uring"),
        ("ioengine=io_uring\nsqthread_poll_cpu=1", 1, "sqthread_poll_cpu needs sqthread_poll=1"),
        ("direct=1\nbs=1000", 1, "direct I/O is in whole sectors"),
        ("size=1k", 1, "size is smaller than one block of 'bs'"),
    ],
)
def test_a_mistake_is_told_with_its_place(line, col, told):
    [(_, found_col, message, _, _)] = problems(JOB + line)
    assert (found_col, message.startswith(told)) == (col, True), message


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("io_submit_mode", "a job submits its operations itself, and does not look whether"),
        ("serialize_overlap", "a job submits its operations itself, and does not look whether"),
        ("userspace_reap", "completions of libaio are fetched with io_getevents()"),
        ("force_async", "the kernel alone decides what io_uring gives to a worker"),
        ("nowait", "an operation that has to wait does so"),
        ("uncached", "pages of buffered operations stay in the page cache"),
    ],
)
def test_why_operations_go_the_way_they_do(option, why):
    """tests/cli/test_fio_uring.py has batches, tests/fs/test_io_uring.py who becomes a worker."""
    [(line, col, message, _, _)] = problems(JOB + f"ioengine=io_uring\n{option}=1")
    assert (line, col) == (4, 1)
    assert message.startswith(f"'{option}' is not modelled: {why}")


def test_the_nearest_option_is_named():
    [(line, _, _, _, nearest)] = problems(JOB + "rw_mixread=70")
    assert (line, nearest) == (3, "rwmixread")


def test_all_mistakes_are_told_together():
    found = problems("bs=4k\n[a]\nfoo=1\nbs=x\n[b]\nsize=50%\n")
    assert [line for line, *_ in found] == [1, 2, 3, 4, 6]


@pytest.mark.parametrize("text", ["", "; nothing\n", "[global]\nbs=4k\n"])
def test_a_file_without_a_job_says_so(text):
    [(_, _, message, _, _)] = problems(text)
    assert message.startswith("no job")


def test_a_file_s_job_needs_a_size():
    [(line, _, message, _, _)] = problems("[a]\nfilename=/x\n")
    assert (line, message) == (1, "[a] lacks 'size' (of its file)")


def test_no_option_is_both_read_and_refused():
    assert not (OPTIONS.keys() | ALIASES.keys()) & REFUSED.keys()
    assert set(ALIASES.values()) <= set(OPTIONS)


@given(st.text(max_size=60))
def test_no_text_makes_the_reader_fail(text):
    try:
        read("[a]\n" + text)
    except ScenarioError as error:
        assert error.problems


def test_trims_are_of_a_device():
    text = "[job]\nrw=trim\nfilename=/file\nsize=1m\n"
    assert [message for _, _, message, _, _ in problems(text)] == ["trims are of a device"]
