"""One Spark session for all tests of a worker; every report that a test has written is held against its schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.schemas import validated
from viewproof.refinement.cli import output
from viewproof.refinement.reports import table


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share the Spark session run in the same worker, so that only one is started."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session", autouse=True)
def reports_are_what_their_schemas_say() -> Iterator[None]:
    """Whatever command a test runs in this process: its `--json` is what docs/reference says."""

    def write_json(report: dict[str, Any], file: Path) -> None:
        table.write_json(validated(report), file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "write_json", write_json)
        yield


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """A session on two local cores."""
    from viewproof.refinement.spark import start_session

    session = start_session("local[2]")
    yield session
    session.stop()
