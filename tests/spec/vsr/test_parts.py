"""Guards only grow: in every combination of parts, with each known mistake, every action has the guards of each part,
but for those that the mistake says it drops.
"""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest

from viewproof.spec.lang import (
    Instance,
    Part,
    Spec,
    SpecError,
    action,
    at,
    before,
    compose,
    instead,
    replaces,
    require,
    without,
)
from viewproof.spec.vsr import FAULTS, Config, build, model, models
from viewproof.spec.vsr.config import ClientTable, Partitions, Repair
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import Op, Replica
from viewproof.spec.vsr.faults import alternatives
from viewproof.spec.vsr.parts import CORE, PARTS
from viewproof.spec.vsr.parts.checkpoints import checkpoint
from viewproof.spec.vsr.parts.loss import require_takes_part
from viewproof.spec.vsr.stand_ins import Fault, instead_of

CHOICES: dict[str, tuple[Any, ...]] = {
    "client_table": (
        ClientTable(),
        ClientTable(slots=1),
        ClientTable(slots=1, sessions=True),
        ClientTable(slots=1, sessions=True, gaps=True, cached=2),
    ),
    "features": (0, 1),
    "checkpoints": (False, True),
    "journal_slots": (0, 1),
    "pipeline": (0, 1),
    "failing_appends": (False, True),
    "discards": (False, True),
    "losses": (False, True),
    "repair": (Repair(), Repair("nonce"), Repair("superblock"), Repair("probe")),
    "partitions": (Partitions(), Partitions(1), Partitions(1, files=True)),
}
"""Every part on and off. (`fence` changes no action: it is on in all.)"""
TABLES = CHOICES["client_table"]

LOST_BEFORE = {
    "restart": (
        "boot.all_zero",
        "boot.replays_over_gap",
        "boot.replays_uncommitted",
        "boot.view_file_unreadable_is_new",
        "boot.view_from_last_prepare",
    ),
    "on_start_view": ("commit.false_ack_after_start_view", "commit.fence_on_commit_max"),
}
"""The seven pairs that lost the guard of who waits for what its disk lost, as long as the last name won."""


def configurations(most: int | None = None, **fixed: Any) -> Iterator[Config]:
    """Every combination that a configuration permits; with `most`, those in which at most so many choices
    differ from the default.
    """
    for values in product(*({**CHOICES, **{name: (value,) for name, value in fixed.items()}}.values())):
        on = sum(value != CHOICES[name][0] for name, value in zip(CHOICES, values, strict=True))
        if most is not None and on > most:
            continue
        try:
            yield Config(3, fence=True, **dict(zip(CHOICES, values, strict=True)))
        except SpecError:
            continue


def unbounded(cfg: Config) -> Spec:
    return build(cfg, Instance({"Replica": cfg.replicas - 1}))


def guards(spec: Spec, names: set[str] | None = None) -> dict[str, dict[Any, str]]:
    """Action → guard → its text."""
    wanted = tuple(act for act in spec.actions if names is None or act.name in names)
    recorded = replace(spec, actions=wanted).action_irs
    return {ir.name: {g.cond.key(): g.source.text for g in ir.guards} for ir in recorded}


Added = dict[str, dict[str, set[str]]]
"""Function of a part → action → texts of the guards in it."""


def added_by(part: Part, cfg: Config) -> Added:
    """The guards that a part adds, as the part alone adds them."""
    recorded = unbounded(cfg).action_irs
    found: Added = {}
    for change in part.changes(cfg):
        if change.kind in ("at", "before"):
            lines, first = inspect.getsourcelines(change.fn)
            file, places = str(inspect.getsourcefile(change.fn)), range(first, first + len(lines))
            texts = {
                ir.name: {g.source.text for g in ir.guards if file.endswith(g.source.file) and g.source.line in places}
                for ir in recorded
            }
            found[change.fn.__name__] = {name: guards for name, guards in texts.items() if guards}
    return found


ALONE: dict[str, dict[str, Any]] = {
    "sessions": {"client_table": ClientTable(sessions=True)},
    "clients": {"client_table": ClientTable(slots=1)},
    "control": {"features": 1},
    "checkpoints": {"checkpoints": True, "journal_slots": 1},
    "losses": {"losses": True, "checkpoints": True},
    "partitions": {"partitions": Partitions(1, files=True), "checkpoints": True},
    "pipeline": {"pipeline": 1},
    "append_failure": {"failing_appends": True},
    "discard": {"discards": True},
    "repair": {"repair": Repair("superblock")},
    "nonce": {"repair": Repair("nonce")},
    "superblock": {"repair": Repair("superblock")},
    "fence": {"fence": True},
    "iggy": {"repair": Repair("probe")},
    "cache": {"client_table": ClientTable(sessions=True, gaps=True, cached=2)},
}
"""How each part is switched on alone. One that is not here: as in its first model, and on and off in `CHOICES`."""
for new in (part for part in PARTS if part.name not in ALONE):
    assert new.models, f"the part {new.name} has no model (models=) that says how it is switched on: say it in ALONE"
    ALONE[new.name] = dict(next(iter(new.models.values())).options)
    for option, on in ALONE[new.name].items():
        CHOICES.setdefault(option, (getattr(Config(3), option), on))


