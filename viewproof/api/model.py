"""Named bounded models of the protocol: which specification a name, sizes and faults stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.vsr import MODELS, Bounds
from viewproof.spec.vsr import model as build_model
from viewproof.spec.vsr.fault_models import FAULT_MODELS, FaultModel
from viewproof.spec.vsr.models import OPTIONS, REPLICAS

CORE_SIZES = ("replicas", "views", "ops", "clients", "requests", "restarts")


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Replicas of a model and the bounds of its other indices."""

    replicas: int
    bounds: Bounds

    def __str__(self) -> str:
        """In words; those that the core does not have only where they are given."""
        sizes = {"replicas": self.replicas, **vars(self.bounds)}
        return ", ".join(f"{n} {name}" for name, n in sizes.items() if n or name in CORE_SIZES)


def fault_model(name: str, faults: Sequence[str]) -> FaultModel | None:
    """Where one fault is found quickly; None for no fault or several.

    Raises `SpecError` for one that shows only in a model with other options.
    """
    chosen = FAULT_MODELS.get(faults[0]) if len(faults) == 1 else None
    if chosen is not None and OPTIONS.get(chosen.model) != OPTIONS.get(name):
        raise SpecError(f"{faults[0]} shows in the model {chosen.model}, not in {name}")
    return chosen


def model_size(
    name: str, replicas: int | None = None, faults: Sequence[str] = (), sizes: Mapping[str, int | None] | None = None
) -> ModelSize:
    """The sizes of a named model: those given, else those in which the one fault is found quickly, else its own.

    Raises `SpecError` for an unknown model or size, and as `fault_model`.
    """
    if name not in MODELS:
        raise SpecError(f"unknown model {name}; there are: {', '.join(MODELS)}")
    given = {key: value for key, value in (sizes or {}).items() if value is not None}
    if unknown := sorted(given.keys() - vars(Bounds()).keys()):
        raise SpecError(f"a model has no size {', '.join(unknown)}; there are: {', '.join(vars(Bounds()))}")
    chosen = fault_model(name, faults)
    bounds: Bounds = replace(chosen.bounds if chosen else MODELS[name], **given)
    return ModelSize(replicas or (chosen.replicas if chosen else REPLICAS.get(name, 3)), bounds)


def model(
    name: str = "core",
    *,
    replicas: int | None = None,
    faults: Iterable[str] = (),
    profile: str = "core",
    **sizes: int | None,
) -> Spec:
    """The specification of a named bounded model, as `vsr check NAME` has it.

    `sizes` are numbers: views, ops, clients, requests (of each client), restarts, and those that `vsr check --help`
    lists. What is not given is the model's own, or, with one fault, a size in which that fault is found in seconds.
    `faults` are names of docs/faults.md, `profile` one of `vsr check --profile`. Raises `SpecError` for an unknown
    name, and for a size of something that the model does not have.
    """
    named = tuple(faults)
    size = model_size(name, replicas, named, sizes)
    given = {key: value for key, value in sizes.items() if value is not None}
    return build_model(name, replicas=size.replicas, faults=named, bounds=size.bounds, profile=profile, **given)


def named_or_given(spec: Spec | str) -> Spec:
    """A specification, or the model of that name at its own size. Raises `SpecError` for an unknown name."""
    return model(spec) if isinstance(spec, str) else spec
