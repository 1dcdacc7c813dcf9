"""Which bounded model a command is about: the options, and the specification that they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from viewproof.api import model as api
from viewproof.api.check import never
from viewproof.refinement.cli.options import SIZE_MAX, FaultName
from viewproof.refinement.cli.own_model import SIZES as OWN_SIZES
from viewproof.refinement.cli.own_model import is_own, keep_sizes, own_model
from viewproof.spec.lang import Predicate, Spec, SpecError
from viewproof.spec.protocols import FAULTS, MODELS, PROTOCOLS
from viewproof.spec.vsr.parts import PARTS
from viewproof.spec.vsr.profiles import PROFILES, require_profile

Command = TypeVar("Command", bound=Callable[..., Any])

_count = click.IntRange(1, SIZE_MAX)
SIZE_OPTIONS = (
    click.option("--replicas", type=_count, help="Replicas.  [default: the model's, mostly 3]"),
    click.option("--views", type=_count, help="Views 0 .. VIEWS-1."),
    click.option("--ops", type=_count, help="Ops 1 .. OPS."),
    click.option("--clients", type=_count, help="Clients."),
    click.option("--requests", type=_count, help="Requests of each client, or of each of its sessions."),
    click.option("--restarts", type=click.IntRange(0, SIZE_MAX), help="Crashes and restarts in all."),
    click.option("--incarnations", type=_count, help="How often a client registers anew (sessions)."),
    click.option("--slots", type=_count, help="Slots of the client table, where it has a fixed number."),
    click.option(
        "--rots", type=click.IntRange(0, SIZE_MAX), help="Slots of journals, or segments, that go bad, in all."
    ),
    click.option("--partitions", type=_count, help="Partitions, where the model has them."),
    click.option("--readers", type=_count, help="Readers of all partitions, one of each by default."),
    click.option("--messages", type=_count, help="Most messages in an append."),
    click.option("--quorum-replication", type=_count, help="Acknowledgements that commit.  [default: a majority]"),
    click.option("--quorum-view-change", type=_count, help="Replicas that change the view.  [default: a majority]"),
    click.option("--terms", type=_count, help="Terms 1 .. TERMS (Oxia)."),
    click.option("--offsets", type=_count, help="Offsets 1 .. OFFSETS of a log (Oxia)."),
    click.option("--features", type=_count, help="Features that control entries enable (Oxia)."),
    click.option("--turns", type=_count, help="Of the first TURNS servers one is reached in a term, by turns (Oxia)."),
)
size_option = click.option(
    "--size", multiple=True, metavar="NAME=N", expose_value=False, callback=keep_sizes,
    help="Of a model of one's own: members of a sort, or a parameter.",
)  # fmt: skip


class ModelName(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A model's name, or a file with a model of one's own, `./my_model.py[:NAME]`."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if there is such a model."""
        if value not in MODELS and not is_own(value):
            if value in {part.name for part in PARTS}:
                self.fail(f"{value!r} is an optional part that has no model of its own (`models=`).", param, ctx)
            known = ", ".join(repr(name) for name in sorted(MODELS))
            self.fail(f"{value!r} is not one of {known}, nor a file of one's own, ./my_model.py[:NAME].", param, ctx)
        return str(value)


class ProfileName(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """A profile of the protocol; a name that is not one is refused with the reason."""

    def __init__(self) -> None:
        super().__init__(list(PROFILES))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if there is such a profile."""
        try:
            require_profile(str(value))
        except SpecError as error:
            self.fail(str(error), param, ctx)
        return str(value)


SIZES = tuple(dict.fromkeys(size for p in PROTOCOLS for size in vars(p.bounds())))
OPTIONS = (
    click.argument("name", metavar="MODEL", type=ModelName(), required=False),
    *SIZE_OPTIONS,
    size_option,
    click.option(
        "--fault",
        "faults",
        multiple=True,
        type=FaultName(FAULTS),
        metavar="NAME",
        help="Switch a mistake on.",
    ),
    click.option("--invariant", "invariants", multiple=True, help="Only this invariant (I1 …); may be repeated."),
)


def model_options(command: Command) -> Command:
    """Add the argument MODEL and the options for its sizes, faults and invariants, as `vsr check` has them.

    Without MODEL the command gets that in which its one --fault shows.
    """

    @wraps(command)
    def resolved(*args: Any, name: str | None, faults: tuple[str, ...], **options: Any) -> Any:
        return command(*args, name=named(name, faults), faults=faults, **options)

    for option in reversed(OPTIONS):
        resolved = option(resolved)
    return resolved  # type: ignore[return-value]


def named(name: str | None, faults: tuple[str, ...]) -> str:
    """The model that is meant; without a name, that in which the one fault shows. Raises `UsageError`."""
    if name is not None:
        if is_own(name) and faults:
            raise click.UsageError("--fault is about the models that are here, not about one of one's own")
        return name
    if len(faults) != 1:
        raise click.UsageError("name a MODEL, or one --fault and it is the model in which that shows")
    chosen = next((p.fault_models[faults[0]] for p in PROTOCOLS if faults[0] in p.fault_models), None)
    if chosen is None:
        raise click.UsageError(f"name a MODEL: {faults[0]} shows in no small one")
    return str(chosen.model)


def fault_model(name: str, faults: Sequence[str]) -> Any:
    """Where one fault is found quickly; one that shows only in a model with other options is refused."""
    if is_own(name):
        return None
    try:
        return api.fault_model(name, faults)
    except SpecError as error:
        raise click.UsageError(str(error)) from None


def refuse_own_sizes(name: str) -> None:
    """Refuse `--size` of a model that is here."""
    if click.get_current_context().meta.get(OWN_SIZES):
        raise click.UsageError(f"--size is for a model of one's own; {name} has --views, --ops …")


def bounded_model(
    name: str, replicas: int | None, faults: tuple[str, ...], sizes: Mapping[str, int | None], profile: str = "core"
) -> tuple[Spec, str]:
    """The specification of a bounded model, and its sizes in words.

    Sizes that are not given are the model's own, or, with one fault, those in which it is found quickly.
    """
    if is_own(name):
        if others := [key for key, value in {"replicas": replicas, **sizes}.items() if value is not None]:
            raise click.UsageError(f"--{others[0].replace('_', '-')} is no size of {name}; say --size NAME=N")
        if profile != "core":
            raise click.UsageError("--profile is about the models that are here, not about one of one's own")
        return own_model(name)
    refuse_own_sizes(name)
    fault_model(name, faults)
    spec = api.model(name, replicas=replicas, faults=faults, profile=profile, **sizes)
    size = api.model_size(name, replicas, faults, sizes)
    return spec, str(size) + (f"; mistake: {', '.join(faults)}" if faults else "")


def witness_search(spec: Spec, id: str) -> tuple[Spec, Predicate]:
    """The witness of that id, and a specification whose only invariant is that it is never met."""
    try:
        return never(spec, id), next(w for w in spec.witnesses if w.id == id)
    except SpecError as error:
        raise click.UsageError(str(error)) from None
