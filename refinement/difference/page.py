"""The one page about a change, Markdown: for a terminal, a file, or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from operator import eq

from viewproof.refinement.difference.compare import Difference, Sized
from viewproof.refinement.difference.texts import Change
from viewproof.refinement.reports.text import number
from viewproof.spec.engines.compare import Divergence
from viewproof.spec.engines.explicit.result import Step
from viewproof.spec.engines.portfolio import Outcome

MODELS_SHOWN = 6
LINES_MAX = 200
"""Characters of one line of recorded text."""
CONTEXT = 60
"""Characters shown before the place in which a long line differs."""


def page(found: Difference) -> str:
    """The page."""
    parts = [f"# {found.old} → {found.new}: what the change of the specification changes\n", _headline(found)]
    parts += list(_texts(found.changes))
    parts += list(_behaviours(found.sized))
    parts += list(_mutants(found))
    parts += list(_proofs(found))
    parts += list(_audits(found))
    return "\n".join(parts) + "\n"


def _headline(found: Difference) -> str:
    if not found.changes:
        return "Nothing that is recorded differs: the same variables, actions, invariants, witnesses and lemmas.\n"
    kinds = dict.fromkeys(change.kind for change in found.changes)
    counts = [f"{sum(1 for c in found.changes if c.kind == kind)} × {kind}" for kind in kinds]
    lines = [f"Differs: {', '.join(counts)}."]
    for what, verdict in _verdicts(found.sized):
        lines.append(f"{what}: {verdict}.")
    return "\n".join(lines) + "\n"


def _verdicts(sized: list[Sized]) -> Iterator[tuple[str, str]]:
    """Invariants that are broken in one version only, and witnesses reached in one only, over the shapes of a model."""
    for model in dict.fromkeys(s.model for s in sized):
        here = [s for s in sized if s.model == model]
        both = [s for s in here if s.old is not None and s.new is not None]
        old, new = ({_broken(o) for o in side if o} for side in ([s.old for s in both], [s.new for s in both]))
        new |= {_broken(s.new) for s in here if s.old is None and s.new is not None}
        gained, lost = sorted(filter(None, old - new)), sorted(filter(None, new - old))
        if lost:
            yield f"**{model}: broken now**", ", ".join(lost)
        if gained:
            yield f"**{model}: holds now, was broken**", ", ".join(gained)
        reached = [
            {w for o in side if o for w in o.witnessed} for side in ([s.old for s in both], [s.new for s in both])
        ]
        if more := sorted(reached[1] - reached[0]):
            yield f"**{model}: witnesses reached now only**", ", ".join(more)
        if fewer := sorted(reached[0] - reached[1]):
            yield f"**{model}: witnesses no longer reached**", ", ".join(fewer)


def _broken(outcome: Outcome) -> str:
    return outcome.broken if outcome.verdict == "violated" else "a range" if outcome.verdict == "range" else ""


def _texts(changes: list[Change]) -> Iterator[str]:
    if changes:
        yield "## What differs as text\n"
    for change in changes:
        more = len(change.models) - MODELS_SHOWN
        models = ", ".join(change.models[:MODELS_SHOWN]) + (f" and {more} more" if more > 0 else "")
        place = f"`{change.place}`; " if change.place else ""
        there = f"{place}in {models}" if models else place.removesuffix("; ")
        if change.kind in ("model", "mistake"):
            there = "new" if not change.removed else "no more" if not change.added else "other words"
        yield f"**{change.kind} `{change.name}`** ({there})\n"
        yield "```diff"
        yield from (f"- {_apart(line, change.added)}" for line in change.removed)
        yield from (f"+ {_apart(line, change.removed)}" for line in change.added)
        yield "```\n"


def _apart(line: str, others: list[str]) -> str:
    """A line; of a long one the part in which it differs from the line of the other version that begins like it."""
    begins = max((sum(takewhile(bool, map(eq, line, other))) for other in others), default=0)
    start = max(0, begins - CONTEXT) if len(line) > LINES_MAX else 0
    return _short(("… " if start else "") + line[start:])


def _short(line: str) -> str:
    return line if len(line) <= LINES_MAX else f"{line[:LINES_MAX]} …"


def _behaviours(sized: list[Sized]) -> Iterator[str]:
    if not sized:
        return
    yield "## What differs in behaviour\n"
    yield "| model | size | before | now | only before | only now |"
    yield "|---|---|---|---|---|---|"
    for row in sized:
        cells = (_outcome(row.old), _outcome(row.new), _length(row.only_old), _length(row.only_new))
        yield f"| {row.model} | {row.size} | {' | '.join(cells)} |"
    yield ""
    yield from (f"{row.model}, {row.size}: {row.reason}\n" for row in sized if row.reason)
    for model in dict.fromkeys(row.model for row in sized):
        for title, which in (("had and has no more", "only_old"), ("has now and had not", "only_new")):
            found = [(row, getattr(row, which)) for row in sized if row.model == model and getattr(row, which)]
            told = [(row, d) for row, d in found if d.steps]
            if told:
                row, divergence = min(told, key=lambda pair: len(pair[1].steps))
                yield f"The shortest behaviour that {model} {title} ({row.size}); its last step is the one:\n"
                yield from (f"{n}. {_step(step)}" for n, step in enumerate(divergence.steps, start=1))
                yield ""


def _outcome(outcome: Outcome | None) -> str:
    if outcome is None:
        return "no such size"
    if outcome.verdict in ("violated", "range"):
        return f"{_broken(outcome)} broken after {number(outcome.steps, 'step')}"
    return f"{'all' if outcome.verdict == 'holds' else 'first'} {outcome.distinct:,} states hold"


def _length(found: Divergence | None) -> str:
    if found is None:
        return "not compared"
    if found.steps:
        return f"one of {number(len(found.steps), 'step')}"
    return "none" if found.complete else f"none in {found.states:,} states"


def _step(step: Step) -> str:
    args = ", ".join(f"{key}={value}" for key, value in step.args.items())
    return f"`{step.action}({args})`"


def _mutants(found: Difference) -> Iterator[str]:
    if not found.mutants:
        return
    yield "## Mutants of the changed actions\n"
    for model, fates in found.mutants.items():
        told = []
        for n, when in enumerate(("before", "now")):
            fate = [both[n] for both in fates.values() if both[n] is not None]
            told.append(f"{when} {sum(map(bool, fate))} of {len(fate)}" if fate else f"{when} not asked (see above)")
        yield f"{model}: noticed in these shapes {', '.join(told)}.\n"
        survive = [id for id, (old, new) in fates.items() if new is False and old is not False]
        noticed = [id for id, (old, new) in fates.items() if old is False and new is True]
        for title, ids in (("Survive now, and did not before", survive), ("Noticed now, and not before", noticed)):
            if ids:
                yield f"{title}:\n"
                yield from (f"- `{_short(id)}`" for id in ids)
                yield ""


def _proofs(found: Difference) -> Iterator[str]:
    if not found.proofs:
        return
    yield "## Proofs to be done again\n"
    groups: dict[str, list[str]] = {}
    for model, names in found.proofs.items():
        groups.setdefault(", ".join(names), []).append(model)
    for what, models in groups.items():
        yield f"- {', '.join(f'`vsr prove {model}`' for model in models)}: {what}"
    yield ""


def _audits(found: Difference) -> Iterator[str]:
    for traces, runs in found.audits.items():
        yield f"## Audits of {traces}\n"
        if not runs:
            yield "Every run has the verdict that it had.\n"
            continue
        yield "| run | before | now |"
        yield "|---|---|---|"
        yield from (f"| {run} | {old} | {new} |" for run, (old, new) in runs.items())
        yield ""
