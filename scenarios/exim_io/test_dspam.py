"""dspam's tokens: which rows a message touches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.exim_io.dspam import DspamParams, draw_tokens
from sim.engine import Streams


@given(st.integers(1, 2000), st.integers(100, 10**6), st.floats(0, 1), st.integers(0, 100))
def test_tokens_are_rows_of_the_table_each_once(
    tokens: int, vocabulary: int, new_tokens: float, seed: int
) -> None:
    params = DspamParams(tokens=tokens, vocabulary=vocabulary, new_tokens=new_tokens)
    known, new = draw_tokens(params, Streams(seed).stream("tokens"))
    assert len(set(known)) == len(known)
    assert len(new) == round(new_tokens * tokens)
    assert len(known) + len(new) <= tokens
    assert all(0 <= row < vocabulary for row in (*known, *new))


def test_a_message_of_500_tokens_touches_some_300_pages_of_15_mb() -> None:
    params = DspamParams()
    pages = []
    for number in range(20):
        known, _ = draw_tokens(params, Streams(1).stream(str(number)))
        pages.append(len({row * params.token_row_bytes // 4096 for row in known}))
    assert sum(pages) / len(pages) == pytest.approx(330, abs=40)


def test_frequent_words_are_in_every_message() -> None:
    params = DspamParams()
    seen = [set(draw_tokens(params, Streams(n).stream("x"))[0]) for n in range(10)]
    assert len(set.intersection(*seen)) > 10
