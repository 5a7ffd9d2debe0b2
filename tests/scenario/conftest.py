"""Every test of scenarios has the small things at hand."""

from collections.abc import Iterator

import pytest

from tests.scenario.things import things


@pytest.fixture(autouse=True)
def _things() -> Iterator[None]:
    with things():
        yield
