"""The page cache of one file against a model that keeps a flag for each page."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sim.mm.address_space import (
    MAPPING_BUFFERS,
    MAPPING_SHMEM,
    AddressSpace,
    AddressSpaceOps,
    BackingDevInfo,
)
from sim.mm.filemap import truncate_inode_pages
from sim.mm.vmscan import shrink_lruvec
from sim.mm.writeback import ALL_PAGES, LAST_PAGE
from tests.mm.machines import MS, Machine, S

spans = st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda pair: (pair[0], sum(pair)))


def pages(ranges):
    return {page for start, end in ranges for page in range(start, end)}


class PageCache(RuleBasedStateMachine):
    """Whatever is done to a file's pages, ranges and single pages agree."""

    @initialize(kernel=st.sampled_from(["2.6.16", "2.6.32", "3.15", "4.18"]))
    def boot(self, kernel):
        self.machine = Machine(kernel=kernel)
        self.vm = self.machine.vm
        self.vm.nodes[0].lruvec.grain = 4  # so that lists have many generations
        self.mapping = self.machine.file
        self.resident, self.dirty, self.writing, self.reading = set(), set(), set(), set()
        self.dirtied = self.written = self.discarded = 0

    @rule(span=spans)
    def read(self, span):
        for start, end in self.mapping.missing(*span):
            self.mapping.start_read(start, end)
            self.reading |= set(range(start, end))
            self.resident |= set(range(start, end))

    @rule(span=spans)
    def finish_reading(self, span):
        for page in sorted(self.reading & set(range(*span))):
            self.mapping.end_read(page, page + 1)
            self.reading.remove(page)

    @rule(span=spans)
    def write(self, span):
        span_pages = set(range(*span))
        if self.reading & span_pages:
            return
        assert self.mapping.set_dirty(*span) == len(span_pages - self.dirty)
        self.dirtied += len(span_pages - self.dirty)
        self.dirty |= span_pages
        self.resident |= span_pages

    @rule(span=spans, limit=st.integers(0, 25))
    def write_back(self, span, limit):
        due = sorted((self.dirty - self.writing) & set(range(*span)))[:limit]
        assert pages(self.mapping.clear_dirty_for_io(*span, limit)) == set(due)
        self.dirty -= set(due)
        self.writing |= set(due)

    @rule(span=spans)
    def finish_writing(self, span):
        for start, end in self.mapping.under_writeback.overlap(*span):
            self.mapping.end_writeback(start, end)
            self.writing -= set(range(start, end))
            self.written += end - start

    @rule(start=st.integers(0, 60))
    def truncate(self, start):
        self.mapping.truncate(start)
        gone = {page for page in self.resident if page >= start} - self.writing - self.reading
        self.discarded += len(gone & self.dirty)
        self.resident -= gone
        self.dirty -= gone

    @rule(span=spans)
    def evict(self, span):
        clean = self.resident - self.dirty - self.writing - self.reading
        assert self.mapping.evict_pages(*span) == len(clean & set(range(*span)))
        self.resident -= clean & set(range(*span))

    @rule(span=spans)
    def use(self, span):
        self.mapping.mark_accessed(*span)

    @rule(wanted=st.integers(1, 30))
    def make_room(self, wanted):
        clean = self.resident - self.dirty - self.writing - self.reading
        freed, scanned = shrink_lruvec(self.vm, self.vm.nodes[0].lruvec, wanted)
        gone = self.resident - pages(self.mapping.pages)
        assert len(gone) == freed <= scanned
        assert gone <= clean
        self.resident -= gone

    @rule(span=spans)
    def invalidate(self, span):
        clean = self.resident - self.dirty - self.writing - self.reading
        assert self.mapping.invalidate_clean(*span) == len(clean & set(range(*span)))
        self.resident -= clean & set(range(*span))

    @rule(span=spans)
    def ask(self, span):
        span_pages = set(range(*span))
        assert pages(self.mapping.missing(*span)) == span_pages - self.resident
        assert self.mapping.has_dirty(*span) == bool(self.dirty & span_pages)
        assert self.mapping.has_writeback(*span) == bool(self.writing & span_pages)
        uptodate = span_pages <= self.resident and not self.reading & span_pages
        assert self.mapping.is_uptodate(*span) == uptodate

    @invariant()
    def ranges_and_pages_agree(self):
        if not hasattr(self, "vm"):
            return
        assert pages(self.mapping.pages) == self.resident
        assert pages(self.mapping.dirty) == self.dirty
        assert pages(self.mapping.under_writeback) == self.writing
        assert pages(self.mapping.locked) == self.reading

    @invariant()
    def every_page_is_accounted_for(self):
        if not hasattr(self, "vm"):
            return
        vm = self.vm
        vm.check()
        assert (vm.dirtied, vm.written, vm.discarded) == (
            self.dirtied,
            self.written,
            self.discarded,
        )
        assert vm.nr_file == len(self.resident)


