"""Times as logs print them."""

from __future__ import annotations

import datetime
import re
from functools import lru_cache

_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:?\d\d)?", re.IGNORECASE)


def seconds(text: str) -> float | None:
    """Seconds of a time such as 2026-11-28T11:42:02.17Z, of UTC where it names no zone; None if it is none."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    fraction = (found[2] or "0")[:9]
    try:
        return _whole(found[1], (found[3] or "Z").upper()) + float("0." + fraction)
    except ValueError:
        return None


@lru_cache(maxsize=64)
def _whole(text: str, zone: str) -> float:
    return datetime.datetime.fromisoformat(text + zone).timestamp()
