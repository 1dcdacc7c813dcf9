"""Porcupine's verdict in a test, which is skipped where there is no Go or the library cannot be had."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks import porcupine
from viewproof.impl.net.history import Operation


def verdict_of_porcupine(history: Sequence[Operation]) -> str:
    """ok, violation or inconclusive."""
    try:
        return porcupine.verdict_of_porcupine(history)
    except porcupine.NoPorcupineError as error:
        pytest.skip(str(error))
