"""The mapping tables: how events of a trace stand for steps of the specification."""

from dataclasses import replace

from refinement.mapping.core import MESSAGE_FIELDS, OBSERVED, OBSERVED_MORE, RULES
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


def observed_for(options: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """(column, expression) of what is observed after each event, in column order."""
    more = ((column, text) for column, text, when in OBSERVED_MORE if _on(when, options))
    return (*OBSERVED, *more) if MORE in options else OBSERVED


MORE = "more"
"""Option of a run whose first event shows one of the columns of `OBSERVED_MORE`."""


def _applies(part: Optional, options: frozenset[str]) -> bool:
    return _on(part.when, options)


def _on(when: str, options: frozenset[str]) -> bool:
    return not when or (when.removeprefix("-") in options) != when.startswith("-")


__all__ = [
    "MESSAGE_FIELDS",
    "MORE",
    "OBSERVED",
    "OBSERVED_MORE",
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
    "observed_for",
    "rules_for",
]
