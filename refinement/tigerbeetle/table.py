"""Tables of log lines: pattern → event, compiled to a dispatcher by subsystem and first word.

A pattern is the text of a line after `[level] (subsystem): `, with typed fields in braces:

| field | matches | value |
|---|---|---|
| `{name}` | digits | int |
| `{name:w}` | a word (letters, digits, `_.@|`) | str |
| `{name:c}` | a checksum as the family prints it | str |
| `{name:k}` | a letter or nothing | str |
| `{name:e}` | one character | str |
| `{name:p}`, `{name:u}` | digits after spaces, or after spaces and underscores | int |
| `{name:x}` | hexadecimal where the family prints decimal | str |
| `{name:t}` | any text | str |
| `{name:m}` | a message header to the end of the line | the columns `headers.COLUMNS` |
| `{name:b}` | true or false | bool |
| `{}` | any text | not kept |

`node` is the replica; most lines start with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Role = Literal["step", "message", "check", "change", "note"]
"""step: changes a replica's state, and is checked; message: sent or received; check: its values are compared;
change: changes a replica's state, as a step before it says, and is counted only; note: counted only.
"""

FIELD = re.compile(r"\{(\w*)(?::(\w))?\}")


@dataclass(frozen=True)
class Pattern:
    """One shape of a log line: where it is printed, its text, the event it stands for."""

    subsystem: str
    text: str
    event: str
    role: Role

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """(name, kind) of the fields that are kept, in order."""
        return tuple((name, kind or "d") for name, kind in FIELD.findall(self.text) if name)

    @property
    def word(self) -> str:
        """The first word after the node: what a line is looked up by; "" if it is not literal."""
        text = self.text.removeprefix("{node}: ").removeprefix("{node}{mark:k}: ").removeprefix("null: ")
        found = re.match(r"[a-z_]+", text)
        return found[0] if found else ""


def step(subsystem: str, text: str, event: str) -> Pattern:
    """A line that changes the state."""
    return Pattern(subsystem, text, event, "step")


def message(subsystem: str, text: str, event: str) -> Pattern:
    """A line that shows a message sent or received."""
    return Pattern(subsystem, text, event, "message")


def check(subsystem: str, text: str, event: str) -> Pattern:
    """A line whose values are compared with the state."""
    return Pattern(subsystem, text, event, "check")


def notes(subsystem: str, *texts: str) -> tuple[Pattern, ...]:
    """Lines that are recognised and counted only."""
    return tuple(Pattern(subsystem, text, "", "note") for text in texts)


def changes(subsystem: str, *texts: str) -> tuple[Pattern, ...]:
    """Lines that tell a change which the specification makes in the step before: they are not compared."""
    return tuple(Pattern(subsystem, text, "", "change") for text in texts)


@dataclass(frozen=True)
class Table:
    """The patterns of one family of logs, and the subsystems that speak of the protocol."""

    family: str
    patterns: tuple[Pattern, ...]
    subsystems: tuple[str, ...]
