"""Inductive proofs: do the invariants hold at any depth?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from viewproof.api.model import named_or_given
from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt import cti
from viewproof.spec.engines.smt.induction import RANGES
from viewproof.spec.engines.smt.proof import Proof, Report, processors
from viewproof.spec.engines.smt.proof import prove as run_proof
from viewproof.spec.lang import Predicate, Spec
from viewproof.spec.protocols import protocol_of

REACH = 200_000
"""States searched for the leaves of a counterexample to induction."""


def lemmas_of_model(spec: Spec) -> tuple[Predicate, ...]:
    """The lemmas that the proof of a model of a protocol uses; none for a specification of one's own."""
    protocol = protocol_of(spec)
    return protocol.lemmas(spec) if protocol else ()


def prove(
    spec: Spec | str,
    *,
    lemmas: Sequence[Predicate] | None = None,
    workers: int | None = None,
    timeout_seconds: float = 0.0,
    used: bool = False,
    stop_early: bool = False,
    progress: Report = lambda done, total, name: None,
) -> Proof:
    """Are the invariants of `spec` (a specification, or the name of a model) and the lemmas inductive together?

    The proof: `verdict` is proved (they hold in every reachable state of the instance, at any depth), failed (a step
    from some state that satisfies them breaks one; `counterexamples` shows it), or unknown (the solver gave up);
    `lemmas` and `actions` count queries, solver visits and seconds by name; `failures`; `seconds` in all. What
    "proved" means is in `viewproof.spec.engines.smt`.

    `lemmas` are predicates that help (default: those of the model's proof); `workers` are processes (default: one per
    processor) and never change the result; `timeout_seconds` limits one query (0: no limit); `used` asks also which
    lemmas each lemma needs; `stop_early` ends at the first failure; `progress(done, total, name)` is called after each
    action instance. Raises `SpecError` for an unknown name, and for what the engine cannot express, by name.
    """
    problem = named_or_given(spec)
    return run_proof(
        problem, lemmas_of_model(problem) if lemmas is None else lemmas, workers=workers or processors(),
        timeout_ms=int(timeout_seconds * 1000), used=used, stop_early=stop_early, progress=progress,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepToInduction:
    """A step from a state that satisfies the lemmas to one that breaks one.

    `example`: the states `before` and `after`, and the `leaves`, the few cells that alone decide; `before` says whether
    a state with these leaves was reached from the initial state; `count` is then the number of steps to it, else the
    number of states that were searched.
    """

    example: cti.Counterexample
    before: Literal["reachable", "unreachable", "unknown", "not asked"]
    count: int

    @property
    def goal(self) -> str:
        """Id of the invariant or lemma that the step breaks, or `ranges`."""
        return self.example.failure.goal


def counterexamples(
    proof: Proof, *, most: int = 3, max_states: int = REACH, notify: Callable[[str], None] = lambda text: None
) -> list[StepToInduction]:
    """The failures of a proof made small, at most `most`, the first of each lemma; none for one that went through.

    The states before them are searched for among `max_states` reachable ones (0: not at all). Raises as `check` does.
    """
    failures = [f[0] for f in proof.failed().values() if f[0].status == "sat" and f[0].action != "initial state"]
    found = [cti.explain(proof.problem, failure) for failure in failures[:most]]
    if not max_states or not found:
        return [StepToInduction(example, "not asked", 0) for example in found]
    avoided = {f"leaves {n}": example.avoided(f"leaves {n}") for n, example in enumerate(found)}
    told: dict[str, tuple[Literal["reachable", "unreachable", "unknown"], int]] = {}
    while rest := tuple(avoided[id] for id in avoided if id not in told):
        question = replace(proof.problem.spec, invariants=rest, witnesses=())
        result = explicit.explore(question, max_states=max_states, notify=notify)
        if result.broken in avoided:
            told[str(result.broken)] = "reachable", len(result.behaviour)
        else:
            end: Literal["unreachable", "unknown"] = "unreachable" if result.verdict == "holds" else "unknown"
            told |= {predicate.id: (end, result.distinct) for predicate in rest}
    return [StepToInduction(example, *told[id]) for example, id in zip(found, avoided, strict=True)]


def breaks_invariant(proof: Proof, found: Sequence[StepToInduction]) -> bool:
    """Is one of them a reachable break of an invariant (or of a declared range)? Then the protocol is wrong."""
    ids = {RANGES, *(p.id for p in proof.problem.spec.invariants)}
    return any(step.before == "reachable" and step.goal in ids for step in found)