TestPageCache = PageCache.TestCase
TestPageCache.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_mapping_is_on_its_devices_list_from_the_first_dirty_page_on():
    machine = Machine()
    machine.run_until(7)
    machine.file.set_dirty(0, 1)
    machine.run_until(9)
    machine.file.set_dirty(1, 2)
    assert list(machine.bdi.b_dirty) == [machine.file]
    assert machine.file.dirtied_when_ns == 7 * S


def test_waiting_for_writeback_ends_with_the_last_page_and_pulls_the_plug():
    machine = Machine(rate_mib_per_s=1)  # 256 pages a second

    def program(task):
        machine.file.set_dirty(0, 512)
        for start, end in machine.file.clear_dirty_for_io(0, LAST_PAGE, ALL_PAGES):
            middle = (start + end) // 2
            yield from machine.ops.writepage(task, machine.file, start, middle, None)
            yield from machine.ops.writepage(task, machine.file, middle, end, None)
        yield from machine.file.wait_on_writeback(task, 0, LAST_PAGE)
        return machine.calendar.now

    assert machine.do(program) == 2 * S
    assert machine.device.unplugs == 2
    assert machine.vm.written == 512


def test_a_waiter_is_woken_by_its_page_only():
    machine = Machine()
    mapping = machine.file
    woken = []

    def waiter(task, page):
        yield from mapping.wait_on_page(task, page, page + 1)
        woken.append((machine.calendar.now, page))

    mapping.start_read(0, 10)
    machine.task(waiter, 3)
    machine.task(waiter, 7)
    machine.calendar.post(5 * MS, lambda _: mapping.end_read(5, 10), None)
    machine.calendar.post(9 * MS, lambda _: mapping.end_read(0, 5), None)
    machine.run_until(1)
    assert woken == [(5 * MS, 7), (9 * MS, 3)]


def test_sleeping_for_a_page_counts_as_iowait():
    machine = Machine()
    machine.file.start_read(0, 1)
    machine.task(machine.file.wait_on_page, 0, 1)
    machine.run_until(1)
    assert machine.sched.nr_iowait == 1


def test_truncation_waits_for_pages_under_io_and_discards_dirty_ones():
    machine = Machine(rate_mib_per_s=1)

    def program(task):
        machine.file.set_dirty(0, 256)
        for start, end in machine.file.clear_dirty_for_io(0, 128, ALL_PAGES):
            yield from machine.ops.writepage(task, machine.file, start, end, None)
        yield from truncate_inode_pages(task, machine.file, 0)
        machine.file.evict()
        return machine.calendar.now

    assert machine.do(program) == S // 2
    assert (machine.vm.written, machine.vm.discarded) == (128, 128)
    assert not machine.vm.mappings
    assert not machine.bdi.has_dirty_inodes()
    machine.vm.check()


@pytest.mark.parametrize(
    "kind, counter", [(MAPPING_BUFFERS, "nr_buffers"), (MAPPING_SHMEM, "nr_shmem")]
)
def test_pages_count_as_what_they_are_for(kind, counter):
    machine = Machine()
    bdi = BackingDevInfo("memory", None) if kind == MAPPING_SHMEM else machine.bdi
    mapping = AddressSpace(machine.vm, None, AddressSpaceOps(), bdi, kind)
    mapping.add_pages(0, 100)
    assert getattr(machine.vm, counter) == machine.vm.nr_file == 100
    mapping.truncate(40)
    assert getattr(machine.vm, counter) == machine.vm.nr_file == 40
    machine.vm.check()


def test_pages_of_tmpfs_are_never_dirty_nor_dropped():
    machine = Machine()
    mapping = AddressSpace(
        machine.vm, None, AddressSpaceOps(), BackingDevInfo("tmpfs", None), MAPPING_SHMEM
    )
    assert mapping.set_dirty(0, 100) == 0
    assert machine.vm.nr_dirty == 0
    assert not mapping.missing(0, 100)


def test_a_gigabyte_written_and_read_takes_no_more_objects_than_a_megabyte():
    def ranges_after(mib):
        machine = Machine(memory_mib=64 * 1024, rate_mib_per_s=10_000)
        for start in range(0, mib * 256, 256):
            machine.file.set_dirty(start, start + 256)
            for low, high in machine.file.clear_dirty_for_io(start, start + 256, ALL_PAGES):
                machine.file.end_writeback(low, high)
        mapping = machine.file
        return sum(
            part.ranges()
            for part in (mapping.pages, mapping.dirty, mapping.under_writeback, mapping.locked)
        )

    assert ranges_after(1) == ranges_after(1024) == 1