@cache
def expected() -> dict[str, Added]:
    """Part → the guards that it adds."""
    return {part.name: added_by(part, Config(3, **ALONE[part.name])) for part in PARTS}


def lost(spec: Spec, cfg: Config) -> list[tuple[str, str, str]]:
    """Part, action and text of each guard that a part adds and an action of the specification has not."""
    wanted = [
        (part.name, name, text)
        for part in PARTS
        if part.is_on(cfg)
        for change in part.changes(cfg)
        for name, texts in expected()[part.name].get(getattr(change.fn, "__name__", ""), {}).items()
        for text in texts
    ]
    found = guards(spec, {name for _, name, _ in wanted})
    return [(part, name, text) for part, name, text in wanted if name in found and text not in found[name].values()]


def test_the_guards_of_each_part_are_known() -> None:
    found = {name: sorted(actions) for added in expected().values() for name, actions in added.items() if actions}
    assert found == {
        "require_table_slot": ["execute"],
        "require_pipeline": ["on_request"],
        "require_short": ["start_view"],
        "require_unsent": ["on_request"],
        "require_view_fixed": ["on_request"],
        "require_caught_up": ["on_request"],
        "require_known": ["execute"],
        "require_flushed": ["take_checkpoint"],
        "require_whole": ["restart"],
        "require_snapshot": ["restart"],
        "require_drained": ["on_prepare", "on_request", "on_start_view", "start_view"],
        "require_takes_part": ["install_snapshot", "on_start_view", "restart", "start_view_change"],
    }


@pytest.mark.parametrize("table", TABLES, ids=["core-table", "slots", "sessions", "cached"])
def test_in_every_combination_every_action_has_the_guards_of_each_part(table: ClientTable) -> None:
    missing = {cfg: names for cfg in configurations(client_table=table) if (names := lost(unbounded(cfg), cfg))}
    assert missing == {}


def dropped(cfg: Config) -> dict[str, set[str]]:
    """Fault → texts of the guards that its stand-ins lack, of those that stand without it in this configuration."""
    spec, found = unbounded(cfg), {}
    for mistake in FAULTS.values():
        try:
            wrong = build(replace(cfg, faults=frozenset({mistake.id})), spec.instance)
        except SpecError:
            continue
        names = {act.name for act in mistake.actions}
        there, here = guards(spec, names), guards(wrong, names)
        found[mistake.id] = {text for name in there for key, text in there[name].items() if key not in here[name]}
    return found


def require_what_is_dropped(most: int | None) -> None:
    """Holds what the mistakes drop in each configuration against what they say."""
    seen: dict[str, set[str]] = defaultdict(set)
    for cfg in configurations(most):
        for fault, texts in dropped(cfg).items():
            unsaid = texts - {f"require({guard})" for guard in FAULTS[fault].drops}
            assert not unsaid, f"{fault} drops {sorted(unsaid)}, and does not say so, under {cfg}"
            seen[fault] |= texts
    said = {fault.id: {f"require({guard})" for guard in fault.drops} for fault in FAULTS.values() if fault.drops}
    assert {fault: texts for fault, texts in seen.items() if texts} == said


def test_a_mistake_drops_what_it_says_with_any_two_parts() -> None:
    require_what_is_dropped(2)


@pytest.mark.long
def test_a_mistake_drops_what_it_says_in_every_combination() -> None:
    require_what_is_dropped(None)


def alone(monkeypatch: pytest.MonkeyPatch, mistake: Fault) -> None:
    """Let this be what there is of mistakes."""
    monkeypatch.setitem(FAULTS, mistake.id, mistake)
    monkeypatch.setattr(sys.modules[__name__], "FAULTS", {mistake.id: mistake})


OUT_OF_ORDER = FAULTS["commit.out_of_order"]


def test_a_mistake_that_drops_a_guard_and_does_not_say_so_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, OUT_OF_ORDER)
    require_what_is_dropped(0)
    alone(monkeypatch, replace(OUT_OF_ORDER, drops=()))
    with pytest.raises(AssertionError, match=r"commit\.out_of_order drops .*commit_max.* does not say so"):
        require_what_is_dropped(0)


def test_a_mistake_that_says_more_than_it_drops_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, replace(OUT_OF_ORDER, drops=(*OUT_OF_ORDER.drops, "state.status[r] == NORMAL")))
    with pytest.raises(AssertionError, match=r"commit\.out_of_order"):
        require_what_is_dropped(0)


