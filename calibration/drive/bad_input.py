"""Errors in a file that a command was given.

The message says where the error is, what was given and what is allowed. The first error ends the
reading.
"""


class BadInput(ValueError):
    """A file that cannot be used; the text of the error is for the user."""

    def __init__(
        self, place: str, problem: str, *, given: object = None, allowed: str = ""
    ) -> None:
        got = "" if given is None else f", got {given!r}"
        accepted = f" (accepted: {allowed})" if allowed else ""
        super().__init__(f"{place}: {problem}{got}{accepted}")
