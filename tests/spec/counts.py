"""What searches count, pinned in one place: `counts.toml`. Tests and documents read it; a search says it anew.

An instance is named as for `vsr check`: the model, and the sizes that are not its own. In a document a count names its
instance in a comment right behind it: `12,649<!-- core --views 2 -->`, or `40<!-- core: depth -->`.
"""

from __future__ import annotations

import fcntl
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from viewproof.spec.protocols import MODELS

PINNED = Path(__file__).with_name("counts.toml")
UPDATE = "VSR_UPDATE_GOLDEN"
"""Set this environment variable to write what is pinned (and golden) anew; then read the difference."""
HEADER = """\
# What searches count: read by tests, held against docs/*.md, written anew by tests/spec with VSR_UPDATE_GOLDEN=1.
# A change of a number is a change of the protocol (or of an engine).
"""
SEARCHES, FAULTS, CHAINS = "searches", "faults", "chains"
SIZES = {
    SEARCHES: "# Instance = distinct states, states generated, depth in steps. All hold.",
    FAULTS: "# Fault = steps of a shortest counterexample, in the fault's own model.",
    CHAINS: "# Fault = rounds of bounded search that find it there, steps of what it finds (others may be shorter).",
}


class Counts(NamedTuple):
    """Distinct states, states generated, depth in steps."""

    distinct: int
    generated: int
    depth: int

    @property
    def steps(self) -> int:
        """States generated but for the initial one: each is a step from a state."""
        return self.generated - 1


def instance(name: str, **sizes: int) -> str:
    """The name of an instance: `core --replicas 2 --views 2`."""
    own = {}
    if name in MODELS:
        protocol = MODELS[name]
        own = {"replicas": protocol.replicas.get(name, 3), **vars(protocol.models[name])}
    order = ["replicas", *own]
    given = {size: number for size, number in sizes.items() if own.get(size) != number}
    return " ".join([name, *(f"--{size} {given[size]}" for size in sorted(given, key=order.index))])


def pinned() -> dict[str, dict[str, Any]]:
    """All of the file, by its tables."""
    return tomllib.loads(PINNED.read_text(encoding="utf-8"))


def counts_of(name: str, **sizes: int) -> Counts:
    """What is pinned of an instance. Raises `KeyError` where nothing is."""
    return Counts(*pinned()[SEARCHES][instance(name, **sizes)])


def require_counts(found: Any, name: str, **sizes: int) -> None:
    """A search that held has the counts that are pinned of that instance."""
    assert found.verdict == "holds", name
    _require(SEARCHES, instance(name, **sizes), [found.distinct, found.generated, found.depth])


def require_steps(found: Any, fault: str) -> None:
    """A search that found the break of a fault took as many steps as are pinned."""
    assert found.verdict == "violated", fault
    _require(FAULTS, fault, len(found.behaviour))


def require_chain(found: Any, fault: str) -> None:
    """A bounded search that found the break of a fault took as many rounds and steps as are pinned."""
    assert found.broken is not None, fault
    _require(CHAINS, fault, [found.rounds, len(found.steps)])


def _require(table: str, name: str, found: Any) -> None:
    if os.environ.get(UPDATE):
        rewrite(lambda known: known[table].__setitem__(name, found))
    assert pinned()[table].get(name) == found, f"{name}: {UPDATE}=1 takes it"


def rewrite(change: Callable[[dict[str, dict[str, Any]]], None]) -> None:
    """Write the file anew; tests in other processes wait."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = pinned()
        change(known)
        lines = [HEADER]
        for table, meaning in SIZES.items():
            rows = (f'"{name}" = {_text(value)}' for name, value in sorted(known.get(table, {}).items()))
            lines += [meaning, f"[{table}]", *rows, ""]
        written = PINNED.with_suffix(".new")
        written.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")
        written.replace(PINNED)


def _text(value: Any) -> str:
    return f"[{', '.join(f'{number:_}' for number in value)}]" if isinstance(value, list) else str(value)


COUNT = re.compile(r"(?P<number>\d[\d,]*)<!-- (?P<name>[^:>]+?)(?:: (?P<which>generated|steps|depth))? -->")
COMMAND = re.compile(r"vsr check (?P<name>\w+(?: --\w+ \d+)*) +# (?:.*? )?(?P<number>\d[\d,]*) states")


def documented(text: str) -> list[tuple[re.Match[str], str]]:
    """The counts in a document, and what should stand there."""
    found = []
    for match in (*COUNT.finditer(text), *COMMAND.finditer(text)):
        name, *options = match["name"].split(" --")
        sizes = {size: int(number) for size, number in (option.split() for option in options)}
        which = match.groupdict().get("which") or "distinct"
        found.append((match, f"{getattr(counts_of(name, **sizes), which):,}"))
    return found


def with_pinned_counts(text: str) -> str:
    """A document with the counts that are pinned."""
    for match, number in sorted(documented(text), key=lambda found: found[0].start("number"), reverse=True):
        text = text[: match.start("number")] + number + text[match.end("number") :]
    return text
