"""What a change of the specification changes, asked of both versions: texts, behaviours, verdicts, mutants, proofs,
audits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viewproof.refinement.difference.audits import audited
from viewproof.refinement.difference.texts import Change, changes, changes_of_checks
from viewproof.refinement.difference.versions import Side, Version
from viewproof.spec.engines import mutate
from viewproof.spec.engines.compare import Divergence, UnlikeError, diverging, load
from viewproof.spec.engines.compare.load import Common
from viewproof.spec.engines.explicit.result import Step
from viewproof.spec.engines.portfolio import Outcome, Shape, search
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.protocols import MODELS, shapes_of
from viewproof.spec.sizes import Size


@dataclass(frozen=True)
class Plan:
    """What is asked: `models` (none: of each change the first that has it), how many of the shapes of each, states of a
    search at most, whether mutants of the changed actions are hunted, and traces to audit with both. `own`: the size of
    a model of one's own, in words; it has one.
    """

    models: tuple[str, ...] = ()
    shapes: int = 4
    states: int = 300_000
    mutants: bool = True
    corpora: tuple[Path, ...] = ()
    workers: int | None = None
    own: str = ""


@dataclass
class Sized:
    """One shape in both versions: what searches came to (None: it cannot be made, `reason`), and the shortest behaviour
    that only one of them has.
    """

    model: str
    size: str
    old: Outcome | None = None
    new: Outcome | None = None
    only_old: Divergence | None = None
    only_new: Divergence | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        outcomes = {
            name: None
            if found is None
            else {"verdict": found.verdict, "broken": found.broken, "states": found.distinct}
            for name, found in (("old", self.old), ("new", self.new))
        }
        behaviours = {
            name: None if found is None else {
                "complete": found.complete, "states": found.states, "steps": [_step(step) for step in found.steps]
            }
            for name, found in (("only_old", self.only_old), ("only_new", self.only_new))
        }  # fmt: skip
        return {"model": self.model, "size": self.size, "reason": self.reason, **outcomes, **behaviours}


def _step(step: Step) -> dict[str, Any]:
    return {"action": step.action, "args": step.args}


@dataclass
class Difference:
    """All that was found. `mutants`: model → id → (noticed by the old, by the new; None: it has no such mutant);
    `audits`: traces → run → the two verdicts, where they differ; `proofs`: model → what has to be proved again.
    """

    old: str
    new: str
    changes: list[Change] = field(default_factory=list)
    sized: list[Sized] = field(default_factory=list)
    mutants: dict[str, dict[str, tuple[bool | None, bool | None]]] = field(default_factory=dict)
    proofs: dict[str, list[str]] = field(default_factory=dict)
    audits: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            **vars(self),
            "changes": [change.to_json() for change in self.changes],
            "sized": [sized.to_json() for sized in self.sized],
        }


def compare(old: Side, new: Side, plan: Plan, note: Callable[[str], None] = lambda text: None) -> Difference:
    """Ask both versions. Raises `SpecError` for a version that cannot be recorded or audited."""
    found = Difference(old.name, new.name)
    note(f"recording {old.name} and {new.name}")
    sides = [version.recorded() for version in (old, new)]
    before, after = (side["models"] for side in sides)
    found.changes = [*changes(before, after), *changes_of_checks(*sides)]
    found.proofs = _proofs(found.changes, after)
    for model in plan.models or _first_models(found.changes, before, after):
        note(f"searching {model}")
        pairs = list(_both(model, old, new, plan))
        found.sized += [_sized(pair, plan) for pair in pairs]
        names = frozenset(c.name for c in found.changes if c.kind == "action" and model in c.models)
        if plan.mutants and names:
            note(f"mutants of {', '.join(sorted(names))} in {model}")
            found.mutants[model] = _mutants(pairs, names, plan)
    if isinstance(old, Version) and isinstance(new, Version):
        for traces in plan.corpora:
            note(f"auditing {traces}")
            one, two = ({run: told.verdict for run, told in audited(v, [traces]).items()} for v in (old, new))
            pairs_of = {run: (one.get(run, "not read"), two.get(run, "not read")) for run in (*one, *two)}
            found.audits[str(traces)] = {run: both for run, both in pairs_of.items() if both[0] != both[1]}
    return found


def _first_models(found: Sequence[Change], before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Of each change of what a model does or must not do the first model that has it, in both versions; and the new
    models whose shapes this program knows.
    """
    chosen: list[str] = []
    for change in found:
        there = [model for model in change.models if model in before and model in after]
        if change.kind in ("action", "invariant", "witness") and there and not set(there) & set(chosen):
            chosen.append(there[0])
    fresh = [change.name for change in found if change.kind == "model" and change.name in after]
    return chosen + [model for model in fresh if model in MODELS]


