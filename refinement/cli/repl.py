"""The lines of `vsr repl`: what one line asks for, its answer, and what is wrong with a line that is no command."""

from __future__ import annotations

import difflib
import shlex

from impl.net.client import SyncClient

ARGUMENTS = {
    "put": "KEY VALUE",
    "get": "KEY",
    "delete": "KEY",
    "append": "KEY VALUE",
    "cas": "KEY EXPECTED VALUE",
    "quit": "",
}
HELP = " | ".join(f"{name} {arguments}".strip() for name, arguments in ARGUMENTS.items())
QUIT = ("quit", "exit")
_ALIASES = {"del": "delete", "rm": "delete", "remove": "delete", "set": "put", "read": "get", "write": "put"}


class LineError(Exception):
    """A line is no command; the text says what is wrong with it."""


def parse(line: str) -> list[str]:
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
        meant = f"did you mean {close[0]}? " if close else ""
        raise LineError(f"{name} is no command; {meant}There are: {HELP}")
    arguments = ARGUMENTS[name]
    wanted = len(arguments.split())
    if given != wanted:
        spaces = f"; one with spaces needs quotes: {name} {_example(arguments)}" if given > wanted else ""
        raise LineError(f"{name} takes {arguments}, {wanted} word{'s' * (wanted > 1)}, but got {given}{spaces}")
    return words


def answer(client: SyncClient, words: list[str]) -> str:
    """Carry out a command that `parse` returned. Raises ClientError."""
    match [word.encode() for word in words]:
        case [b"put", key, value]:
            client.put(key, value)
            return "ok"
        case [b"append", key, value]:
            client.append(key, value)
            return "ok"
        case [b"get", key]:
            found = client.get(key)
            return "(none)" if found is None else found.decode(errors="replace")
        case [b"delete", key]:
            return "deleted" if client.delete(key) else "(none)"
        case [b"cas", key, expected, value]:
            return "swapped" if client.compare_and_set(key, expected, value) else "not equal"
    raise LineError(HELP)


def _example(arguments: str) -> str:
    *first, last = arguments.lower().split()
    return " ".join([*first, '"two words"' if last == "value" else f'"a {last}"'])
