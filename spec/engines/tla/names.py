"""Names of the module: TLA+ has one name space and forbids hiding, so every bound name is made fresh."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from viewproof.spec.lang.errors import SpecError

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS DOMAIN ELSE
    ENABLED EXCEPT EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS OMITTED
    ONLY OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE SF_ STATE STRING SUBSET SUFFICES TAKE TEMPORAL THEN
    THEOREM TRUE UNCHANGED UNION USE VARIABLE VARIABLES WF_ WITH WITNESS
        """,
    )
)
"""Words of the language."""

LIBRARY = (
    *("Nat", "Int", "Cardinality", "IsFiniteSet", "Seq", "Len", "Append", "Head", "Tail", "SubSeq", "SelectSeq"),
    *("Max", "Min", "Maximum", "Holds", "Init", "Next", "Spec", "TypeOK", "vars"),
)
"""Names that the modules it extends or the exported module itself define."""

_IDENTIFIER = re.compile(r"(?!WF_|SF_)[A-Za-z0-9_]*[A-Za-z][A-Za-z0-9_]*\Z")


def is_identifier(name: str) -> bool:
    """Can it be written as a TLA+ identifier?"""
    return bool(_IDENTIFIER.match(name)) and name not in KEYWORDS


class GlobalNames:
    """The names that the module defines, each with what it stands for; a clash is refused by name."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = dict.fromkeys(LIBRARY, "a name of the exported module")

    def define(self, name: str, what: str) -> str:
        """Take a name."""
        if not is_identifier(name):
            raise SpecError(f"{what} {name} cannot be exported: it is not a TLA+ identifier")
        if name in self.taken:
            raise SpecError(f"{what} {name} cannot be exported: TLA+ has one name space, and {name} is also "
                            f"{self.taken[name]}")  # fmt: skip
        self.taken[name] = f"the {what} {name}"
        return name


@dataclass(frozen=True)
class Scope:
    """What names of the IR are called here; a new one never hides another."""

    taken: frozenset[str]
    names: Mapping[str, str] = field(default_factory=dict)

    def fresh(self, label: str) -> tuple[str, Scope]:
        """A name as close to `label` as possible, and the scope in which it is taken."""
        stem = re.sub(r"_\d+\Z", "", label)
        if not is_identifier(stem):
            stem = "i"
        name, number = stem, 2
        while name in self.taken or name in KEYWORDS:
            name, number = f"{stem}{number}", number + 1
        return name, Scope(self.taken | {name}, self.names)

    def bind(self, ir_name: str) -> tuple[str, Scope]:
        """Give a bound variable or parameter of the IR its printed name."""
        name, inner = self.fresh(ir_name)
        return name, inner.alias(ir_name, name)

    def alias(self, ir_name: str, name: str) -> Scope:
        """Call a name of the IR by an existing name."""
        return Scope(self.taken, {**self.names, ir_name: name})

    def __getitem__(self, ir_name: str) -> str:
        if ir_name not in self.names:
            raise SpecError(f"{ir_name} is not bound here")
        return self.names[ir_name]


def comment(text: str, indent: str = "") -> list[str]:
    """Lines of a TLA+ comment."""
    return [f"{indent}\\* {line}".rstrip() for line in text.splitlines()]


def wrapped(words: Iterable[str], width: int) -> list[str]:
    """Comma-separated words in lines of at most `width` characters; every line but the last ends in a comma."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) + 3 <= width:
            lines[-1] += f", {word}"
        else:
            if lines:
                lines[-1] += ","
            lines.append(word)
    return lines
