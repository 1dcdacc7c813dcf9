"""The protocols that are specified here, and what a command may ask of any of them: models, faults, goals, lemmas.

A protocol is a package of its own (`spec.vsr`, `spec.oxia`); none knows of another, and no engine of any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.spec import oxia, vsr
from viewproof.spec.lang import Predicate, Spec, SpecError
from viewproof.spec.oxia import fault_models as oxia_faults
from viewproof.spec.oxia import models as oxia_models
from viewproof.spec.oxia import progress as oxia_progress
from viewproof.spec.oxia.shapes import SHAPES as OXIA_SHAPES
from viewproof.spec.sizes import Portfolio, Size
from viewproof.spec.vsr import fault_models as vsr_faults
from viewproof.spec.vsr import models as vsr_models
from viewproof.spec.vsr.core import progress as vsr_progress
from viewproof.spec.vsr.lemmas import following_of_any_size, lemmas_of, more_of_any_size
from viewproof.spec.vsr.shapes import SHAPES


@dataclass(frozen=True)
class Protocol:
    """One protocol: `models` are its bounded models by name, with their default sizes (values of `bounds`, a record of
    numbers, of which `core_sizes` are always told), `replicas` says how many they have where it is not 3, `options`
    what else their configuration (a `config`) has.

    `faults` are known mistakes by id (`doc`, and the actions that are `actions` and `added`), `fault_models` where each
    is found quickly (`replicas`, `bounds`, `model`, the invariant or goal that it `breaks`, `rounds` of bounded search,
    `stops_progress`). `shapes` are what a check of a model without a size searches, if it is more than its own size.
    `build` makes a specification; `goals` and `lemmas` are those of one, and
    `more_of_any_size` the lemmas that only a proof without sizes needs, `following_of_any_size` what follows from them.
    """

    name: str
    config: type
    bounds: type
    core_sizes: tuple[str, ...]
    models: Mapping[str, Any]
    replicas: Mapping[str, int]
    options: Mapping[str, Mapping[str, Any]]
    faults: Mapping[str, Any]
    fault_models: Mapping[str, Any]
    shapes: Mapping[str, Portfolio]
    build: Callable[..., Spec]
    goals: Callable[[Spec], tuple[Any, ...]]
    lemmas: Callable[[Spec], tuple[Predicate, ...]]
    more_of_any_size: Callable[[Spec], tuple[Predicate, ...]] = lambda spec: ()
    following_of_any_size: Callable[[Spec], tuple[Predicate, ...]] = lambda spec: ()


def _build_oxia(name: str, *, profile: str, **arguments: Any) -> Spec:
    if profile != "core":
        raise SpecError(f"{name} has no profiles; those of vsr check --profile are of models of the core")
    return oxia_models.model(name, **arguments)


PROTOCOLS = (
    Protocol(
        name="vsr",
        config=vsr.Config,
        bounds=vsr.Bounds,
        core_sizes=("replicas", "views", "ops", "clients", "requests", "restarts"),
        models=vsr.MODELS,
        replicas={name: model.replicas for name, model in vsr_models.NAMED.items()},
        options={name: model.options for name, model in vsr_models.NAMED.items()},
        faults=vsr.FAULTS,
        fault_models=vsr_faults.FAULT_MODELS,
        shapes=SHAPES,
        build=vsr.model,
        goals=vsr_progress.goals,
        lemmas=lambda spec: lemmas_of(spec.cfg, crashes=spec.instance.bounds.get("Restart") != 0),
        more_of_any_size=lambda spec: more_of_any_size(spec.cfg),
        following_of_any_size=lambda spec: following_of_any_size(spec.cfg),
    ),
    Protocol(
        name="oxia",
        config=oxia.Config,
        bounds=oxia.Bounds,
        core_sizes=("replicas", "terms", "offsets", "restarts"),
        models=oxia.MODELS,
        replicas={},
        options={},
        faults=oxia.FAULTS,
        fault_models=oxia_faults.FAULT_MODELS,
        shapes=OXIA_SHAPES,
        build=_build_oxia,
        goals=oxia_progress.goals,
        lemmas=lambda spec: (),
    ),
)
MODELS: dict[str, Protocol] = {name: p for p in PROTOCOLS for name in p.models}
"""Name of a bounded model → its protocol."""
FAULTS: dict[str, Any] = {id: fault for p in PROTOCOLS for id, fault in p.faults.items()}
"""All known mistakes by id."""


def protocol_of_model(name: str) -> Protocol:
    """The protocol of a named bounded model. Raises `SpecError` for an unknown one."""
    if name not in MODELS:
        raise SpecError(f"unknown model {name}; there are: {', '.join(MODELS)}")
    return MODELS[name]


def protocol_of(spec: Spec) -> Protocol | None:
    """The protocol of a specification, by its configuration; None for a specification of one's own."""
    return next((p for p in PROTOCOLS if isinstance(spec.cfg, p.config)), None)


def portfolio_of(name: str) -> Portfolio:
    """What a check of a named model without a size searches."""
    protocol = protocol_of_model(name)
    own = Size(protocol.replicas.get(name, 3), protocol.models[name]).to_the_end()
    return protocol.shapes.get(name) or Portfolio(name, (own,))


def shapes_of(name: str) -> tuple[Size, ...]:
    """The sizes of a named model that a check of it searches, the cheapest first."""
    return portfolio_of(name).sizes
