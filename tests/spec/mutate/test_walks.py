"""Mutants that break an invariant too deep for a search: a walk to each, step by step; reasons.toml names this file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.spec.mutate import stories_of_repair as of_repair
from tests.spec.vsr.repair.test_repair import HEADER_LOST
from viewproof.refinement.cli.mutate import model_shapes
from viewproof.spec.engines import interp
from viewproof.spec.engines.mutate import Mutant, all_mutants, mutants
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State
from viewproof.spec.mutants import reason_of, tables
from viewproof.spec.vsr import model

COPY_ELSEWHERE = """
on_request r=0 c=1 s=1
on_prepare r=2 o=1
append r=2 o=1
restart r=0
start_view_change r=0 v=1
start_view_change r=1 v=1
update_superblock r=0
update_superblock r=1
merge r=1 b=1 n=0
update_superblock r=1
send_start_view r=1
start_view r=1
on_start_view r=0 v=1 n=0
update_superblock r=0
on_request r=1 c=1 s=1
append r=1 o=1
on_prepare r=0 o=1
append r=0 o=1
rot r=0 o=1
start_view_change r=0 v=2
update_superblock r=0
start_view_change r=2 v=2
update_superblock r=2
merge r=2 b=0 n=1
"""
"""Replica 2 has the prepare of view 0 at op 1, and merges the log of view 1, whose prepare nobody says to hold."""
COPY_OF_A_LATER_VIEW = """
on_request r=0 c=1 s=1
append r=0 o=1
start_view_change r=1 v=1
start_view_change r=2 v=1
update_superblock r=1
update_superblock r=2
merge r=1 b=1 n=0
update_superblock r=1
send_start_view r=1
start_view r=1
on_request r=1 c=1 s=1
start_view_change r=2 v=2
start_view_change r=0 v=1
start_view_change r=0 v=2
update_superblock r=2
update_superblock r=0
merge r=2 b=0 n=1
update_superblock r=2
repair r=2 o=1
rot r=2 o=1
start_view_change r=2 v=3
start_view_change r=2 v=4
update_superblock r=2
start_view_change r=1 v=4
update_superblock r=1
merge r=1 b=2 n=1
"""
"""The same, where replica 1 has the prepare of view 1, and view 2 began with that of view 0."""
HEADER_ABOVE_THE_HEAD = """
on_request r=0 c=1 s=1
append r=0 o=1
on_prepare r=1 o=1
{first}
start_view_change r=1 v=1
start_view_change r=2 v=1
update_superblock r=1
{then}
update_superblock r=2
merge r=1 b=1 n=0
update_superblock r=1
start_view_change r=2 v=2
start_view_change r=1 v=2
update_superblock r=2
update_superblock r=1
merge r=2 b=1 n=0
update_superblock r=2
send_start_view r=2
start_view r=2
on_start_view r=1 v=2 n=0
update_superblock r=1
on_request r=2 c=1 s=1
on_request r=2 c=2 s=1
on_prepare r=1 o=2
append r=1 o=2
start_view_change r=1 v=3
update_superblock r=1
"""
"""Replica 1 keeps the header of view 0 at op 1 above its head, takes op 2 of view 2, and offers both."""
HEADER_WITHOUT_BODY = """
on_request r=0 c=1 s=1
append r=0 o=1
start_view_change r=1 v=1
start_view_change r=2 v=1
do_view_change r=1
do_view_change r=2
merge r=1 b=1 n=0
start_view r=1
on_request r=1 c=1 s=1
append r=1 o=1
start_view_change r=2 v=2
start_view_change r=2 v=3
start_view_change r=0 v=3
do_view_change r=2
do_view_change r=0
merge r=0 b=0 n=1
start_view r=0
on_start_view r=2 v=3 n=1
"""
"""Replica 1 has the prepare of view 1, which began without that of view 0; view 3 begins with that."""
COPY_IN_IGGY = f"""{HEADER_WITHOUT_BODY}
start_view_change r=2 v=4
start_view_change r=1 v=4
do_view_change r=2
do_view_change r=1
merge r=1 b=2 n=1
"""
BODY_CUT = f"""{HEADER_WITHOUT_BODY}
repair r=2 o=1
start_view_change r=2 v=4
start_view_change r=2 v=5
start_view_change r=1 v=5
do_view_change r=2
do_view_change r=1
merge r=2 b=2 n=1
"""
"""Replica 2 holds what view 3 began with, acknowledged it, and merges beside replica 1's offer."""
OLDER_COPY_IN_IGGY = """
on_request r=0 c=1 s=1
append r=0 o=1
start_view_change r=1 v=1
start_view_change r=2 v=1
do_view_change r=1
do_view_change r=2
merge r=1 b=1 n=0
start_view r=1
on_request r=1 c=1 s=1
append r=1 o=1
start_view_change r=1 v=2
start_view_change r=1 v=3
start_view_change r=1 v=4
start_view_change r=2 v=4
do_view_change r=1
do_view_change r=2
merge r=1 b=1 n=1
start_view r=1
on_start_view r=2 v=4 n=1
start_view_change r=2 v=5
start_view_change r=0 v=5
do_view_change r=2
do_view_change r=0
merge r=2 b=2 n=1
"""
"""Replica 0 has the prepare of view 0; view 4 begins with that of view 1, of which replica 2 has the header only."""
LARGEST_OF_ALL = """
on_request r=0 c=1 s=1
append r=0 o=1
start_view_change r=1 v=1
start_view_change r=2 v=1
start_view_change r=3 v=1
do_view_change r=1
do_view_change r=2
do_view_change r=3
merge r=1 b=1 n=0
start_view r=1
on_start_view r=4 v=1 n=0
on_request r=1 c=1 s=1
append r=1 o=1
on_prepare r=4 o=1
start_view_change r=2 v=2
start_view_change r=2 v=3
start_view_change r=2 v=4
start_view_change r=2 v=5
start_view_change r=3 v=5
start_view_change r=0 v=5
do_view_change r=0
do_view_change r=2
do_view_change r=3
merge r=0 b=0 n=1
start_view r=0
on_start_view r=2 v=5 n=1
on_start_view r=3 v=5 n=1
repair r=2 o=1
repair r=3 o=1
start_view_change r=2 v=6
start_view_change r=3 v=6
start_view_change r=1 v=6
do_view_change r=1
do_view_change r=2
do_view_change r=3
merge r=1 b=2 n=1
repair r=1 o=1
start_view r=1
"""
"""View 5 committed the prepare of view 0; replica 1 offers that of view 1 to view 6, and replica 4 has it, too."""
FILE_BEYOND_ITS_SNAPSHOT = """
on_request r=0 c=1 s=1
append r=0 o=1
commit r=0 o=1
ask_other r=0
execute r=0
on_request r=0 c=1 s=2
append r=0 o=2
commit r=0 o=2
ask_append r=0 n=0 m=1
execute r=0
flush_segment r=0 n=0
restart r=0 n=2
start_view_change r=1 v=1
start_view_change r=1 v=2
start_view_change r=0 v=2
do_view_change r=0
do_view_change r=1
start_view r=0 b=0
commit r=0 o=1
execute r=0
take_checkpoint r=0
install_snapshot r=1 v=2 n=2 k=1
"""
"""Replica 0 flushes the message of op 2, crashes, and takes a snapshot once it has executed op 1 again."""
FOUR_VIEWS: dict[str, Any] = {
    "replicas": 3,
    "views": 4,
    "ops": 2,
    "clients": 2,
    "requests": 1,
    "restarts": 1,
    "rots": 0,
}
VIEWS: dict[str, Any] = {"replicas": 3, "views": 6, "ops": 1, "requests": 1}
TWO_OPS: dict[str, Any] = {"replicas": 3, "ops": 2, "clients": 2, "requests": 1}
CANONICAL = "all_of(received(r).dvc[view[r], q],"
NACKED = "received(r).nack_sent[view[r], q, o] == entry[r, o]"
NAMED = "received(r).dvc_entry[view[r], q, o] == max("


