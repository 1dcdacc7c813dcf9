"""`vsr explore`: a page on which one chooses the steps of a bounded model, or looks at a recorded run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from viewproof.api import model as api
from viewproof.api.check import check as search
from viewproof.api.check import never
from viewproof.refinement.cli.check_import import imported
from viewproof.refinement.cli.explore_trace import explore_trace, page_options, show
from viewproof.refinement.cli.models import SIZES, ProfileName, bounded_model, model_options
from viewproof.refinement.cli.options import Place
from viewproof.refinement.cli.own_model import is_own
from viewproof.refinement.explorer import Goal, Subject
from viewproof.spec.engines.explicit import Progress
from viewproof.spec.engines.explicit.result import Step
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.protocols import MODELS

OF_A_TRACE = {text for option in explore_trace.params for text in option.opts} - {"--port", "--open", "paths"}
"""Options that only a trace has."""


class Explore(click.Command):
    """`explore MODEL`, or `explore TRACE`, which has options of its own."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **more: Any) -> click.Context:
        """That of the command that is meant."""
        if names_trace(args):
            return explore_trace.make_context(info_name, args, *rest, **more)
        return super().make_context(info_name, args, *rest, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is meant."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


def names_trace(args: list[str]) -> bool:
    """Do the words name a trace, and no model? (`--adapter iggy` is of a trace; there is a model of that name, too.)"""
    if any(word.partition("=")[0] in OF_A_TRACE for word in args):
        return True
    if any(word in MODELS or is_own(word) or word in ("--fault", "--import") for word in args):
        return False
    return any(word and not word.startswith("-") and (Path(word).exists() or "*" in word) for word in args)


@click.command(cls=Explore)
@model_options
@click.option("--profile", type=ProfileName(), default="core", help="Options of the protocol.", show_default=True)
@page_options
@click.option(
    "--import",
    "trace",
    type=Place(exists=True, dir_okay=False),
    help="Begin with the behaviour in this ITF file.",
)
@click.option(
    "--max-states", type=click.IntRange(1), default=20_000_000, show_default=True, help="Bound of a search for a goal."
)
def explore(
    name: str, faults: tuple[str, ...], replicas: int | None, profile: str, port: int, opens: bool, trace: Path | None,
    max_states: int, invariants: tuple[str, ...], **sizes: int | None,
) -> int:  # fmt: skip
    """Choose the steps of a model, one by one, on a page of this machine (127.0.0.1).

    The page shows which steps are enabled, and of the others the guard in the way with its values; one goes back, on,
    and jumps to witnesses and to breaks of invariants; mistakes are switched on and off; a behaviour is saved as a
    scenario test in Python, as ITF, or as a page. Ctrl-C ends it.

    Of a TRACE (a file or directory, as of vsr audit; vsr explore TRACE --help) it shows a run event by event.
    """
    if invariants:
        raise click.UsageError("--invariant does not apply to vsr explore: the page shows all of them")
    spec, text = bounded_model(name, replicas, faults, {key: sizes[key] for key in SIZES}, profile)
    if is_own(name):
        subject = _own(spec, text, max_states)
    else:
        subject = _named(name, api.model_size(name, replicas, faults, sizes), faults, profile, max_states)
    if trace is not None:
        subject = replace(subject, begin=tuple((s.action, s.args) for s in imported(spec, trace).behaviour))
    return show(subject, port, opens)


def _own(spec: Spec, text: str, max_states: int) -> Subject:
    return Subject(spec.name, text, lambda faults: spec, _searching(max_states))


def _named(name: str, size: api.ModelSize, faults: tuple[str, ...], profile: str, max_states: int) -> Subject:
    """A model that is here, in these sizes whatever mistakes are switched on."""
    protocol = size.protocol
    own = vars(protocol.models[name])
    sizes = {key: value for key, value in vars(size.bounds).items() if value != own[key]}
    replicas = {} if size.replicas == protocol.replicas.get(name, 3) else {"replicas": size.replicas}

    def build(chosen: tuple[str, ...]) -> Spec:
        # with one mistake and no size the model would be that in which it is found quickly
        return api.model(name, replicas=size.replicas, faults=chosen, profile=profile, **vars(size.bounds))

    def python(chosen: tuple[str, ...]) -> str:
        more = {} if profile == "core" else {"profile": profile}
        given = {**replicas, **(vars(size.bounds) if len(chosen) == 1 else sizes), **more}
        if chosen:
            given["faults"] = list(chosen)
        return f"viewproof.model({', '.join([repr(name), *(f'{key}={value!r}' for key, value in given.items())])})"

    known = {id: fault.doc for id, fault in protocol.faults.items() if _builds(build, id)}
    return Subject(name, str(size), build, _searching(max_states), known, python, (), faults)


def _builds(build: Callable[[tuple[str, ...]], Spec], fault: str) -> bool:
    """Can this mistake be made in the model?"""
    try:
        build((fault,))
    except SpecError:
        return False
    return True


def _searching(max_states: int) -> Callable[[Spec, Goal, Callable[[int], None]], list[Step] | None]:
    def find(spec: Spec, goal: Goal, tell: Callable[[int], None]) -> list[Step] | None:
        def progress(now: Progress) -> None:
            tell(now.distinct)

        searched = spec if goal.breaks else never(spec, goal.id)
        found = search(searched, invariants=(goal.id,), max_states=max_states, progress=progress)
        return None if found.verdict == "inconclusive" else found.behaviour

    return find
