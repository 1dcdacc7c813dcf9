"""What the lessons of the course share: `show` prints what a search found, `lesson_1` … `lesson_8` judge answers.

A judge runs the tools on the answer: whatever does what the exercise asks is right, in any words.
"""

from __future__ import annotations

import linecache
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import viewproof
from viewproof.refinement.value_text import show_value
from viewproof.spec.engines.explicit.result import Result
from viewproof.spec.lang import Action, Predicate, Spec, SpecError, all_of, any_of, forall, implies
from viewproof.spec.lang.expr import Read, walk
from viewproof.spec.vsr.core.state import Core, Replica, View

SEED, REQUESTS = 7, 60
"""Of the runs of lesson 7."""
MISTAKES = ("commit.false_ack_after_start_view", "boot.replays_uncommitted", "table.primary_only")
"""One of them is in the replica of lesson 7."""


@dataclass(frozen=True)
class Judged:
    """Is the answer right, and why not."""

    right: bool
    says: str

    def __repr__(self) -> str:
        return f"{'RIGHT' if self.right else 'NOT YET'}: {self.says}"


def judge(lesson: Callable[..., Judged]) -> Callable[..., Judged]:
    """A judge to whom a mistake in the text of an answer is a wrong answer, said with its line, and no traceback."""

    @wraps(lesson)
    def judged(*args: Any, **options: Any) -> Judged:
        try:
            return lesson(*args, **options)
        except SpecError as error:
            return Judged(False, str(error))
        except Exception as error:
            place = _line_of_answer(error)
            if place is None:
                raise
            return Judged(False, f"{place}: {type(error).__name__}: {error}")

    return judged


