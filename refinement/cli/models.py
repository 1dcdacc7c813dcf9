"""Which bounded model a command is about: the options, and the specification that they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from viewproof.api import model as api
from viewproof.api.check import never
from viewproof.spec.lang import Predicate, Spec, SpecError
from viewproof.spec.protocols import FAULTS, MODELS, PROTOCOLS

Command = TypeVar("Command", bound=Callable[..., Any])

_count = click.IntRange(1)
SIZE_OPTIONS = (
    click.option("--replicas", type=_count, help="Replicas.  [default: the model's, mostly 3]"),
    click.option("--views", type=_count, help="Views 0 .. VIEWS-1."),
    click.option("--ops", type=_count, help="Ops 1 .. OPS."),
    click.option("--clients", type=_count, help="Clients."),
    click.option("--requests", type=_count, help="Requests of each client, or of each of its sessions."),
    click.option("--restarts", type=click.IntRange(0), help="Crashes and restarts in all."),
    click.option("--incarnations", type=_count, help="How often a client registers anew (sessions)."),
    click.option("--slots", type=_count, help="Slots of the client table, where it has a fixed number."),
    click.option("--rots", type=click.IntRange(0), help="Slots of journals, or segments, that go bad, in all."),
    click.option("--partitions", type=_count, help="Partitions, where the model has them."),
    click.option("--readers", type=_count, help="Readers of all partitions, one of each by default."),
    click.option("--messages", type=_count, help="Most messages in an append."),
    click.option("--quorum-replication", type=_count, help="Acknowledgements that commit.  [default: a majority]"),
    click.option("--quorum-view-change", type=_count, help="Replicas that change the view.  [default: a majority]"),
    click.option("--terms", type=_count, help="Terms 1 .. TERMS (Oxia)."),
    click.option("--offsets", type=_count, help="Offsets 1 .. OFFSETS of a log (Oxia)."),
    click.option("--features", type=_count, help="Features that control entries enable (Oxia)."),
)
SIZES = tuple(dict.fromkeys(size for p in PROTOCOLS for size in vars(p.bounds())))
OPTIONS = (
    click.argument("name", metavar="MODEL", type=click.Choice(sorted(MODELS))),
    *SIZE_OPTIONS,
    click.option("--fault", "faults", multiple=True, type=click.Choice(sorted(FAULTS)), help="Switch a mistake on."),
    click.option("--invariant", "invariants", multiple=True, help="Only this invariant (I1 …); may be repeated."),
)


def model_options(command: Command) -> Command:
    """Add the argument MODEL and the options for its sizes, faults and invariants, as `vsr check` has them."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def fault_model(name: str, faults: Sequence[str]) -> Any:
    """Where one fault is found quickly; one that shows only in a model with other options is refused."""
    try:
        return api.fault_model(name, faults)
    except SpecError as error:
        raise click.UsageError(str(error)) from None


def bounded_model(
    name: str, replicas: int | None, faults: tuple[str, ...], sizes: Mapping[str, int | None], profile: str = "core"
) -> tuple[Spec, str]:
    """The specification of a bounded model, and its sizes in words.

    Sizes that are not given are the model's own, or, with one fault, those in which it is found quickly.
    """
    fault_model(name, faults)
    spec = api.model(name, replicas=replicas, faults=faults, profile=profile, **sizes)
    size = api.model_size(name, replicas, faults, sizes)
    return spec, str(size) + (f"; faults: {', '.join(faults)}" if faults else "")


def witness_search(spec: Spec, id: str) -> tuple[Spec, Predicate]:
    """The witness of that id, and a specification whose only invariant is that it is never met."""
    try:
        return never(spec, id), next(w for w in spec.witnesses if w.id == id)
    except SpecError as error:
        raise click.UsageError(str(error)) from None
