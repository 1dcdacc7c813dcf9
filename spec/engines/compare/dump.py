"""What is recorded of a specification, as plain data. Stands alone: it is run inside other versions of this program.

    python dump.py PACKAGE < REQUEST.json > ANSWER.json

`REQUEST`: `{"models": [name, …] | null, "shapes": [[model, replicas, bounds], …]}`. `ANSWER`: `models` (name →
recorded in its own size, with `lemmas`), `shapes` (in the order asked; null with a reason where there is no such size),
`portfolios` (model → names of the sizes that a check of it searches) and `mistakes` (id → what it is); null where a
version is from before there were any.
It runs in the directory of that version, which is put before all others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any


class Nodes:
    """A table of expression nodes, each naming those under it by number; and of sorts: name → first member, end."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.sorts: dict[str, list[Any]] = {}
        self._known: dict[str, int] = {}

    def named(self, sort: Any) -> str:
        """The name of a sort, which is kept."""
        self.sorts[sort.name] = [sort.lo, sort.ends_with]
        return str(sort.name)

    def put(self, expr: Any) -> int:
        """The number of an expression."""
        row = self._row(expr)
        key = json.dumps(row)
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(row)
        return self._known[key]

    def _row(self, expr: Any) -> list[Any]:
        kind = type(expr).__name__
        if kind == "Const":
            return ["const", int(expr.value), bool(expr.is_bool)]
        if kind == "Name":
            return ["name", expr.name, self.named(expr.sort) if expr.sort is not None else ""]
        if kind == "SortMax":
            return ["last", self.named(expr.sort)]
        if kind == "Read":
            receiver = None if expr.receiver is None else self.put(expr.receiver)
            return ["read", expr.var.name, bool(expr.after), receiver, [self.put(i) for i in expr.index]]
        if kind == "Within":
            return ["within", self.named(expr.sort), self.put(expr.value)]
        if kind == "Quant":
            return ["quant", expr.kind, expr.default, self.binder(expr.binder), self.put(expr.body)]
        if kind == "Op":
            return ["op", expr.op, bool(expr.is_bool), [self.put(arg) for arg in expr.args]]
        raise ValueError(f"no plain form of {kind}")

    def binder(self, binder: Any) -> list[Any]:
        """A bound variable and its range."""
        return [self.put(binder.name), self.put(binder.lo), self.put(binder.hi)]


def plain(spec: Any) -> dict[str, Any]:
    """Sorts, variables, actions, invariants, witnesses and bounds of a specification."""
    nodes = Nodes()
    found = {
        "name": spec.name,
        "vars": [_var(var, nodes.named) for var in spec.schema.vars.values()],
        "actions": [_action(ir, spec, nodes) for ir in spec.action_irs],
        "invariants": [_predicate(p, nodes) for p in spec.invariant_irs],
        "witnesses": [_predicate(p, nodes) for p in spec.witness_irs],
        "bounds": dict(spec.instance.bounds),
    }
    return {**found, "sorts": nodes.sorts, "nodes": nodes.rows}


def _var(var: Any, named: Any) -> dict[str, Any]:
    values = var.values
    return {
        "name": var.name, "index": [named(sort) for sort in var.index], "init": int(var.init), "kind": var.kind,
        "doc": var.doc, "lo": values.lo, "hi": values.hi, "sort": named(values.sort) if values.sort else "",
        "plus": values.plus, "labels": list(values.labels), "is_bool": values.is_bool,
    }  # fmt: skip


def _source(source: Any) -> list[Any]:
    return [source.file, source.line, source.text]


def _action(ir: Any, spec: Any, nodes: Nodes) -> dict[str, Any]:
    act = spec.action(ir.name)
    return {
        "name": ir.name, "doc": ir.doc, "source": _source(ir.source), "actor": act.actor,
        "tags": sorted(getattr(act, "tags", ())),
        "params": [[p.name, nodes.named(p.sort)] for p in ir.params],
        "guards": [[nodes.put(g.cond), _source(g.source)] for g in ir.guards],
        "updates": [
            [u.var.name, [nodes.put(i) for i in u.index], [nodes.binder(b) for b in u.binders], nodes.put(u.value),
             _source(u.source)]
            for u in ir.updates
        ],
    }  # fmt: skip