def _line_of_answer(error: Exception) -> str | None:
    """The line in which an answer went wrong; None where no line of one is to blame."""
    ours = (str(Path(viewproof.__file__).parent), __file__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    if not frames:
        return None
    text = linecache.getline(frames[-1].filename, frames[-1].lineno or 0).strip()
    return f"line {frames[-1].lineno}, {text}" if text else f"line {frames[-1].lineno}"


def show(spec: Spec, result: Result) -> None:
    """Print a verdict, and the behaviour that leads to it: each step with the cells that it changes."""
    broken = f", {result.broken} ({result.title}) is broken" if result.broken else ""
    searched = f"; {result.distinct:,} states" if result.distinct else ""
    print(f"{result.verdict}{broken}{searched}")
    for number, step in enumerate(result.behaviour, 1):
        print(f"{number:3}. {step.action}({', '.join(f'{name}={value}' for name, value in step.args.items())})")
        for change in step.changes:
            var, index = spec.schema.vars[change.var], ", ".join(map(str, change.index))
            before, after = show_value(var, change.before), show_value(var, change.after)
            print(f"       {change.var}{f'[{index}]' if index else ''}: {before} → {after}")


def broken_by(result: Result) -> str:
    """A broken invariant, and the steps to it, in one line."""
    steps = (f"{step.action}({', '.join(f'{n}={v}' for n, v in step.args.items())})" for step in result.behaviour)
    return f"{result.broken} ({result.title}) is broken after {' → '.join(steps)}"


def judge_search(spec: Spec, *, as_good_as: Spec | None = None, **options: Any) -> Judged:
    """Right where a search finds no break, and meets each witness that it meets in `as_good_as` (default: all)."""
    found = viewproof.check(spec, **options)
    if found.verdict == "violated":
        return Judged(False, broken_by(found))
    expected = set() if as_good_as is None else set(viewproof.check(as_good_as, **options).unwitnessed)
    for id, title in found.unwitnessed.items():
        if id not in expected:
            return Judged(False, f"nothing breaks, but too little happens: there is no state in which {title} ({id})")
    if found.verdict == "inconclusive":
        return Judged(True, f"no break among the first {found.distinct:,} states")
    return Judged(True, f"no break in any of {found.distinct:,} states")


@judge
def lesson_1(store: Spec, answer: object) -> Judged:
    """The store of lesson 1 with another `answer`: what a client was told survives the leader."""
    if not isinstance(answer, Action):
        return Judged(False, "answer is a function with @action above it")
    changed = store.with_actions({"answer": replace(answer, name="answer")})
    if others := sorted({update.var.name for update in changed.ir("answer").updates} - {"answered"}):
        return Judged(False, f"answer changes {', '.join(others)}, too: it tells the client, and does nothing else")
    return judge_search(changed)


@judge
def lesson_2(quorums: Callable[[int, int], Spec], write: int, read: int, *, down: int = 3) -> Judged:
    """Sizes of quorums of five nodes: reads see what was written, and go on with `down` nodes down; writes with as many
    as can be.
    """

    def safe(*sizes: int) -> Judged:
        return judge_search(replace(quorums(*sizes), witnesses=()))

    def goes_on(sizes: tuple[int, int], what: str, nodes: int) -> bool:
        return viewproof.reach(quorums(*sizes), f"{what}{nodes}").verdict == "violated"

    if not safe(write, read).right:
        return safe(write, read)
    if not goes_on((write, read), "R", down):
        return Judged(False, f"with {down} nodes down nobody can read: {read} have to answer")
    others = ((w, r) for w in range(1, write) for r in range(1, 6))
    for sizes in others:
        if safe(*sizes).right and goes_on(sizes, "R", down):
            return Judged(
                False, f"this is safe, but more nodes could be down for a write: {sizes[0]} are enough for one"
            )
    able = [n for n in range(5) if goes_on((write, read), "W", n)]
    return Judged(True, f"reads go on with {down} nodes down, writes with {max(able)}")


@judge
def lesson_3(core: Spec, steps: Sequence[tuple[str, Mapping[str, int]]], *, most: int = 12) -> Judged:
    """A behaviour after which replica 1 leads view 1, and has executed the request that view 0 took in."""
    found = viewproof.replay(core, steps)
    if not found.behaviour:
        return Judged(False, "there are no steps yet")
    if len(found.behaviour) > most:
        return Judged(False, f"{len(found.behaviour)} steps; {most} are enough")
    state = found.behaviour[-1].state
    lacks = [
        text
        for var, index, value, text in (
            ("view", (1,), 1, "replica 1 is not in view 1"),
            ("status", (1,), 0, "replica 1 is not normal"),
            ("sv", (1,), True, "view 1 has not started"),
            ("executed", (1, 1), 1, "replica 1 has not executed op 1 as view 0 prepared it"),
        )
        if state.get(core.schema.vars[var], index) != value
    ]
    return Judged(not lacks, "; ".join(lacks) or f"{len(found.behaviour)} steps, each one allowed")


@judge
def lesson_4(rule: Callable[[Any], Action], no_larger: Any) -> Judged:
    """A rule which log a view starts with, in two sizes: one searched whole, and one in which two views race."""

    @viewproof.invariant("comparable", "of two offers one is no larger than the other")
    def comparable(state: Core) -> Any:
        """A view can start with any two offers."""

        def compared(r: Any, v: Any, a: Any, b: Any) -> Any:
            both = all_of(state.dvc[v, a].sent, state.dvc[v, b].sent)
            return implies(both, lambda: any_of(no_larger(state, r, v, a, b), no_larger(state, r, v, b, a)))

        def each(r: Any, v: Any, a: Any) -> Any:
            return forall(Replica, lambda b: compared(r, v, a, b))

        return forall(Replica, lambda r: forall(View, lambda v: forall(Replica, lambda a: each(r, v, a))))

    changed = {"start_view": rule(no_larger)}
    small = viewproof.model("core", views=3, ops=1, requests=1)
    race = viewproof.model("core", views=3, ops=2, clients=2, requests=1)
    judged = judge_search(small.with_actions(changed), as_good_as=small)
    if not judged.right:
        return judged
    some = replace(small.with_actions(changed), invariants=(comparable,), witnesses=())
    if not judge_search(some).right:
        return Judged(False, "safe, but of some two offers neither is the better: no view can start with these two")
    return judge_search(replace(race.with_actions(changed), witnesses=()), symmetry=["Client"], max_states=2_000_000)


@judge
def lesson_5(once: Predicate, mistakes: Iterable[tuple[str, Spec]]) -> Judged:
    """An invariant of one's own: it holds of the protocol, says nothing about the table, and notices the mistakes."""
    core = replace(viewproof.model("core", views=2, ops=2, requests=2), invariants=(once,), witnesses=())
    try:
        [recorded] = core.invariant_irs
        found = viewproof.check(core)
    except SpecError as error:
        nobody = "; where `executed` is NONE there is nobody to ask for: implies(premise, lambda: …)"
        return Judged(False, str(error) + nobody * ("index -1 " in str(error)))
    read = {node.var.name for node in walk(recorded.cond) if isinstance(node, Read)}
    if "executed" not in read:
        return Judged(False, "it does not look at what replicas executed")
    if "table" in read:
        return Judged(False, "it looks at the client table: say what must not happen, not how it is prevented")
    if found.verdict == "violated":
        return Judged(False, f"it does not hold of the protocol as it is: {broken_by(found)}")
    for name, wrong in mistakes:
        if viewproof.check(replace(wrong, invariants=(once,), witnesses=())).verdict != "violated":
            return Judged(False, f"a request is executed twice with {name}, and it does not notice")
    return Judged(True, f"it holds in {found.distinct:,} states, and notices every mistake")


@judge
def lesson_6(core: Spec, on_prepare: Action, append: Action) -> Judged:
    """Acknowledgements that survive a crash, in a core with one."""
    changed = {"on_prepare": replace(on_prepare, name="on_prepare"), "append": replace(append, name="append")}
    judged = judge_search(core.with_actions(changed), as_good_as=core)
    if not judged.right:
        return judged
    # State transfer acknowledges, too: without it everything has to be done by the two actions.
    alone = replace(core, actions=tuple(act for act in core.actions if act.name != "on_start_view"))
    without = judge_search(alone.with_actions(changed), as_good_as=alone)
    return judged if without.right else without


def mystery(out: str | Path) -> Path:
    """The traces of lesson 7, below `out`: a run of three replicas that have one of `MISTAKES`."""
    viewproof.simulate(SEED, requests=REQUESTS, faults=[MISTAKES[len(MISTAKES) // 2]], out=out)
    return Path(out)


@judge
def lesson_7(traces: Path, file: str, line: int, mistake: str) -> Judged:
    """The first wrong event of the traces, and the mistake: a run with the same seed and mistake writes the same."""
    report = viewproof.audit(traces)
    first = report.violations[0]
    if (Path(first.file).name, first.line) != (file, line):
        return Judged(False, f"that is not the first event that the specification does not explain: {file}:{line}")
    if mistake not in MISTAKES:
        return Judged(False, f"{mistake} is none of {', '.join(MISTAKES)}")
    with tempfile.TemporaryDirectory() as other:
        viewproof.simulate(SEED, requests=REQUESTS, faults=[mistake], out=other)
        for mine in sorted(traces.rglob("*.ndjson")):
            if mine.read_bytes() != (Path(other) / mine.relative_to(traces)).read_bytes():
                return Judged(False, f"a replica with {mistake} does not write this {mine.name}")
    return Judged(True, f"{mistake} writes these traces, byte for byte")


def leaves(proof: Any, failure: Any) -> str:
    """The cells that alone make a step break a proof, with their values: `log[1, 1] = false`."""
    shown = []
    for leaf in failure.example.leaves:
        index = f"[{', '.join(map(str, leaf.index))}]" if leaf.index else ""
        shown.append(f"{leaf.var}{index} = {show_value(proof.problem.spec.schema.vars[leaf.var], leaf.value)}")
    return ", ".join(shown)


@judge
def lesson_8(store: Spec, lemmas: Sequence[Predicate]) -> Judged:
    """Lemmas with which the invariant of a store is inductive."""
    if isinstance(lemmas, Predicate):
        return Judged(False, "lemmas is a list: lemmas = [lemma]")
    proof = viewproof.prove(store, lemmas=lemmas, workers=1)
    if proof.verdict == "proved":
        return Judged(True, f"proved with {', '.join(lemma.title for lemma in lemmas)}")
    [goal, failures], *_ = proof.failed().items()
    if failures[0].action == "initial state":
        return Judged(False, f"{goal} does not even hold at the start")
    [found] = viewproof.counterexamples(proof, most=1)
    what = f"{found.goal} is not inductive: {found.example.label} breaks it in a state with {leaves(proof, found)}"
    if found.before == "reachable":
        return Judged(False, f"{what}; such a state is reached in {found.count} steps, so {found.goal} is not true")
    return Judged(False, f"{what}, which your lemmas allow; no such state is reached, so say more, and it goes on")
