"""Certificates: what was proved, of which specification, by which solver, in how long; and whether it still stands.

A certificate holds a fingerprint of every recorded part (variables, actions, invariants, lemmas) and of all together.
It is *stale* as soon as one of them differs; it then says nothing about the specification at hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from viewproof.spec.engines.smt.induction import Failure, Tally
from viewproof.spec.engines.smt.proof import Proof
from viewproof.spec.engines.smt.solve import version
from viewproof.spec.lang.definitions import Predicate, Spec
from viewproof.spec.lang.expr import ActionIR, Binder, Expr, Name, Quant, walk
from viewproof.spec.lang.record import record_predicate

FORMAT = "viewproof.proof/1"


def _digest(value: Any) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


def _expr(expr: Expr) -> Any:
    """Structure of an expression, with the sorts of its names."""
    bound = (n.binder.name if isinstance(n, Quant) else n for n in walk(expr) if isinstance(n, (Quant, Name)))
    sorts = sorted({(n.name, _sort(n)) for n in bound})
    return expr.key(), sorts


def _sort(name: Name) -> Any:
    return None if name.sort is None else (name.sort.name, name.sort.lo, name.sort.ends_with)


def _binder(binder: Binder) -> Any:
    return _sort(binder.name), _expr(binder.name), _expr(binder.lo), _expr(binder.hi)


def _action(ir: ActionIR) -> Any:
    updates = [
        (u.var.name, [_expr(i) for i in u.index], [_binder(b) for b in u.binders], _expr(u.value)) for u in ir.updates
    ]
    return [(p.name, p.sort) for p in ir.params], [_expr(g.cond) for g in ir.guards], updates


def fingerprints(spec: Spec, lemmas: Iterable[Predicate]) -> dict[str, str]:
    """Fingerprint of each part: `instance`, `configuration`, `variable x`, `action x`, `lemma x`."""
    found = {"instance": _digest(sorted(spec.instance.bounds.items())), "configuration": _digest(_plain(spec.cfg))}
    for var in spec.schema.vars.values():
        sorts = [(s.name, s.lo, s.ends_with) for s in var.index]
        found[f"variable {var.name}"] = _digest((var.kind, sorts, var.values, var.init))
    for ir in spec.action_irs:
        found[f"action {ir.name}"] = _digest(_action(ir))
    for p in (*spec.invariants, *lemmas):
        recorded = record_predicate(p.id, p.title, p.fn, spec.schema, spec.cfg, p.doc)
        found[f"lemma {p.id}"] = _digest(_expr(recorded.cond))
    return found


def _plain(cfg: Any) -> Any:
    """A configuration without sets, whose order is not fixed."""
    if not hasattr(cfg, "__dict__"):
        return cfg
    return [(k, sorted(v) if isinstance(v, frozenset) else v) for k, v in sorted(vars(cfg).items())]


def whole(parts: Mapping[str, str]) -> str:
    """Fingerprint of all parts together."""
    return _digest(sorted(parts.items()))


def changed(certificate: Mapping[str, Any], parts: Mapping[str, str]) -> list[str]:
    """Parts that differ from those of the certificate; not empty means stale."""
    proved: Mapping[str, str] = certificate["parts"]
    return sorted(name for name in {*proved, *parts} if proved.get(name) != parts.get(name))


def certificate(proof: Proof, lemmas: Iterable[Predicate]) -> dict[str, Any]:
    """The machine-readable result of a proof."""
    spec = proof.problem.spec
    parts = fingerprints(spec, lemmas)
    return {
        "format": FORMAT,
        "model": spec.name,
        "verdict": proof.verdict,
        "instance": dict(spec.instance.bounds),
        "specification": whole(parts),
        "parts": parts,
        "solver": version(),
        "seconds": round(proof.seconds, 3),
        "workers": proof.workers,
        "cells": len(proof.problem.low.number),
        "lemmas": {name: _tally(t) for name, t in proof.lemmas.items()},
        "actions": {name: _tally(t) for name, t in proof.actions.items()},
        "failures": [_failure(f) for f in proof.failures],
        "used": {
            lemma: {action: sorted(names) for action, names in sorted(by_action.items())}
            for lemma, by_action in sorted(proof.used.items())
        },
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(tally).items()}


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "action": failure.action,
        "args": failure.args,
        "lemma": failure.goal,
        "names": [list(pair) for pair in failure.names],
        "status": failure.status,
    }
