"""The mapping tables: how events of a trace stand for steps of the specification."""

from dataclasses import replace

from refinement.mapping.core import MESSAGE_FIELDS, OBSERVED, RULES
from refinement.mapping.lines import (
    Agrees,
    Check,
    Each,
    Holds,
    InJournal,
    Journaled,
    Line,
    Log,
    Named,
    Optional,
    Received,
    Rule,
    Step,
)


def rules_for(options: frozenset[str]) -> tuple[Rule, ...]:
    """The rules of a specification with these options: an event may have one rule without an option and one with."""
    return tuple(
        replace(rule, lines=tuple(line for line in rule.lines if _applies(line, options)))
        for rule in RULES
        if _applies(rule, options)
    )


def _applies(part: Optional, options: frozenset[str]) -> bool:
    wanted = part.when.removeprefix("-")
    return not part.when or (wanted in options) != part.when.startswith("-")


__all__ = [
    "MESSAGE_FIELDS",
    "OBSERVED",
    "RULES",
    "Agrees",
    "Check",
    "Each",
    "Holds",
    "InJournal",
    "Journaled",
    "Line",
    "Log",
    "Named",
    "Received",
    "Rule",
    "Step",
    "rules_for",
]
