"""One Spark session for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """A session on two local cores."""
    from refinement.spark import start_session

    session = start_session("local[2]")
    yield session
    session.stop()
