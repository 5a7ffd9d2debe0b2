"""Cuts, mixtures and noise: what happens to recordings before they are read."""

from hypothesis import strategies as st

from calibration.readers import UnreadableRecording, read_text
from calibration.samples import Recording


def read_any(text):
    """Read a text of which perhaps nothing is understood; nothing else may go wrong."""
    try:
        return read_text(text, "x")
    except UnreadableRecording as error:
        assert "x: " in str(error)
        return Recording(source="x", formats=(), samples=())


def figures(recording):
    """Return what a recording says, without where it was said."""
    return [(s.kind, s.name, s.column, s.value, s.since_boot, s.time_s) for s in recording.samples]


@st.composite
def interleavings(draw, one, other):
    """Return the lines of two texts, each in its order, in one text."""
    left, right, mixed = one.splitlines(), other.splitlines(), []
    while left or right:
        source = left if left and (not right or draw(st.booleans())) else right
        mixed.append(source.pop(0))
    return "\n".join(mixed) + "\n"


def noise():
    """Return texts of the characters that recordings are made of."""
    return st.text(alphabet="0123456789 .,:%/-()\n\tkMGabcdemprstuvwz*", max_size=300)
