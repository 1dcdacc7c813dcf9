"""Which bounded model a command is about: the options, and the specification that they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click

from viewproof.spec.lang import Spec
from viewproof.spec.vsr import FAULTS, MODELS, Bounds, model
from viewproof.spec.vsr.fault_models import FAULT_MODELS, FaultModel
from viewproof.spec.vsr.models import OPTIONS as MODEL_OPTIONS
from viewproof.spec.vsr.models import REPLICAS

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
)
SIZES = tuple(vars(Bounds()))
CORE_SIZES = ("replicas", "views", "ops", "clients", "requests", "restarts")
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


def fault_model(name: str, faults: Sequence[str]) -> FaultModel | None:
    """Where one fault is found quickly; one that shows only in a model with other options is refused."""
    chosen = FAULT_MODELS.get(faults[0]) if len(faults) == 1 else None
    if chosen is not None and MODEL_OPTIONS.get(chosen.model) != MODEL_OPTIONS.get(name):
        raise click.UsageError(f"{faults[0]} shows in the model {chosen.model}, not in {name}")
    return chosen


def bounded_model(
    name: str, replicas: int | None, faults: tuple[str, ...], sizes: dict[str, int | None], profile: str = "core"
) -> tuple[Spec, str]:
    """The specification of a bounded model, and its sizes in words.

    Sizes that are not given are the model's own, or, with one fault, those in which it is found quickly.
    """
    chosen = fault_model(name, faults)
    given = {key: value for key, value in sizes.items() if value is not None}
    limits: Bounds = replace(chosen.bounds if chosen else MODELS[name], **given)
    count = replicas or (chosen.replicas if chosen else REPLICAS.get(name, 3))
    spec = model(name, replicas=count, faults=faults, bounds=limits, profile=profile)
    return spec, sizes_text(count, limits) + (f"; faults: {', '.join(faults)}" if faults else "")


def sizes_text(replicas: int, bounds: Bounds) -> str:
    """The sizes of a model in words; those that the core does not have only where they are given."""
    sizes = {"replicas": replicas, **vars(bounds)}
    return ", ".join(f"{n} {name}" for name, n in sizes.items() if n or name in CORE_SIZES)
