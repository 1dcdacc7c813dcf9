"""A proof of a specification with a mistake fails, at an action that the mistake changes: `benchmarks.faults --proofs`.

Of a fault of the core the proof without sizes is asked, of the changed actions, up to the first goal that is false in
some state; where that is not decided in time, and of a fault of a part, the induction in the size of its record. Beside
it the shortest real break, and the seconds until it was found. A mistake that breaks a goal of progress has no such
proof.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache

from viewproof.refinement.cli.prove_unbounded import all_lemmas, following
from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt.certificate import fingerprints
from viewproof.spec.engines.smt.induction import Failure
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.engines.smt.unbounded.proof import Problem, Question, Result, ask, without_sizes
from viewproof.spec.engines.smt.unbounded.solve import ATTEMPTS
from viewproof.spec.lang import Predicate, Spec
from viewproof.spec.vsr.core.progress import goals
from viewproof.spec.vsr.fault_models import FAULT_MODELS, FaultModel
from viewproof.spec.vsr.lemmas import lemmas_of, more_of_any_size

LIMIT_MS = 5_000
SECONDS = 60
"""After so many no further question without sizes is asked of a row."""
HEADER = ("fault", "changes", "proof", "fails at", "lemma", "s", "breaks", "steps", "states", "s")
WITHOUT_SIZES = "any size"
NOWHERE = ("NOWHERE", "–")


def searched(chosen: FaultModel, fault: str) -> tuple[str, ...]:
    """What the explicit search finds: broken, steps, states, seconds."""
    started = time.perf_counter()
    spec = chosen.spec(fault)
    if chosen.stops_progress:
        wanted = list(goals(spec))
        answers = explicit.always_reaches(spec, wanted)
        broken = [a for a in answers if a.result.verdict == "violated"]
        found = min((a.result for a in broken), key=lambda r: len(r.behaviour), default=answers[0].result)
        name = ", ".join(a.goal.id for a in broken)
    else:
        found = explicit.explore(spec)
        name = found.broken or ""
    seconds = time.perf_counter() - started
    return name or "NOTHING", str(len(found.behaviour)), f"{found.distinct:,}", f"{seconds:.1f}"


def lemmas(spec: Spec) -> tuple[Predicate, ...]:
    """The lemmas that a proof of the model uses."""
    return lemmas_of(spec.cfg, crashes=spec.instance.bounds.get("Restart") != 0)


@cache
def fails_anyway(chosen: FaultModel) -> frozenset[tuple[str, ...]]:
    """What induction does not show of the model without a fault: action instances and goals."""
    spec = chosen.spec()
    return frozenset(named(f) for f in prove(spec, lemmas(spec), workers=2).failures)


def named(failure: Failure) -> tuple[str, ...]:
    """An action instance and a goal."""
    return (failure.action, str(failure.args), failure.goal, str(failure.names))


def changed_actions(fault: str) -> list[str]:
    """The actions that are recorded differently with a fault, and those that it adds."""
    spec = FAULT_MODELS[fault].spec(fault)
    right, wrong = (fingerprints(s, ()) for s in (FAULT_MODELS[fault].spec(), spec))
    names = [ir.name for ir in spec.action_irs]
    return [name for name in names if wrong[f"action {name}"] != right.get(f"action {name}")]


def still_following(fault: str) -> tuple[Predicate, ...]:
    """What follows from the lemmas in the same state, but for what says something else with a fault: of smaller quorums
    it need not follow.
    """
    right, wrong = (FAULT_MODELS[fault].spec(*faults) for faults in ((), (fault,)))
    before, now = (fingerprints(s, following(s)) for s in (right, wrong))
    return tuple(p for p in following(wrong) if now[f"lemma {p.id}"] == before.get(f"lemma {p.id}"))


def fails_in_any_size(fault: str, actions: Sequence[str]) -> tuple[str, str] | None:
    """The first action and lemma with a goal that is false in some state; None: some are not decided (in time).

    What induction does not show in the size of the record is asked first: a state of that size is one of any size, too.
    """
    spec = FAULT_MODELS[fault].spec(fault)
    said, follows = all_lemmas(spec), still_following(fault)
    problem = Problem(without_sizes(spec, (*said, *follows)), said, follows)
    asked = [
        question
        for number, step in enumerate(problem.steps, start=2)
        if step.ir.name in actions
        for question in problem.questions(number)
    ]
    likely = [(question, ATTEMPTS) for question in _likely(spec, asked)]
    ends = time.monotonic() + SECONDS
    undecided: dict[str, Result] = {}
    for question, attempts in (*likely, *((q, (attempt,)) for attempt in ATTEMPTS[:2] for q in asked)):
        if time.monotonic() > ends:
            return None
        result = ask(problem, question, LIMIT_MS, attempts)
        if result.status == "sat" and attempts is not ATTEMPTS:
            result = ask(problem, question, LIMIT_MS)
        if result.status == "sat":
            return result.action, result.lemma
        undecided.pop(question.label, None)
        undecided |= {question.label: result} if result.status == "unknown" else {}
    return None if undecided else NOWHERE


def _likely(spec: Spec, asked: Sequence[Question]) -> list[Question]:
    """Of the questions those that induction in the size of the specification answers with no, its first lemma first."""
    found = [(f.action, f.args, f.goal) for f in prove(spec, lemmas(spec), workers=2).failures]
    places = []
    for question in asked:
        step = question.step
        assert step is not None
        fits = [
            n for n, (action, args, lemma) in enumerate(found)
            if (action, lemma) == (step.ir.name, question.lemma) and step.args.items() <= args.items()
        ]  # fmt: skip
        places += [(fits[0], question)] if fits else []
    return [question for _, question in sorted(places, key=lambda place: place[0])]


def fails_in_its_size(chosen: FaultModel, fault: str, actions: Sequence[str]) -> tuple[str, str]:
    """A changed action at which induction fails, and the first lemma that it breaks; else another one."""
    spec = chosen.spec(fault)
    known = fails_anyway(chosen)
    new = [f for f in prove(spec, lemmas(spec), workers=2).failures if named(f) not in known]
    new.sort(key=lambda f: f.action not in actions)
    if not new:
        return NOWHERE
    return (new[0].action + ("" if new[0].action in actions else " (not changed)"), new[0].goal)


def proof_rows(faults: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The rows of the table."""
    for fault in faults:
        chosen = FAULT_MODELS[fault]
        if chosen.stops_progress:
            continue
        spec = chosen.spec(fault)
        changed = changed_actions(fault)
        actions = changed or [ir.name for ir in spec.action_irs]
        started = time.perf_counter()
        found = fails_in_any_size(fault, actions) if more_of_any_size(spec.cfg) else None
        size = chosen.model if found is None else WITHOUT_SIZES
        found = found or fails_in_its_size(chosen, fault, actions)
        seconds = time.perf_counter() - started
        names = ", ".join(f"`{name}`" for name in changed) or "quorums"
        yield (f"`{fault}`", names, size, *found, f"{seconds:.1f}", *searched(chosen, fault))
