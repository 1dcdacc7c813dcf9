"""Search of all states of a bounded specification: does an invariant break, can a state be reached?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from viewproof.api.model import named_or_given
from viewproof.spec.engines import explicit
from viewproof.spec.engines.explicit import Progress, Result
from viewproof.spec.lang import Spec, SpecError, not_


def _quiet(text: str) -> None:
    """Notes of the engine (that it has compiled) go nowhere unless asked for."""


def check(
    spec: Spec | str,
    *,
    invariants: Iterable[str] = (),
    max_states: int | None = None,
    max_memory_bytes: int | None = None,
    workers: int | None = None,
    symmetry: Iterable[str] = (),
    reduce: bool = False,
    checkpoint: Path | None = None,
    resume: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    notify: Callable[[str], None] = _quiet,
) -> Result:
    """Search every state of `spec` (a specification, or the name of a model), breadth first.

    The result: `verdict` is holds, violated or inconclusive (then `reason` says which bound came first); `distinct`
    and `generated` count states, `depth` levels, `seconds` the search without compilation; `broken` and `title` name
    the invariant that a shortest behaviour breaks, `behaviour` are its steps (`action`, `args`, `changes`, `source`,
    the `state` after it); `unwitnessed` names invariants that are vacuous here; `to_json()` is what `--json` writes.
    What "holds" means is in `viewproof.spec.engines.explicit`.

    `invariants` are ids (default: all); `max_states` and `max_memory_bytes` (default: 60 % of the free) bound the
    search; `workers` are threads (default: the cores) and never change the result; `symmetry` names a sort whose
    members are exchangeable, `reduce` turns partial-order reduction on; a search is saved in `checkpoint` and gone on
    with from `resume`; `progress` is called now and then, `notify` with notes.

    Raises `SpecError` for unknown names and for text that cannot be recorded, `RangeError` for a step that leaves a
    declared range (its `behaviour` leads there), `EngineError` where the engine and the reference interpreter disagree.
    """
    searched = named_or_given(spec)
    wanted = tuple(invariants)
    return explicit.explore(
        searched, max_states=max_states, max_memory_bytes=max_memory_bytes, invariants=wanted or None,
        progress=progress, notify=notify, workers=workers, checkpoint=checkpoint, resume=resume,
        symmetry=tuple(symmetry), reduce=reduce,
    )  # fmt: skip


def reach(spec: Spec | str, witness: str, **options: Any) -> Result:
    """A shortest behaviour to a witness state (`spec.witnesses`), by its id; `options` are those of `check`.

    The result is that of a search for a break of "never there": `verdict` violated means reached, by `behaviour`;
    holds means that no reachable state is one. Raises as `check` does.
    """
    searched = named_or_given(spec)
    return check(never(searched, witness), **options)


def never(spec: Spec, witness: str) -> Spec:
    """`spec` with one invariant, that the witness of that id is never met. Raises `SpecError` for an unknown id."""
    wanted = next((w for w in spec.witnesses if w.id == witness), None)
    if wanted is None:
        raise SpecError(f"no witness {witness}; there are: {', '.join(w.id for w in spec.witnesses)}")
    return replace(spec, invariants=(replace(wanted, fn=lambda s: not_(wanted.fn(s))),), witnesses=())
