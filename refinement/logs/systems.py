"""The systems that are known by name: `--adapter oxia`, `--adapter iggy`."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viewproof.refinement.logs.judge import System

NAMES = ("iggy", "oxia")


@lru_cache(maxsize=4)
def system(name: str) -> System:
    """The system of that name."""
    found: System = importlib.import_module(f"viewproof.refinement.{name}.adapter").SYSTEM
    return found
