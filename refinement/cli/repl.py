"""The lines of `vsr repl`: what one line asks for, its answer, and what is wrong with a line that is no command."""

from __future__ import annotations

import difflib
import shlex

from viewproof.impl.groups.group import NAMESPACES
from viewproof.impl.machine.namespaces import NamespaceError, NamespaceLayout
from viewproof.impl.machine.partitions import Appended, AppendMessages, Offset, Poll, Polled, ReadOffset, StoreOffset
from viewproof.impl.machine.state_machine import (
    Append,
    CompareAndSet,
    Delete,
    Done,
    Get,
    Operation,
    Outcome,
    Put,
    Refused,
    Result,
    Value,
)
from viewproof.impl.net.sync_client import SyncClient

ARGUMENTS = {
    "put": "KEY VALUE",
    "get": "KEY",
    "delete": "KEY",
    "append": "KEY VALUE",
    "cas": "KEY EXPECTED VALUE",
    "send": "PARTITION MESSAGE",
    "poll": "PARTITION OFFSET COUNT",
    "store": "PARTITION CONSUMER OFFSET",
    "offset": "PARTITION CONSUMER",
    "quit": "",
}
HELP = " | ".join(f"{name} {arguments}".strip() for name, arguments in ARGUMENTS.items())
QUIT = ("quit", "exit")
_ALIASES = {"del": "delete", "rm": "delete", "remove": "delete", "set": "put", "read": "get", "write": "put"}


class LineError(Exception):
    """A line is no command; the text says what is wrong with it."""


def parse(line: str, layout: NamespaceLayout = NAMESPACES) -> list[str]:
    """The words of a line, quotes undone; empty for an empty line. Raises LineError."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise LineError(f"{str(error).lower()}; a quote or backslash that is meant as such stands in quotes") from None
    if not words or words[0] in QUIT:
        return words
    name, given = words[0], len(words) - 1
    if name not in ARGUMENTS:
        close = [_ALIASES[name]] if name in _ALIASES else difflib.get_close_matches(name, ARGUMENTS, 1)
        meant = f"; did you mean {close[0]}?" if close else "."
        raise LineError(f"{name} is no command{meant} There are: {HELP}")
    arguments = ARGUMENTS[name]
    wanted = len(arguments.split())
    if given != wanted:
        spaces = f"; one with spaces needs quotes: {name} {_example(arguments)}" if given > wanted else ""
        raise LineError(f"{name} takes {arguments}, {wanted} word{'s' * (wanted > 1)}, but got {given}{spaces}")
    for word, argument in zip(words[1:], arguments.split(), strict=True):
        _check_argument(word, argument, layout)
    return words


def _check_argument(word: str, argument: str, layout: NamespaceLayout) -> None:
    if argument == "PARTITION":
        _namespace(word, layout)
    elif argument in ("OFFSET", "COUNT", "CONSUMER") and not word.isdecimal():
        raise LineError(f"{argument} is a number of at least 0, not {word!r}")


def _namespace(word: str, layout: NamespaceLayout) -> int:
    """The namespace of STREAM/TOPIC/PARTITION."""
    parts = word.split("/")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise LineError(f"PARTITION is STREAM/TOPIC/PARTITION, as 0/1/2, not {word!r}")
    try:
        return layout.pack(*map(int, parts))
    except NamespaceError as error:
        raise LineError(str(error)) from None


def answer(client: SyncClient, words: list[str], layout: NamespaceLayout = NAMESPACES) -> str:
    """Carry out a command that `parse` returned. Raises ClientError."""
    return _text(words[0], client.execute(_operation(words, layout)))


def _operation(words: list[str], layout: NamespaceLayout) -> Operation:
    name, *rest = words
    if name in ("send", "poll", "store", "offset"):
        return _partition_operation(name, _namespace(rest[0], layout), rest[1:])
    match name, [word.encode() for word in rest]:
        case "put", [key, value]:
            return Put(key, value)
        case "append", [key, value]:
            return Append(key, value)
        case "get", [key]:
            return Get(key)
        case "delete", [key]:
            return Delete(key)
        case "cas", [key, expected, value]:
            return CompareAndSet(key, expected, value)
    raise LineError(HELP)


def _partition_operation(name: str, namespace: int, rest: list[str]) -> Operation:
    if name == "send":
        return AppendMessages(namespace, (rest[0].encode(),))
    if name == "poll":
        return Poll(namespace, int(rest[0]), int(rest[1]))
    if name == "store":
        return StoreOffset(namespace, int(rest[0]), int(rest[1]))
    return ReadOffset(namespace, int(rest[0]))


_OUTCOMES = {
    "delete": ("(none)", "deleted"),
    "cas": ("not equal", "swapped"),
    "store": ("refused: the offset is above the end of the partition", "ok"),
}
"""What the answer to a command is called, if it did not succeed and if it did."""


def _text(name: str, result: Result) -> str:
    """The answer to command `name` in words."""
    match result:
        case Done():
            return "ok"
        case Value(value=value):
            return "(none)" if value is None else value.decode(errors="replace")
        case Outcome(success=success) if name in _OUTCOMES:
            return _OUTCOMES[name][success]
        case Appended(offset=offset):
            return f"offset {offset}"
        case Polled(offset=first, messages=messages, end=end):
            lines = [f"{first + place} {text.decode(errors='replace')}" for place, text in enumerate(messages)]
            return "\n".join([*lines, f"(end {end})"])
        case Offset(offset=stored):
            return "(none)" if stored is None else str(stored)
        case Refused(reason=reason):
            return f"refused: {reason}"
    return str(result)


def _example(arguments: str) -> str:
    *first, last = arguments.lower().split()
    return " ".join([*first, '"two words"' if last == "value" else f'"a {last}"'])