@dataclass(frozen=True)
class Walk:
    """A behaviour of a mutant of a model in a size: the beginning of its place, what is done there, and what its last
    step breaks.
    """

    place: str
    kind: str
    part: str
    story: str
    breaks: str
    sizes: dict[str, Any]
    model: str = "superblock"

    @property
    def steps(self) -> list[str]:
        """A step a line."""
        return [line for line in self.story.splitlines() if line]

    def mutant(self, found: list[Mutant]) -> Mutant:
        """The one of these that it is about."""
        (one,) = [
            m for m in found
            if m.id.startswith(self.place) and m.kind == self.kind and m.part.startswith(self.part) and m.number == 1
        ]  # fmt: skip
        return one


WALKS = [
    Walk(
        "merge | forall(max(", "part left out", NAMED, COPY_ELSEWHERE, "L1_copy",
        {"replicas": 3, "views": 3, "ops": 1, "requests": 1, "restarts": 1, "rots": 1},
    ),
    Walk(
        "merge | forall(max(", "or less", NAMED, COPY_ELSEWHERE, "L1_copy",
        {"replicas": 3, "views": 3, "ops": 1, "requests": 1, "restarts": 1, "rots": 1},
    ),
    Walk(
        "merge | forall(max(", "or more", NAMED, COPY_OF_A_LATER_VIEW, "L1_copy",
        {"replicas": 3, "views": 5, "ops": 1, "requests": 1, "restarts": 0, "rots": 1},
    ),
    Walk(
        "merge | entry[r, o] = …", "condition always true", "o <= n",
        HEADER_ABOVE_THE_HEAD.format(first="", then=""), "I12", FOUR_VIEWS,
    ),
    Walk(
        "restart | entry[r, o] = …", "condition always true", "body[r, o] ==",
        HEADER_ABOVE_THE_HEAD.format(first="restart r=1", then=""), "I12", FOUR_VIEWS,
    ),
    Walk(
        "restart | op[r] = …", "condition never true", "durable_log_view[r] < durable_view[r]",
        HEADER_ABOVE_THE_HEAD.format(first="", then="restart r=1"), "I12", FOUR_VIEWS,
    ),
    Walk(
        "update_superblock | dvc_nack[view[r], r, o] = …", "condition never true", "where(all_of(durable_log_view[r]",
        HEADER_LOST, "I11", {"replicas": 2, "views": 3, "ops": 2, "requests": 2, "restarts": 2, "rots": 1},
    ),
    Walk("merge | forall(max(", "part left out", NAMED, COPY_IN_IGGY, "L1_copy", VIEWS, "iggy_views"),
    Walk("merge | forall(max(", "or less", NAMED, OLDER_COPY_IN_IGGY, "L1_copy", VIEWS, "iggy_views"),
    Walk("merge | forall(max(", "or more", NAMED, COPY_IN_IGGY, "L1_copy", VIEWS, "iggy_views"),
    Walk("merge | body[r, o] = …", "condition always true", CANONICAL, BODY_CUT, "I3", VIEWS, "iggy_views"),
    Walk(
        "merge | sv_entry[view[r], o] = …", "condition always true", CANONICAL, LARGEST_OF_ALL, "I2",
        {"replicas": 5, "views": 7, "ops": 1, "requests": 1}, "iggy_views",
    ),
    Walk(
        "discard | entry[r, p] = …", "left out", "", of_repair.CUT_BY_DISCARD, "I12",
        {**TWO_OPS, "views": 4, "rots": 0}, "repair",
    ),
    Walk(
        "merge | entry[r, o] = …", "condition always true", "o <= ", of_repair.CUT_BY_MERGE, "I12",
        {**TWO_OPS, "views": 6, "rots": 0}, "repair",
    ),
    Walk(
        "discard | (2 - where(", "or more", NACKED, of_repair.NACK_OF_A_LATER_PREPARE, "I11",
        {**TWO_OPS, "views": 3, "rots": 0}, "repair",
    ),
    Walk(
        "discard | (1 - where(", "or more", NACKED, of_repair.NACK_WHERE_ALL_ACKNOWLEDGED, "I11",
        {**TWO_OPS, "views": 3, "rots": 1, "quorum_replication": 3, "quorum_view_change": 1}, "repair",
    ),
    Walk(
        "merge | quorum <= count(", "minor key first", "", of_repair.LONGEST_OF_AN_OLDER_VIEW, "I3",
        {**TWO_OPS, "views": 3, "rots": 0}, "repair",
    ),
    Walk(
        "take_checkpoint | snapshot_held[", "segment for it", "", FILE_BEYOND_ITS_SNAPSHOT, "I15",
        {"replicas": 2, "views": 3, "ops": 2, "requests": 2, "restarts": 1, "rots": 0, "partitions": 1, "readers": 1,
         "messages": 1, "quorum_replication": 1, "quorum_view_change": 2}, "partitions",
    ),
]  # fmt: skip