def _predicate(ir: Any, nodes: Nodes) -> dict[str, Any]:
    return {"name": ir.name, "title": ir.title, "doc": ir.doc, "cond": nodes.put(ir.cond), "source": _source(ir.source)}


def _lemmas(package: str, spec: Any) -> list[dict[str, Any]]:
    """The lemmas of a proof of the model, each with its own nodes."""
    try:
        lemmas_of = import_module(f"{package}.vsr.lemmas").lemmas_of
    except (ImportError, AttributeError):
        return []  # a version from before there were any
    record = import_module(f"{package}.lang.record").record_predicate
    found = []
    for lemma in lemmas_of(spec.cfg):
        nodes = Nodes()
        ir = record(lemma.id, lemma.title, lemma.fn, spec.schema, spec.cfg, lemma.doc)
        found.append({**_predicate(ir, nodes), "nodes": nodes.rows, "sorts": nodes.sorts, "vars": []})
    return found


def _builders(package: str) -> dict[str, Any]:
    """Model → how it is made, and its default sizes."""
    vsr = import_module(f"{package}.vsr")
    found = {name: (vsr.model, bounds) for name, bounds in vsr.MODELS.items()}
    try:
        oxia = import_module(f"{package}.oxia.models")
        found |= {name: (oxia.model, bounds) for name, bounds in oxia.MODELS.items()}
    except ImportError:
        pass
    return found


def _known(package: str, names: Iterable[str]) -> dict[str, Any]:
    """What a check of each model searches, and the known mistakes."""
    try:
        protocols = import_module(f"{package}.protocols")
        portfolios = {name: [_size(size) for size in protocols.portfolio_of(name).sizes] for name in names}
        mistakes = {id: str(fault.doc) for id, fault in protocols.FAULTS.items()}
    except (ImportError, AttributeError):
        return {"portfolios": None, "mistakes": None}
    return {"portfolios": portfolios, "mistakes": mistakes}


def _size(size: Any) -> str:
    return str(size.name) + ("" if size.max_states >= 1 << 32 else f": {size.max_states:,} states at most")


def _shape(made: tuple[Any, Any], name: str, replicas: int, sizes: dict[str, int]) -> dict[str, Any]:
    build, default = made
    known = {key: n for key, n in sizes.items() if hasattr(default, key)}
    lacking = {key: n for key, n in sizes.items() if n and key not in known}
    if lacking:
        return {"spec": None, "reason": f"no size {', '.join(lacking)}"}
    try:
        spec = build(name, replicas=replicas, bounds=type(default)(**known))
        return {"spec": plain(spec), "reason": ""}
    except Exception as problem:  # whatever another version says: it is the reason
        return {"spec": None, "reason": str(problem)}


def main() -> None:
    """Read a request, write the answer."""
    package = sys.argv[1]
    sys.path.insert(0, str(Path.cwd()))
    request = json.load(sys.stdin)
    built = _builders(package)
    models: dict[str, Any] = {}
    for name in built if request["models"] is None else request["models"]:
        if name in built:
            spec = built[name][0](name)
            lemmas = _lemmas(package, spec) if name in import_module(f"{package}.vsr").MODELS else []
            models[name] = {**plain(spec), "lemmas": lemmas}
    shapes = [
        _shape(built[name], name, replicas, sizes) if name in built else {"spec": None, "reason": f"no model {name}"}
        for name, replicas, sizes in request["shapes"]
    ]
    known = _known(package, built) if request["models"] is None else {}
    json.dump({"models": models, "shapes": shapes, "names": list(built), **known}, sys.stdout)


if __name__ == "__main__":
    main()
