"""One Spark session for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share the Spark session run in the same worker, so that only one is started."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """A session on two local cores."""
    from viewproof.refinement.spark import start_session

    session = start_session("local[2]")
    yield session
    session.stop()
