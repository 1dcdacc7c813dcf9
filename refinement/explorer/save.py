"""A behaviour that was chosen, as a file: a scenario test, a trace in ITF, a page, or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from viewproof.refinement.explorer.subject import Subject, document, go, specification, story
from viewproof.refinement.reports.behaviour import render
from viewproof.spec.engines.explicit.result import Result, Step
from viewproof.spec.engines.itf import to_itf
from viewproof.spec.engines.walk import judged
from viewproof.spec.lang import Spec, SpecError


def save(subject: Subject, form: str, faults: tuple[str, ...], steps: Sequence[tuple[str, Any]]) -> tuple[str, str]:
    """The name of the file and its text. Raises `SpecError` for an unknown form, and for steps that cannot be taken."""
    if form not in FORMS:
        raise SpecError(f"{form} is no form of a behaviour; there are: {', '.join(FORMS)}")
    spec = specification(subject, faults)
    taken, refused = go(spec, steps, subject.start)
    if refused:
        raise SpecError(refused)
    ending, text = FORMS[form]
    return f"{subject.name}-{len(taken)}-steps".replace("-", "_" if form == "python" else "-") + ending, text(
        subject, spec, faults, taken
    )


def _python(subject: Subject, spec: Spec, faults: tuple[str, ...], taken: Sequence[Step]) -> str:
    if subject.python is None:
        raise SpecError("a scenario test is written for the models that are here; save one's own as ITF")
    calls = "\n".join(f'    ("{step.action}", {json.dumps(step.args)}),' for step in taken)
    found = judged(spec, taken, subject.start)
    ends = f"breaks {found.broken} ({found.title})" if found.broken else "breaks no invariant"
    assertion = f'result.broken == "{found.broken}"' if found.broken else 'result.verdict == "holds"'
    return f'''"""A behaviour of the model {subject.name} that {ends}."""

import viewproof

STEPS = [
{calls}
]


def test_the_behaviour_can_be_taken_and_{"breaks_" + found.broken if found.broken else "breaks_nothing"}() -> None:
    spec = {subject.python(faults)}
    result = viewproof.replay(spec, STEPS)
    assert {assertion}
    assert len(result.behaviour) == {len(found.behaviour)}
'''


def _itf(subject: Subject, spec: Spec, faults: tuple[str, ...], taken: Sequence[Step]) -> str:
    result = replace(Result(spec.name, "holds"), behaviour=list(taken))
    return json.dumps(to_itf(spec, result, subject.start), indent=1)


def _page(subject: Subject, spec: Spec, faults: tuple[str, ...], taken: Sequence[Step]) -> str:
    told = story(subject, spec, faults, taken)
    return render(told, document(subject, told))


def _json(subject: Subject, spec: Spec, faults: tuple[str, ...], taken: Sequence[Step]) -> str:
    return json.dumps(document(subject, story(subject, spec, faults, taken)), ensure_ascii=False, indent=1)


_Text = Callable[[Subject, Spec, tuple[str, ...], Sequence[Step]], str]
FORMS: dict[str, tuple[str, _Text]] = {
    "python": ("_test.py", _python),
    "itf": (".itf.json", _itf),
    "page": (".html", _page),
    "json": (".json", _json),
}
"""Form → ending of the file's name, and what writes it."""
