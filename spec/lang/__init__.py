"""The specification language: see `vocabulary` for the words, `definitions` for what is declared with them."""

from viewproof.spec.lang.definitions import Action, Predicate, Spec, action, invariant, tagged, witness
from viewproof.spec.lang.errors import Disabled, RangeError, Source, SpecError
from viewproof.spec.lang.schema import Schema, Var
from viewproof.spec.lang.sorts import BOOL, Instance, Sort, Values, enum, up_to
from viewproof.spec.lang.vocabulary import (
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    implies,
    largest,
    maximum,
    not_,
    require,
    smallest,
    where,
    within,
)

__all__ = [
    "BOOL",
    "Action",
    "Disabled",
    "Instance",
    "Predicate",
    "RangeError",
    "Schema",
    "Sort",
    "Source",
    "Spec",
    "SpecError",
    "Values",
    "Var",
    "action",
    "all_of",
    "any_of",
    "between",
    "count",
    "enum",
    "exists",
    "forall",
    "implies",
    "invariant",
    "largest",
    "maximum",
    "not_",
    "require",
    "smallest",
    "tagged",
    "up_to",
    "where",
    "within",
    "witness",
]
