"""A line of Iggy's log as fields: who printed it, when, which part of the system, and `name=value` pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from viewproof.refinement.joined.source import Malformed
from viewproof.refinement.joined.times import seconds

METADATA = 1 << 63
"""The group of the metadata plane."""
NUMBER_MAX = 1 << 128

_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_LINE = re.compile(
    r"(?:\[(?P<own>\d+|-)\] )?(?P<time>\S+)\s+(?P<level>TRACE|DEBUG|INFO|WARN|ERROR)\s+"
    r"(?:process\{replica=(?P<span>\d+)\}: )?(?:(?P<thread>[\w-]+)\s+)?"
    r"(?P<target>[a-z_]\w*(?:(?:::|\.)\w+)*): (?P<text>.*)"
)
_FIELD = re.compile(r"(\w+)=(\"[^\"]*\"|\[[^\]]*\]|\{[^}]*\}|\S+)")
_SLOT = re.compile(r"\{slot=(\d+) client=(\d+) epoch=(\d+) watermark=(\d+)\}")
_HEADER = re.compile(r"\{op=(\d+) view=(\d+) checksum=(\d+) parent=(\d+) commit=(\d+)\}")


@dataclass(frozen=True, slots=True)
class Parsed:
    """`own` is the replica that a merged file or a span names (None: it does not), `words` the text without fields,
    `thread` that of the process which prints it, `time` in seconds, or ticks of a simulator.
    """

    own: int | None
    harness: bool
    time: float
    level: str
    thread: str
    target: str
    text: str
    fields: Mapping[str, str]

    @property
    def words(self) -> str:
        """The text before the first field."""
        found = _FIELD.search(self.text)
        return (self.text[: found.start()] if found else self.text).strip()

    def number(self, name: str) -> int:
        """A field that is a whole number. Raises `Malformed`."""
        text = self.fields.get(name, "")
        if not text.isdecimal() or int(text) >= NUMBER_MAX:
            raise Malformed(name, "a whole number", self.fields.get(name, "nothing")[:80])
        return int(text)

    def known(self, name: str) -> int | None:
        """A field that is a whole number, if it is there."""
        return self.number(name) if name in self.fields else None

    def word(self, name: str) -> str:
        """A field, without quotes. Raises `Malformed`."""
        if name not in self.fields:
            raise Malformed(name, "a text", "nothing")
        return self.fields[name].strip('"')

    def slots(self) -> list[tuple[int, int, int]]:
        """Client, epoch and watermark of each slot of a client table."""
        return [(int(c), int(e), int(w)) for _, c, e, w in _SLOT.findall(self.text)]

    def headers(self) -> list[tuple[int, int]]:
        """Op and checksum of each header that a message names."""
        return [(int(op), int(checksum)) for op, _, checksum, _, _ in _HEADER.findall(self.text)]


def parse(text: str) -> Parsed | None:
    """The line; None if it is no line of a log."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    found = _LINE.match(text)
    if found is None:
        return None
    time = float(found["time"]) if found["time"].isdecimal() else seconds(found["time"])
    if time is None:
        return None
    own = found["span"] or (found["own"] if found["own"] != "-" else None)
    fields = dict(_FIELD.findall(found["text"]))
    own = None if own is None else int(own)
    thread = found["thread"] or ""
    return Parsed(own, found["own"] == "-", time, found["level"], thread, found["target"], found["text"], fields)
