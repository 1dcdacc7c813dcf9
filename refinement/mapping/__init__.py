"""The mapping tables: how events of a trace stand for steps of the specification."""

from dataclasses import replace

from viewproof.refinement.mapping.boot import CONFIGURED
from viewproof.refinement.mapping.core import OBSERVED, OBSERVED_MORE, RULES
from viewproof.refinement.mapping.lines import (
    Agrees,
    Check,
    Configured,
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
from viewproof.refinement.mapping.messages import MESSAGE_FIELDS
from viewproof.refinement.mapping.options import OPTION_RULES


def rules_for(options: frozenset[str]) -> tuple[Rule, ...]:
    """The rules of a specification with these options: an event may have one rule without an option and one with."""
    return tuple(
        replace(
            rule,
            lines=tuple(line for line in rule.lines if _applies(line, options)),
            infer={**rule.infer, **{k: v for on in options for k, v in rule.infer_when.get(on, {}).items()}},
        )
        for rule in (*RULES, *OPTION_RULES)
        if _applies(rule, options)
    )


def observed_for(options: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """(column, expression) of what is observed after each event, in column order."""
    more = ((column, text) for column, text, when in OBSERVED_MORE if _on(when, options))
    return (*OBSERVED, *more) if MORE in options else OBSERVED


_SHOWN_BY = {
    "clients": "client_slots",
    "sessions": "client_sessions",
    "control": "supports",
    "checkpoints": "checkpoint_interval",
    "append_failure": "client_slots",
    "fence": "client_slots",
    "discard": "ring",
    "losses": "ring",
}
NEEDED_BY_EVENT = {rule.event: _SHOWN_BY[rule.when] for rule in OPTION_RULES}
"""Event → the column of a run's first event that must be there for it to be understood."""

ONCE = ("asked", "asked_count", "asked_partition", "asked_offset", "asked_reader")
"""Variables that belong to no replica, and whose cells are written once: what an entry asks."""
RISING = ("replies", "session_replies", "restarts")
"""Those whose cells only rise: what clients were answered."""

MORE = "more"
"""Option of a run whose first event shows one of the columns of `OBSERVED_MORE`."""


def _applies(part: Optional, options: frozenset[str]) -> bool:
    return _on(part.when, options)


def _on(when: str, options: frozenset[str]) -> bool:
    return all((name.removeprefix("-") in options) != name.startswith("-") for name in when.split())


__all__ = [
    "CONFIGURED",
    "MESSAGE_FIELDS",
    "MORE",
    "NEEDED_BY_EVENT",
    "OBSERVED",
    "OBSERVED_MORE",
    "ONCE",
    "RISING",
    "RULES",
    "Agrees",
    "Check",
    "Configured",
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
