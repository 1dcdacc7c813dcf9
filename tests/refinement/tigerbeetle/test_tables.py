"""The tables of log lines, their events and the specification fit together."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from viewproof.refinement.checker.compile import compile_program
from viewproof.refinement.events import System
from viewproof.refinement.events.lines import Step
from viewproof.refinement.tigerbeetle.headers import PLACE as PLACE_IN_HEADER
from viewproof.refinement.tigerbeetle.headers import Headers, Names
from viewproof.refinement.tigerbeetle.profile import JULY, JUNE, SYSTEM_2022, SYSTEM_2026, Cluster
from viewproof.refinement.tigerbeetle.records import Family
from viewproof.refinement.tigerbeetle.table import Pattern
from viewproof.spec.engines.interp import Blocked
from viewproof.spec.engines.interp import step as interp_step
from viewproof.spec.engines.replay import TAKEN, compile_spec
from viewproof.spec.vsr.tigerbeetle.june_2022 import spec_2022

QUORUMS = {1: (1, 1), 2: (2, 2), 3: (2, 2), 4: (3, 2), 5: (3, 3), 6: (4, 3)}
SYSTEMS = {"2022": SYSTEM_2022, "2026": SYSTEM_2026}


def problems(patterns: Iterable[Pattern]) -> list[str]:
    """What is wrong with a table: an event whose patterns name different fields, or a pattern given twice."""
    found: list[str] = []
    fields, texts = dict[str, set[str]](), set[tuple[str, str]]()
    for pattern in patterns:
        if (pattern.subsystem, pattern.text) in texts:
            found.append(f"{pattern.text!r} twice")
        texts.add((pattern.subsystem, pattern.text))
        names = {name for name, _ in pattern.fields}
        if pattern.event and fields.setdefault(pattern.event, names) != names:
            found.append(f"event {pattern.event}: fields {sorted(names)} in {pattern.text!r}, others before")
    return found


@pytest.mark.parametrize("family", [JUNE, JULY], ids=lambda family: family.name)
def test_table_has_no_pattern_twice(family: Family) -> None:
    assert problems(family.table.patterns) == []


@pytest.mark.parametrize("family", [JUNE, JULY], ids=lambda family: family.name)
def test_every_line_that_is_judged_is_an_event_and_every_event_has_a_line(family: Family) -> None:
    events = {declared.name for declared in SYSTEMS[family.name].events}
    assert {pattern.event for pattern in family.table.patterns if pattern.event} == events - {"panic"}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
@pytest.mark.parametrize("replicas", QUORUMS)
def test_every_size_of_cluster_compiles(system: System, replicas: int) -> None:
    q_v, q_r = QUORUMS[replicas]
    compiled = compile_program(system, Cluster(replicas, q_r, q_v, nodes=replicas + 2), ())
    assert set(compiled.handlers) == {declared.name for declared in system.events}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_every_action_of_the_specification_is_used(system: System) -> None:
    spec = system.profile.spec(Cluster(1, 1, 1, nodes=2))
    lines = [line for rule in system.rules_for(spec).values() for line in rule.lines]
    assert {line.action for line in lines if isinstance(line, Step)} == {action.name for action in spec.actions}


def shown(family: Family, text: str, *columns: str) -> tuple[object, ...]:
    """Columns of a header."""
    found = Headers(family.form, Names()).of(text)
    return tuple(str(found[PLACE_IN_HEADER[column]]) for column in columns)


def test_headers_of_both_families() -> None:
    old = "Header{ .checksum = 12, .view = 3, .op = 4, .commit = 2, .replica = 1, .command = Command.prepare }"
    columns = ("m_checksum", "m_view", "m_op", "m_commit", "m_from", "m_command")
    assert shown(JUNE, old, *columns) == ("12", "3", "4", "2", "1", "prepare")
    new = "View{ .checksum=ab, .view=3, .command=vsr.Command.view, .replica=1, .op=4, .commit_max=2 }"
    columns = ("m_checksum", "m_command", "m_commit_max", "m_commit")
    assert shown(JULY, new, *columns) == ("ab", "view", "2", "None")


def test_a_reboot_of_the_compiled_steps_and_the_interpreter_agree() -> None:
    spec = spec_2022(Cluster(3, 2, 2, nodes=3))
    replay = compile_spec(spec)
    store = replay.new_store()
    for action, args in (
        ("crash", {"r": 1}),
        ("crash", {"r": 1}),
        ("restart", {"r": 1}),
        ("journal_recovered", {"r": 1}),
    ):
        before = replay.layout.to_state(store)
        result = interp_step(spec, before, spec.action(action), args)
        taken = replay.functions[action](store, *args.values())
        assert (taken != TAKEN) == isinstance(result, Blocked)
        if isinstance(result, Blocked):
            assert taken == result.conjunct
