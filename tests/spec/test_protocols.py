"""Several protocols: their models and faults have names of their own, and a command finds the right one."""

from __future__ import annotations

import pytest

from viewproof.api.model import fault_model, model, model_size
from viewproof.spec.lang import SpecError
from viewproof.spec.protocols import FAULTS, MODELS, PROTOCOLS, protocol_of, protocol_of_model


def test_no_two_protocols_share_a_name() -> None:
    assert len(MODELS) == sum(len(p.models) for p in PROTOCOLS)
    assert len(FAULTS) == sum(len(p.faults) for p in PROTOCOLS)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_each_fault_has_a_model_of_its_protocol(protocol: object) -> None:
    assert protocol.fault_models.keys() == protocol.faults.keys()  # type: ignore[attr-defined]
    assert {f.model for f in protocol.fault_models.values()} <= protocol.models.keys()  # type: ignore[attr-defined]


def test_a_specification_knows_its_protocol_by_its_configuration() -> None:
    for name in ("core", "oxia"):
        assert protocol_of(model(name)) is protocol_of_model(name)


def test_sizes_are_those_of_the_protocol() -> None:
    assert str(model_size("oxia", sizes={"terms": 3})) == "3 replicas, 3 terms, 2 offsets, 0 restarts"
    with pytest.raises(SpecError, match="oxia has no size views"):
        model("oxia", views=2)
    with pytest.raises(SpecError, match="core has no size terms"):
        model("core", terms=2)


def test_a_fault_of_another_protocol_is_refused() -> None:
    with pytest.raises(SpecError, match="no mistake of oxia"):
        fault_model("oxia", ["view.even_quorum"])
    with pytest.raises(SpecError, match="has no profiles"):
        model("oxia", profile="paper")
