"""A profile's name means one specification, whichever command takes it; what is something else has another name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.refinement.traces import simulated
from viewproof.api.audit import PROFILES as AUDITED
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import CLIENT_PROFILES
from viewproof.refinement.native.configuration import configuration
from viewproof.refinement.schema import INDEX
from viewproof.spec.vsr.config import ClientTable
from viewproof.spec.vsr.profiles import OF_LOGS, PROFILES, profile

FEW_SLOTS = {"evictions": "sessions"}
"""How clients of simulated runs are remembered, where it is a profile of the specification with fewer slots."""


@pytest.mark.parametrize("name", CLIENT_PROFILES)
def test_clients_of_a_run_are_remembered_as_the_profile_of_that_name_says(tmp_path: Path, name: str) -> None:
    for seed in range(3):
        first = simulated(tmp_path / str(seed), seed, requests=5, client_profile=name)[0]
        shown = configuration({column: first[at] for column, at in INDEX.items()}).client_table
        meant = profile(FEW_SLOTS.get(name, name)).client_table
        assert replace(shown, slots=meant.slots, in_flight=meant.in_flight) == meant
        if name in FEW_SLOTS:
            assert 0 < shown.slots < meant.slots
        assert shown == ClientTable() or shown.in_flight == 0, "traces hold any number of requests on the way"


def test_what_a_run_is_hard_on_has_no_name_of_a_specification() -> None:
    assert not NAMED_PROFILES.keys() & (PROFILES.keys() | OF_LOGS.keys())
    assert set(CLIENT_PROFILES) - PROFILES.keys() == FEW_SLOTS.keys()


def test_an_audit_takes_the_configuration_that_a_log_shows_or_the_specification_of_anothers_logs() -> None:
    assert ("core", *OF_LOGS) == AUDITED
