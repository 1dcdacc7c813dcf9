"""The one evaluator of recorded guards: over any reader of cells, known or not, and in words that hold the values.

Its meaning is the interpreter's (tests hold them against each other); what is added is three-valued: where a cell is
not known, a guard is true, false or open, and open only if the cell decides.
"""

from viewproof.spec.engines.guards.cells import Cells, Span, StateCells, Truth, Value
from viewproof.spec.engines.guards.evaluate import Evaluator, Reading, Show, cell_name
from viewproof.spec.engines.guards.words import Refusal, Words, guard_text, refusal

__all__ = [
    "Cells",
    "Evaluator",
    "Reading",
    "Refusal",
    "Show",
    "Span",
    "StateCells",
    "Truth",
    "Value",
    "Words",
    "cell_name",
    "guard_text",
    "refusal",
]
