"""Fuzzed files: nothing but a refusal by name comes of them, in bounded memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz.files import SHARES, read_all
from tests.impl.net.test_connections import resident_bytes_of

BYTES_MAX = 256 << 20
"""What the process may have more after fuzzed files than before."""


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_of_a_fuzzed_file_comes_a_refusal_or_what_is_in_it(count: int, tmp_path: Path) -> None:
    before = resident_bytes_of(os.getpid())
    outcomes = read_all(tmp_path, 1, count)
    assert resident_bytes_of(os.getpid()) - before < BYTES_MAX
    assert outcomes.total() == count
    assert all(outcomes[f"{kind}: refused"] for kind in SHARES), outcomes
