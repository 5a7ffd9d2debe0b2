"""Tags of pages against a dictionary of pages."""

from hypothesis import given
from hypothesis import strategies as st

from sim.mm.page_tags import NO_TAG, PageTags

SPANS = st.tuples(st.integers(0, 40), st.integers(1, 15), st.sampled_from([NO_TAG, 0, 1, 2]))


@given(st.lists(SPANS, max_size=40))
def test_runs_say_of_each_page_what_was_last_set(changes):
    tags, pages = PageTags(), {}
    for start, count, tag in changes:
        tags.set(start, start + count, tag)
        pages.update(dict.fromkeys(range(start, start + count), tag))
        tags.check()
    told = {page: tag for low, high, tag in tags.all_runs() for page in range(low, high)}
    assert told == {page: tag for page, tag in pages.items() if tag != NO_TAG}


@given(st.lists(SPANS, max_size=20), st.integers(0, 60), st.integers(1, 30))
def test_a_part_is_what_the_whole_says_of_it(changes, start, count):
    tags = PageTags()
    for first, number, tag in changes:
        tags.set(first, first + number, tag)
    whole = {page: tag for low, high, tag in tags.all_runs() for page in range(low, high)}
    part = {p: tag for low, high, tag in tags.runs(start, start + count) for p in range(low, high)}
    assert part == {p: tag for p, tag in whole.items() if start <= p < start + count}


@given(st.lists(SPANS, max_size=20), st.integers(0, 60))
def test_a_page_has_the_tag_of_its_run(changes, page):
    tags = PageTags()
    for first, number, tag in changes:
        tags.set(first, first + number, tag)
    runs = tags.runs(page, page + 1)
    assert tags.at(page) == (runs[0][2] if runs else NO_TAG)


def test_neighbours_that_become_equal_are_one_run():
    tags = PageTags()
    for page in range(0, 1000, 2):
        tags.set(page, page + 1, 5)
    assert len(tags) == 1000
    for page in range(1, 1000, 2):
        tags.set(page, page + 1, 5)
    assert tags.all_runs() == [(0, 1000, 5)]