def broken(spec: Spec, steps: list[str]) -> dict[int, list[str]]:
    """Step → the invariants that it breaks, of the steps that can be taken one after the other."""
    state = State.initial()
    found: dict[int, list[str]] = {}
    for number, line in enumerate(steps, start=1):
        name, *args = line.split()
        named = {key: int(value) for key, value in (arg.split("=") for arg in args)}
        after = interp.step(spec, state, spec.action(name), named)
        if not isinstance(after, State):
            break
        wrong = [p.id for p in spec.invariants if not all(interp.holds(spec, p, s, after) for s in (state, after))]
        found |= {number: wrong} if wrong else {}
        state = after
    return found


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: f"{walk.place} {walk.kind}")
def test_a_mutant_that_no_search_reaches_breaks_what_its_walk_says_and_the_specification_does_not(walk: Walk) -> None:
    spec = model(walk.model, **walk.sizes)
    mutant = walk.mutant(list(mutants(spec)))
    assert broken(mutant.of(spec), walk.steps) == {len(walk.steps): [walk.breaks]}
    assert broken(spec, walk.steps) == {}


def test_every_mistake_that_reasons_tell_by_its_steps_has_a_walk_of_as_many() -> None:
    kept = {table["model"] for table in tables()}
    walked: dict[tuple[str, str], Walk] = {}
    for name in {walk.model for walk in WALKS} & kept:
        found = [next(iter(by_shape.values())) for by_shape in all_mutants(model_shapes(name)).values()]
        walked |= {(name, walk.mutant(found).id): walk for walk in WALKS if walk.model == name}
    told = {
        (table["model"], m["id"])
        for table in tables()
        for m in table["mutants"]
        if not m["death"] and "(tests/spec/mutate/test_walks.py" in m["reason"]
    }
    assert told == set(walked)
    for key, walk in walked.items():
        assert f"{walk.breaks} in {len(walk.steps)} steps" in reason_of(*key)
