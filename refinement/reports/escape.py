"""Text from traces and file names on one line of a terminal, whatever it holds."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"  # also what turns text around
)


def printable(text: str) -> str:
    """The text with control characters, and those that reorder what is shown, as escapes: `\\n`, `\\x1b`, `\\u202e`."""
    return _UNPRINTABLE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
