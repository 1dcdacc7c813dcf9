"""Viewstamped Replication, written once: a specification, a replica, and an audit that holds traces against it.

The public interface, described in docs/api.md: what `vsr` does, as functions that return values (`model`, `check`,
`reach`, `replay`, `prove`, `counterexamples`, `simulate`, `audit`), and the words in which a specification is written.
Importing the package loads none of it: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viewproof.api.audit import AuditOptionError as AuditOptionError
    from viewproof.api.audit import audit as audit
    from viewproof.api.audit import audit_from as audit_from
    from viewproof.api.check import check as check
    from viewproof.api.check import reach as reach
    from viewproof.api.data import documents as documents
    from viewproof.api.data import samples as samples
    from viewproof.api.model import model as model
    from viewproof.api.prove import counterexamples as counterexamples
    from viewproof.api.prove import prove as prove
    from viewproof.api.replay import replay as replay
    from viewproof.api.simulate import simulate as simulate
    from viewproof.impl.faults import FaultError as FaultError
    from viewproof.impl.interface.durable import ConfigurationError as ConfigurationError
    from viewproof.spec.lang import Instance as Instance
    from viewproof.spec.lang import RangeError as RangeError
    from viewproof.spec.lang import Schema as Schema
    from viewproof.spec.lang import Sort as Sort
    from viewproof.spec.lang import Spec as Spec
    from viewproof.spec.lang import SpecError as SpecError
    from viewproof.spec.lang import Values as Values
    from viewproof.spec.lang import action as action
    from viewproof.spec.lang import invariant as invariant
    from viewproof.spec.lang import require as require
    from viewproof.spec.lang import witness as witness

_LANGUAGE = (
    *("Instance", "RangeError", "Schema", "Sort", "Spec", "SpecError", "Values"),
    *("action", "invariant", "require", "witness"),
)
_HOMES = {
    "AuditOptionError": "viewproof.api.audit",
    "ConfigurationError": "viewproof.impl.interface.durable",
    "FaultError": "viewproof.impl.faults",
    "audit": "viewproof.api.audit",
    "audit_from": "viewproof.api.audit",
    "check": "viewproof.api.check",
    "counterexamples": "viewproof.api.prove",
    "documents": "viewproof.api.data",
    "model": "viewproof.api.model",
    "prove": "viewproof.api.prove",
    "reach": "viewproof.api.check",
    "replay": "viewproof.api.replay",
    "samples": "viewproof.api.data",
    "simulate": "viewproof.api.simulate",
    **dict.fromkeys(_LANGUAGE, "viewproof.spec.lang"),
}
"""Name → the module that it is imported from on first use."""

__all__ = [
    "AuditOptionError",
    "ConfigurationError",
    "FaultError",
    "Instance",
    "RangeError",
    "Schema",
    "Sort",
    "Spec",
    "SpecError",
    "Values",
    "action",
    "audit",
    "check",
    "counterexamples",
    "documents",
    "invariant",
    "model",
    "prove",
    "reach",
    "replay",
    "require",
    "samples",
    "simulate",
    "witness",
]


def __getattr__(name: str) -> Any:
    """A name of the public interface, imported on use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    """The public names."""
    return sorted({*globals(), *__all__})
