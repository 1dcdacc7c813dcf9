"""The tables of log lines, their mapping and the specification fit together."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from viewproof.refinement.tigerbeetle.bookkeeping import HELPERS
from viewproof.refinement.tigerbeetle.compile import MappingError, compile_table
from viewproof.refinement.tigerbeetle.families import FAMILIES, Family, program
from viewproof.refinement.tigerbeetle.headers import Headers
from viewproof.refinement.tigerbeetle.parse import Parser
from viewproof.refinement.tigerbeetle.rules import Do, Eq, Rule
from viewproof.refinement.tigerbeetle.table import Pattern, Table, check, notes, step
from viewproof.spec.engines.interp import Blocked
from viewproof.spec.engines.interp import step as interp_step
from viewproof.spec.engines.replay import TAKEN, compile_spec
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.tigerbeetle.june_2022 import spec_2022

QUORUMS = {1: (1, 1), 2: (2, 2), 3: (2, 2), 4: (3, 2), 5: (3, 3), 6: (4, 3)}


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


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_table_has_no_pattern_twice(family: Family) -> None:
    assert problems(family.table.patterns) == []


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("replicas", QUORUMS)
def test_every_size_of_cluster_compiles(family: Family, replicas: int) -> None:
    q_v, q_r = QUORUMS[replicas]
    compiled = program(family.profile, replicas, q_v, q_r, replicas + 2, ())
    stepping = {p.event for p in family.table.patterns if p.event}
    assert sum(h is not None for h in compiled.handlers) >= len(stepping)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_action_of_the_specification_is_used(family: Family) -> None:
    cfg = Config(3, 2, 2)
    used = {action for rule in family.rules for action in rule.actions} | {"join_view_bits"}
    declared = {a.name for a in family.specification(cfg, (), 3).actions}
    assert declared <= used
    assert used - declared <= {"join_view_bits"}


def test_fields_are_taken_out_of_a_line() -> None:
    table = Table("t", (step("s", "{node}: go: op={op} by {who:w} ({sure:b})", "go"),), ("s",), {})
    assert Parser(table).match("[debug] (s): 3: go: op=12 by x_y (true)", 1) == (0, ("3", "12", "x_y", "true"))


def test_a_protocol_line_without_a_pattern_is_noted_and_other_lines_are_not() -> None:
    parser = Parser(Table("t", notes("s", "{node}: known {}"), ("s",), {}))
    for number, line in enumerate(["[warn] (s): 1: odd 77", "[warn] (s): 1: odd 78", "[warn] (other): 1: odd"], 1):
        assert parser.match(line, number) is None
    assert parser.counts.unknown == {"[warn] (s): N: odd N": 2}
    assert parser.counts.first_unknown == {"[warn] (s): N: odd N": 1}


def test_a_mapping_that_names_nothing_known_is_refused() -> None:
    replay = compile_spec(spec_2022(Config(3, 2, 2)))
    table = Table("t", (check("s", "{node}: go {op}", "go"),), ("s",), {})
    with pytest.raises(MappingError, match="nowhere"):
        compile_table(table, (Rule("go", Eq("op", "nowhere")),), replay, {}, HELPERS, {})
    with pytest.raises(MappingError, match="takes"):
        compile_table(table, (Rule("go", Do("crash", op="op")),), replay, {}, HELPERS, {})
    with pytest.raises(MappingError, match="without a rule"):
        compile_table(table, (), replay, {}, HELPERS, {})


def test_headers_of_both_families() -> None:
    old = Headers().get(
        "Header{ .checksum = 12, .view = 3, .op = 4, .commit = 2, .replica = 1, .command = Command.prepare }"
    )
    assert (old.checksum, old.view, old.op, old.commit, old.sender, old.command) == ("12", 3, 4, 2, 1, "prepare")
    new = Headers().get("View{ .checksum=ab, .view=3, .command=vsr.Command.view, .replica=1, .op=4, .commit_max=2 }")
    assert (new.checksum, new.command, new.number("commit_max"), new.commit) == ("ab", "view", 2, -1)


def test_a_reboot_of_the_compiled_steps_and_the_interpreter_agree() -> None:
    spec = spec_2022(Config(3, 2, 2))
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


def test_a_note_with_an_open_end_hides_no_event() -> None:
    table = Table("t", (*notes("s", "{node}: go: {}"), step("s", "{node}: go: op={op}", "go")), ("s",), {})
    assert Parser(table).match("[debug] (s): 3: go: op=12", 1) == (1, ("3", "12"))
    assert Parser(table).match("[debug] (s): 3: go: slowly", 1) == (0, ("3",))
