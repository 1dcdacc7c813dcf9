"""Named bounded models of the protocols: which specification a name, sizes and faults stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.protocols import Protocol, protocol_of_model


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Replicas of a model and the bounds of its other indices."""

    replicas: int
    bounds: Any
    protocol: Protocol

    def __str__(self) -> str:
        """In words; those that not every model of the protocol has only where they are given."""
        sizes = {"replicas": self.replicas, **vars(self.bounds)}
        told = {name: n for name, n in sizes.items() if n or name in self.protocol.core_sizes}
        quorums = [f"{name.replace('_', ' ')} {told.pop(name)}" for name in list(told) if name.startswith("quorum")]
        return ", ".join([*(f"{n} {name[:-1] if n == 1 else name}" for name, n in told.items()), *quorums])


def fault_model(name: str, faults: Sequence[str]) -> Any:
    """Where one fault is found quickly (`Protocol.fault_models`); None for no fault or several.

    Raises `SpecError` for one that shows only in a model with other options.
    """
    protocol = protocol_of_model(name)
    for id in faults:
        if id not in protocol.faults:
            raise SpecError(f"{id} is no mistake of {name}; there are: {', '.join(sorted(protocol.faults))}")
    chosen = protocol.fault_models.get(faults[0]) if len(faults) == 1 else None
    if chosen is not None and protocol.options.get(chosen.model) != protocol.options.get(name):
        raise SpecError(f"{faults[0]} shows in the model {chosen.model}, not in {name}")
    return chosen


def model_size(
    name: str, replicas: int | None = None, faults: Sequence[str] = (), sizes: Mapping[str, int | None] | None = None
) -> ModelSize:
    """The sizes of a named model: those given, else those in which the one fault is found quickly, else its own.

    Raises `SpecError` for an unknown model or size, and as `fault_model`.
    """
    protocol = protocol_of_model(name)
    given = {key: value for key, value in (sizes or {}).items() if value is not None}
    known = vars(protocol.models[name])
    if unknown := sorted(given.keys() - known.keys()):
        raise SpecError(f"{name} has no size {', '.join(unknown)}; there are: {', '.join(known)}")
    chosen = fault_model(name, faults)
    bounds = replace(chosen.bounds if chosen else protocol.models[name], **given)
    return ModelSize(replicas or (chosen.replicas if chosen else protocol.replicas.get(name, 3)), bounds, protocol)


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
    build = size.protocol.build
    return build(name, replicas=size.replicas, faults=named, bounds=size.bounds, profile=profile, **given)


def named_or_given(spec: Spec | str) -> Spec:
    """A specification, or the model of that name at its own size. Raises `SpecError` for an unknown name."""
    return model(spec) if isinstance(spec, str) else spec
