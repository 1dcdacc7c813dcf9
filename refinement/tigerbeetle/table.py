"""Tables of log lines: pattern → event (`lines_2022.txt`, `lines_2026.txt`), which `parse` compiles.

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
from importlib.resources import files
from typing import Final

ROLES: Final = ("step", "message", "check", "change", "note")
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
    role: str

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


@dataclass(frozen=True)
class Table:
    """The patterns of one family of logs, and the subsystems that speak of the protocol."""

    family: str
    patterns: tuple[Pattern, ...]
    subsystems: tuple[str, ...]


def table_of(family: str) -> Table:
    """The table of a family, from its file."""
    return read_table(family, files(__package__).joinpath(f"lines_{family}.txt").read_text())


def read_table(family: str, text: str) -> Table:
    """The table that a text tells: `protocol:` and its subsystems; `[subsystem]` before the patterns of it; of each
    role, event ("-": none) and text. Raises `ValueError` for another line.
    """
    patterns, subsystems, subsystem = list[Pattern](), tuple[str, ...](), ""
    for line in text.splitlines():
        head, _, rest = line.partition(" ")
        if not line or head == "#":
            continue
        if head == "protocol:":
            subsystems = tuple(rest.split())
        elif found := re.fullmatch(r"\[(\w+)\]", line):
            subsystem = found[1]
        elif head in ROLES and subsystem:
            event, _, shape = rest.lstrip().partition(" ")
            patterns.append(Pattern(subsystem, shape.lstrip(), event.strip("-"), head))
        else:
            raise ValueError(f"no line of a table: {line}")
    return Table(family, tuple(patterns), subsystems)
