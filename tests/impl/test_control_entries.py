"""Kinds of entries write, read and apply themselves; features and the database checksum are canonical."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewproof.impl.faults import stand_in
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.interface.messages import Prepare, make_header, prepare_is_valid, register_result
from viewproof.impl.machine.state_machine import Put, StateError, StateMachine, encode_operation
from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.features import DATABASE_CHECKSUM, FEATURE_MAX, SUPPORTS_ALL, FeatureState, parse_features
from viewproof.impl.replica.proposals import (
    EnableFeature,
    Proposal,
    Register,
    UnknownEntryError,
    UserRequest,
    apply_entry,
    read_proposal,
)

NUMBERS = st.integers(1, 2**63 - 1)
PROPOSALS = st.one_of(
    st.builds(UserRequest, NUMBERS, st.integers(0, 2**63 - 1), NUMBERS, st.binary(max_size=5)),
    st.builds(Register, NUMBERS, NUMBERS),
    st.builds(EnableFeature, st.integers(1, FEATURE_MAX)),
)


@dataclass
class Target:
    """What entries change."""

    config: ReplicaConfig = field(default_factory=lambda: ReplicaConfig(supports=SUPPORTS_ALL))
    state_machine: StateMachine = field(default_factory=StateMachine)
    enabled: FeatureState = field(default_factory=FeatureState)


def entry(proposal: Proposal, op: int = 1, parent: str = "") -> Prepare:
    header, body = proposal.write(parent=parent, view=0, op=op, commit=0)
    return Prepare(header, body)


def put(op: int, value: bytes = b"v", parent: str = "") -> Prepare:
    return entry(UserRequest(1, 0, op, encode_operation(Put(b"k%d" % op, value))), op, parent)


@given(PROPOSALS)
def test_every_kind_reads_what_it_wrote_and_nobody_elses(proposal: Proposal) -> None:
    prepare = entry(proposal)
    assert prepare_is_valid(prepare)
    assert read_proposal(prepare) == proposal
    readers = [kind for kind in (UserRequest, Register, EnableFeature) if kind.read(prepare) is not None]
    assert readers == [type(proposal)]


@pytest.mark.parametrize(
    "numbers",
    [
        {"client": 0, "request": 0},
        {"client": 0, "request": 1},
        {"client": 1, "request": 0},
        {"client": 1, "request": 1, "incarnation": 1},
        {"client": 1, "request": 1, "feature": 1},
        {"client": 0, "request": 0, "feature": 1, "session": 3},
    ],
)
def test_an_entry_of_no_known_kind_is_an_error_that_names_its_op(numbers: dict[str, int]) -> None:
    header = make_header(parent="", view=0, op=7, commit=0, body=b"", **numbers)
    target = Target()
    with pytest.raises(UnknownEntryError, match=r"op 7 is an entry of an unknown kind \(client .*knows request"):
        apply_entry(target, Prepare(header, b""))
    assert (target.state_machine.digest, target.enabled.mask) == (0, 0)


def test_a_feature_that_is_not_supported_is_an_error_that_names_its_op_and_changes_nothing() -> None:
    target = Target(ReplicaConfig(supports=0))
    with pytest.raises(UnknownEntryError, match=r"op 9 enables feature 1 \(database_checksum\).*does not support"):
        apply_entry(target, entry(EnableFeature(1), 9))
    with pytest.raises(UnknownEntryError, match=r"op 9 enables feature 63 \(unknown to this version\)"):
        apply_entry(Target(), entry(EnableFeature(63), 9))
    assert target.enabled.mask == 0


def test_each_kind_applies_itself() -> None:
    target = Target()
    assert apply_entry(target, entry(Register(5, 3))) == register_result(3)
    assert apply_entry(target, put(2)) != b""
    assert target.state_machine.store == {b"k2": b"v"}
    assert apply_entry(target, entry(EnableFeature(1), 3)) == b""
    assert target.enabled.ops == {1: 3}


def test_enabling_again_changes_nothing_but_the_chain_goes_on() -> None:
    target = Target()
    apply_entry(target, entry(EnableFeature(DATABASE_CHECKSUM), 4))
    first = target.enabled.checksum
    apply_entry(target, entry(EnableFeature(DATABASE_CHECKSUM), 5))
    assert target.enabled.ops == {DATABASE_CHECKSUM: 4}
    assert target.enabled.checksum not in ("", first)


def test_the_checksum_starts_at_its_op_and_remembers_every_entry_and_state_since() -> None:
    checksums = set()
    for values in ((b"a", b"b"), (b"b", b"b"), (b"a", b"a")):
        target = Target()
        apply_entry(target, put(1))
        assert target.enabled.checksum == ""
        assert target.enabled.digest == 0
        apply_entry(target, entry(EnableFeature(DATABASE_CHECKSUM), 2))
        for op, value in enumerate(values, start=3):
            apply_entry(target, put(op, value))
        checksums.add(target.enabled.checksum)
    assert len(checksums) == 3


def test_a_state_that_differed_once_has_another_checksum_for_ever() -> None:
    one, other = Target(), Target()
    for target in (one, other):
        apply_entry(target, entry(EnableFeature(DATABASE_CHECKSUM), 1))
    other.state_machine.apply(encode_operation(Put(b"x", b"stray")))
    for target in (one, other):
        apply_entry(target, put(2))
    other.state_machine = StateMachine.from_bytes(one.state_machine.to_bytes())
    for target in (one, other):
        apply_entry(target, put(3))
    assert one.state_machine.to_bytes() == other.state_machine.to_bytes()
    assert one.enabled.checksum != other.enabled.checksum
    assert one.enabled.digest != other.enabled.digest


@given(st.dictionaries(st.integers(1, FEATURE_MAX), st.integers(1, 2**40)))
def test_enabled_features_survive_their_bytes_and_equal_ones_have_equal_bytes(ops: dict[int, int]) -> None:
    state, backwards = FeatureState(), FeatureState()
    for feature, op in ops.items():
        state.enable(feature, op)
    for feature, op in reversed(ops.items()):
        backwards.enable(feature, op)
    state.on_executed(put(3).header, 5)
    backwards.on_executed(put(3).header, 5)
    assert state.to_bytes() == backwards.to_bytes()
    restored = FeatureState.from_bytes(state.to_bytes())
    for features in (state, restored):
        features.on_executed(put(4).header, 6)
    assert restored.to_bytes() == state.to_bytes()
    assert (restored.mask, restored.digest, restored.checksum) == (state.mask, state.digest, state.checksum)
    assert (state.digest == 0) == (not ops)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xc1", "do not decode"),
        (b"\x92\x92\x92\x02\x01\x92\x01\x01\xa0", "out of order"),
        (b"\x92\x91\x92\x40\x01\xa0", r"out of range 1\.\.63"),
        (b"\x92\x91\x92\x01\x00\xa0", "ops below 1"),
        (b"\x92\x90\xa3abc", "database checksum is 'abc'"),
        (b"\x92\x91\x92\x01\x05\xa0", "is enabled, and there is no checksum"),
        (b"\x92\x90\xd9\x20" + b"a" * 32, r"a database checksum, and feature 1 \(database_checksum\) is not enabled"),
        (b"\x92\x91\x92\x02\x05\xd9\x20" + b"a" * 32, "is not enabled"),
    ],
)
def test_bytes_that_are_no_enabled_features_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(StateError, match=message):
        FeatureState.from_bytes(data)


def test_the_fault_of_a_map_ordered_digest_makes_processes_differ() -> None:
    checksums = set()
    for node in range(3):
        target = Target(enabled=stand_in("features", FeatureState, {"control.map_order_digest"}, node)())
        apply_entry(target, entry(EnableFeature(DATABASE_CHECKSUM), 1))
        checksums.add(target.enabled.checksum)
    assert len(checksums) == 3


def test_features_are_named_by_name_or_number() -> None:
    assert parse_features(["database_checksum"]) == parse_features(["1"]) == 1
    assert parse_features([]) == 0
    with pytest.raises(
        ConfigurationError, match=r"unknown feature 'x'; this version implements database_checksum \(1\)"
    ):
        parse_features(["x"])