def _proofs(found: Sequence[Change], after: Mapping[str, Any]) -> dict[str, list[str]]:
    """Model with lemmas → the actions, invariants and lemmas of it that are other ones now."""
    again: dict[str, list[str]] = {}
    for change in found:
        for model in change.models:
            if change.kind in ("action", "invariant", "lemma") and after.get(model, {}).get("lemmas"):
                again.setdefault(model, []).append(f"{change.kind} {change.name}")
    return again


@dataclass
class _Pair:
    """A shape in both versions as plain data (None: there is no such size there)."""

    model: str
    size: str
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    reason: str = ""


def _both(model: str, old: Side, new: Side, plan: Plan) -> Iterator[_Pair]:
    if plan.own:
        yield _Pair(model, plan.own, *(side.recorded()["models"][model] for side in (old, new)))
        return
    sizes = _sizes(model, plan.shapes)
    asked = [(model, size.replicas, dict(vars(size.bounds))) for size in sizes]
    answers = [version.recorded([], asked)["shapes"] for version in (old, new)]
    for size, one, two in zip(sizes, *answers, strict=True):
        reasons = [f"{v.name}: {a['reason']}" for v, a in ((old, one), (new, two)) if a["reason"]]
        yield _Pair(model, size.name, one["spec"], two["spec"], "; ".join(reasons))


def _sizes(model: str, most: int) -> Sequence[Size]:
    if model not in MODELS:
        raise SpecError(f"{model} is not a model of this version, which knows its shapes")
    return shapes_of(model)[:most]


def _sized(pair: _Pair, plan: Plan) -> Sized:
    found = Sized(pair.model, pair.size, reason=pair.reason)
    found.old, found.new = (
        None if data is None else search(Shape(pair.size, _alone(data), plan.states), workers=plan.workers)[0]
        for data in (pair.old, pair.new)
    )
    if pair.old is None or pair.new is None:
        return found
    try:
        found.only_old = diverging(pair.old, pair.new, plan.states, plan.workers)
        found.only_new = diverging(pair.new, pair.old, plan.states, plan.workers)
    except UnlikeError as problem:
        found.reason = f"behaviours are not compared: {problem.message}"
    return found


def _alone(data: Mapping[str, Any]) -> Spec:
    return load(data, Common())


def _mutants(pairs: Sequence[_Pair], names: frozenset[str], plan: Plan) -> dict[str, tuple[bool | None, bool | None]]:
    """Which mutants of the changed actions the shapes notice, in either version."""
    noticed = [_noticed([pair.old for pair in pairs], names, plan), _noticed([pair.new for pair in pairs], names, plan)]
    return {id: (noticed[0].get(id), noticed[1].get(id)) for id in dict.fromkeys((*noticed[0], *noticed[1]))}


def _noticed(specs: Sequence[Mapping[str, Any] | None], names: frozenset[str], plan: Plan) -> dict[str, bool]:
    shapes = [Shape(str(n), _alone(data), plan.states) for n, data in enumerate(specs) if data is not None]
    try:
        ground = mutate.survey(shapes, plan.workers)
    except SpecError:
        return {}  # it is wrong as it stands: its mutants say nothing
    reports = mutate.hunt(shapes, ground, actions=names, workers=plan.workers)
    return {report.mutant.id: report.death is not None for report in reports}
