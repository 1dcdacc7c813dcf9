"""The mapping tables: how events of a trace stand for steps of the specification."""

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
    Received,
    Rule,
    Step,
)

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
]