@action
def on_prepare_anywhere(state: Any, r: Replica, o: Op) -> None:
    """A prepare is taken where the ring has no room for it."""
    with without(checkpoint.require_drained):
        normal.on_prepare.fn(state, r, o)


def test_a_mistake_that_drops_the_guard_of_a_part_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = instead_of(normal.on_prepare, act=on_prepare_anywhere)
    alone(monkeypatch, replace(OUT_OF_ORDER, stands_in=(stand_in,), drops=()))
    require_what_is_dropped(1)
    with pytest.raises(AssertionError, match=r"commit\.out_of_order drops .* does not say so, under .*journal_slots=1"):
        require_what_is_dropped(2)


@action
def on_prepare(state: Any, r: Replica, o: Op) -> None:
    """The core's, written anew without the point at which parts ask for room."""
    with instead({normal.require_slot: lambda state, r, o: None}), without(checkpoint.require_drained):
        normal.on_prepare.fn(state, r, o)


def test_an_action_that_does_not_inherit_the_guards_of_parts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    careless = part(changes=lambda cfg: (replaces(normal.on_prepare, on_prepare),))
    cfg = Config(3, checkpoints=True, journal_slots=1)
    assert lost(unbounded(cfg), cfg) == []
    monkeypatch.setattr(models, "PARTS", (*PARTS, careless))
    assert {(name, action) for name, action, _ in lost(unbounded(cfg), cfg)} == {("checkpoints", "on_prepare")}


@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, faults in LOST_BEFORE.items() for fault in faults])
def test_who_waits_for_its_log_takes_part_in_no_mistake(name: str, fault: str) -> None:
    spec = model("loss", faults=(fault,))
    assert "require(takes_part(state, r))" in guards(spec, {name})[name].values()


@pytest.mark.parametrize("fault", ["state.getstate_truncates", "state.view_before_newstate"])
def test_nor_in_a_mistake_beside_an_action(fault: str) -> None:
    spec = model("loss", faults=(fault,))
    (added,) = (act.name for act in FAULTS[fault].added)
    assert "require(takes_part(state, r))" in guards(spec, {added})[added].values()


@pytest.mark.parametrize("fault", [fault for faults in LOST_BEFORE.values() for fault in faults])
def test_nor_in_a_deviation_that_an_audit_allows(fault: str) -> None:
    spec = build(Config(3, losses=True), Instance({"Replica": 2}))
    permitted = alternatives((fault,))
    for names in permitted.by_action.values():
        for found in guards(spec.with_stand_ins(permitted.added), set(names)).values():
            if names[0].startswith(tuple(LOST_BEFORE)):
                assert "require(takes_part(state, r))" in found.values()


def part(**what: Any) -> Part:
    return Part("late", lambda cfg: True, **what)


@action
def drain(state: Any, r: Replica) -> None:
    """Another action."""
    require(state.op[r] > 0)


def no_such_parameter(state: Any, r: Any, depth: Any) -> None:
    """A guard that asks for what the point does not have."""
    require(depth > 0)


def gives_a_value(state: Any, r: Any) -> Any:
    """No point of guards joins a value."""
    return state.op[r]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (lambda: part(actions=lambda cfg: (normal.commit,)), "there is a commit; say that it is replaced"),
        (lambda: part(changes=lambda cfg: (before(drain, require_takes_part),)), "adds to drain, which is not there"),
        (lambda: part(changes=lambda cfg: (replaces(drain, drain),)), "replaces a drain that is not there"),
        (lambda: part(changes=lambda cfg: (replaces(normal.commit, drain),)), "drain cannot stand in for commit"),
        (lambda: part(changes=lambda cfg: (at(normal.require_room, no_such_parameter),)), "has no depth"),
        (lambda: part(changes=lambda cfg: (before(normal.commit, no_such_parameter),)), "has no depth"),
        (lambda: part(changes=lambda cfg: (at(normal.require_room, gives_a_value),)), "require_room joins none"),
        (lambda: part(changes=lambda cfg: 2 * (replaces(normal.record, no_slots),)), "replaces record, as another"),
    ],
)
def test_a_part_that_does_not_fit_is_refused(more: Callable[[], Part], message: str) -> None:
    cfg = Config(3)
    with pytest.raises(SpecError, match=message):
        _ = compose((CORE, more()), cfg).spec("late", cfg, Instance({"Replica": 2})).action_irs


def no_slots(state: Any, r: Any, o: Any, entry: Any) -> None:
    """A table that holds nothing."""


def test_a_mistake_of_an_action_that_a_part_replaced_is_refused() -> None:
    with pytest.raises(SpecError, match="is a mistake in another on_prepare than this configuration has"):
        model("repair", faults=("commit.fence_on_commit_max",))
