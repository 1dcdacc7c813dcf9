"""The text of the export: golden module, every node of the IR, layout, names, refusals."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.spec.counts import UPDATE
from tests.spec.tla.shelf import IDLE, INSTANCE, READING, Place, Reader, clear, schema, shelf
from viewproof.refinement.cli import cli
from viewproof.spec.engines.tla import export
from viewproof.spec.engines.tla.enums import Enums
from viewproof.spec.engines.tla.expressions import Printer
from viewproof.spec.engines.tla.names import Scope
from viewproof.spec.engines.tla.tidy import tidy
from viewproof.spec.lang import (
    Instance,
    Schema,
    Sort,
    Spec,
    SpecError,
    Values,
    action,
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    implies,
    invariant,
    largest,
    maximum,
    not_,
    number_of,
    require,
    smallest,
    where,
    within,
)
from viewproof.spec.lang.expr import Const, Expr, Op, Quant, Read, SortMax, walk
from viewproof.spec.lang.record import record_predicate
from viewproof.spec.vsr import model

GOLDEN = Path(__file__).parent / "golden"

NODES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda s: s.steps + 1 == 2, "steps + 1 = 2"),
    (lambda s: s.steps - (s.steps - 1) != 2, "steps - (steps - 1) /= 2"),
    (lambda s: number_of(s.steps) + 1 + 1 < s.length[0] % 2, "steps + 1 + 1 < length[0] % 2"),
    (lambda s: s.steps - -1 <= 2, "steps - (-1) <= 2"),
    (lambda s: largest(s.steps, 1) == smallest(s.steps, 2), "Max(steps, 1) = Min(steps, 2)"),
    (lambda s: s.steps >= 1, "steps >= 1"),
    (lambda s: s.steps > 1, "steps > 1"),
    (lambda s: s.mood[1] == READING, 'mood[1] = "reading"'),
    (lambda s: s.mood[1] != where(s.owned[1], IDLE, s.mood[0]), 'mood[1] /= (IF owned[1] THEN "idle" ELSE mood[0])'),
    (lambda s: s.level == 1, "level = 1"),
    (lambda s: s.owned[1] == s.owned[2], "owned[1] = owned[2]"),
    (lambda s: s.owned[1] == (s.steps < 1), "owned[1] = (steps < 1)"),
    (lambda s: s.owned[1] == True, "owned[1] = TRUE"),  # noqa: E712
    (lambda s: s.after.steps <= s.after.length[0], "steps' <= length'[0]"),
    (lambda s: s.received(1).lent[0, 2], "lent[0, 2]"),
    (lambda s: within(Place, s.steps + 1), "steps + 1 \\in Place"),
    (lambda s: not_(s.owned[1]), "~owned[1]"),
    (lambda s: not_(s.steps == 1), "steps /= 1"),
    (lambda s: not_(s.steps < 1), "~(steps < 1)"),
    (lambda s: not_(all_of(s.owned[1], s.owned[2])), "~(owned[1] /\\ owned[2])"),
    (lambda s: all_of(s.owned[1], all_of(s.owned[2], s.steps == 1)), "owned[1] /\\ owned[2] /\\ steps = 1"),
    (lambda s: any_of(s.owned[1], all_of(s.owned[2], s.steps == 1)), "owned[1] \\/ (owned[2] /\\ steps = 1)"),
    (lambda s: implies(s.steps == 1, s.owned[1]), "steps = 1 => owned[1]"),
    (lambda s: implies(implies(s.owned[1], s.owned[2]), s.owned[1]), "(owned[1] => owned[2]) => owned[1]"),
    (lambda s: where(s.steps == 1, True, s.owned[1]), "steps = 1 \\/ owned[1]"),
    (lambda s: where(s.steps == 1, False, s.owned[1]), "steps /= 1 /\\ owned[1]"),
    (lambda s: where(s.steps == 1, s.owned[1], True), "steps = 1 => owned[1]"),
    (lambda s: where(s.steps == 1, s.owned[1], False), "steps = 1 /\\ owned[1]"),
    (lambda s: where(s.steps == 1, s.owned[1], s.owned[2]), "IF steps = 1 THEN owned[1] ELSE owned[2]"),
    (lambda s: forall(Place, lambda p: s.owned[p]), "\\A p \\in Place : owned[p]"),
    (
        lambda s: exists(
            Reader, lambda r: exists(Reader, lambda q: exists(Place, lambda p: s.book[r, p] < s.book[q, p]))
        ),
        "\\E r, q \\in Reader, p \\in Place : book[r, p] < book[q, p]",
    ),
    (
        lambda s: forall(Place, lambda p: forall(between(Place, 1, p - 1), lambda p: s.owned[p])),
        "\\A p \\in Place : \\A p2 \\in 1 .. p - 1 : owned[p2]",
    ),
    (
        lambda s: all_of(exists(Place, lambda p: s.owned[p]), s.owned[1]),
        "(\\E p \\in Place : owned[p]) /\\ owned[1]",
    ),
    (lambda s: count(Place, lambda p: s.owned[p]) >= 2, "Cardinality({p \\in Place : owned[p]}) >= 2"),
    (
        lambda s: maximum(between(Place, 2, s.steps), lambda p: s.book[0, p], default=1) == s.steps,
        "Maximum({1} \\cup {book[0, p] : p \\in 2 .. steps}) = steps",
    ),
    (lambda s: Op("eq", (SortMax(Place), s.steps), True), "MaxPlace = steps"),
    (lambda s: forall(Place, lambda length: s.owned[length]), "\\A length2 \\in Place : owned[length2]"),
]
"""Predicate → its text on one line."""


def printed(fn: Callable[[Any], Any], width: int = 100) -> str:
    """A predicate over the shelf, printed."""
    declared = schema()
    ir = record_predicate("P", "drawn", fn, declared, None, "A predicate.")
    scope = Scope(frozenset(declared.vars) | {"Reader", "Place"})
    lines = Printer(INSTANCE, Enums(frozenset(["level"]))).show(tidy(ir.cond), scope, width).lines
    return "\n".join(lines)


@pytest.mark.parametrize(("fn", "text"), NODES, ids=[text for _, text in NODES])
def test_an_expression_reads_as_a_tla_reader_writes_it(fn: Callable[[Any], Any], text: str) -> None:
    assert printed(fn) == text


def test_every_node_of_the_language_is_in_the_table() -> None:
    met: set[Any] = set()
    for fn, _ in NODES:
        for node in walk(record_predicate("P", "drawn", fn, schema(), None, "A predicate.").cond):
            met.add(type(node).__name__)
            met.add(node.op if isinstance(node, Op) else node.kind if isinstance(node, Quant) else None)
            if isinstance(node, Read):
                met |= {"after"} if node.after else {"received"} if node.receiver is not None else set()
    language = [cls for cls in Expr.__subclasses__() if cls.__module__.startswith("viewproof.spec.lang")]
    known = {cls.__name__ for cls in language} - {"Binder"}
    operations = {"add", "sub", "mod", "max", "min", "eq", "ne", "lt", "le", "and", "or", "not", "ite"}
    assert met >= known | operations | {"forall", "exists", "count", "max", "after", "received"}


def test_long_expressions_become_lists() -> None:
    def long(s: Any) -> Any:
        return forall(
            Reader,
            lambda r: implies(
                any_of(s.length[r] == 1, s.length[r] == 2),
                lambda: any_of(
                    all_of(s.owned[1], s.book[r, 1] < s.book[r, 2], s.steps == 1),
                    exists(Place, lambda p: all_of(s.lent[r, p], s.book[r, p] == 1, s.owned[p])),
                    s.steps == where(s.owned[1], s.book[r, 1] + number_of(s.book[r, 2]), s.book[r, 2]),
                ),
            ),
        )

    assert printed(long, 52).split("\n") == [
        "\\A r \\in Reader :",
        "  length[r] = 1 \\/ length[r] = 2 =>",
        "    \\/ /\\ owned[1]",
        "       /\\ book[r, 1] < book[r, 2]",
        "       /\\ steps = 1",
        "    \\/ \\E p \\in Place :",
        "         lent[r, p] /\\ book[r, p] = 1 /\\ owned[p]",
        "    \\/ steps = (IF owned[1]",
        "                THEN book[r, 1] + book[r, 2]",
        "                ELSE book[r, 2])",
    ]


@pytest.mark.parametrize("name", ["shelf.tla", "shelf.cfg"])
def test_the_module_is_the_golden_one(name: str) -> None:
    module = export(shelf(), note="A small model.")
    text = module.text if name.endswith(".tla") else module.config
    if os.environ.get(UPDATE):
        GOLDEN.mkdir(exist_ok=True)
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8"), f"{UPDATE}=1 writes it anew"


def test_a_message_is_shown_as_the_record_that_its_variables_make() -> None:
    text = export(model("sessions")).text
    above = text.partition("VARIABLES\n  prepare_client,")[0]
    assert above.endswith(
        """
\\* What was sent: a fact, once sent, that any receiver may act on.
\\* prepare[View, Op] ==
\\*   [client |-> prepare_client, request |-> prepare_request, parent |-> prepare_parent,
\\*    session |-> prepare_session, incarnation |-> prepare_incarnation]
\\* do_view_change[View, Replica] ==
\\*   [sent |-> dvc, log_view |-> dvc_log_view, op |-> dvc_op, commit |-> dvc_commit,
\\*    entry |-> dvc_entry]
\\* start_view[View] ==
\\*   [sent |-> sv, op |-> sv_op, entry |-> sv_entry]
"""
    )


def test_only_the_invariants_asked_for_are_checked() -> None:
    module = export(shelf(), invariants=["S3"])
    assert module.properties == {"Always_S3": "S3"}
    assert "INVARIANTS\n  TypeOK\nPROPERTIES\n  Always_S3\n" in module.config
    with pytest.raises(SpecError, match="no invariant S9"):
        export(shelf(), invariants=["S9"])


def test_an_enumeration_that_is_computed_with_stays_a_number() -> None:
    text = export(shelf()).text
    assert "level = 0" in text
    assert 'mood = [r \\in Reader |-> "idle"]' in text


def test_the_same_model_gives_the_same_text() -> None:
    assert export(model("core")).text == export(model("core")).text


def test_an_unbounded_sort_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match="sort Place is unbounded"):
        export(replace(shelf(), instance=Instance({"Reader": 1})))


def test_a_clash_of_names_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"action book .* is also the variable book"):
        export(replace(shelf(), actions=(replace(clear, name="book"),)))
    with pytest.raises(SpecError, match=r"action CHOOSE .* not a TLA\+ identifier"):
        export(replace(shelf(), actions=(replace(clear, name="CHOOSE"),)))


def test_two_enumerations_that_meet_stay_numbers_together() -> None:
    sort = Sort("A")
    declared = Schema()
    declared.state("x", (sort,), Values(0, 1, labels=("red", "green")), doc="a colour")
    declared.state("y", (sort,), Values(0, 1, labels=("low", "high")), doc="a level")

    @action
    def mix(s: Any, a: sort) -> None:
        """A colour becomes a level."""
        require(s.x[a] == 1)
        s.y[a] = s.x[a]

    @invariant("M1", "low")
    def low(s: Any) -> Any:
        """All is low."""
        return forall(sort, lambda a: s.y[a] == 0)

    text = export(Spec("mixed", declared, None, (mix,), (low,), (), Instance({"A": 1}))).text
    assert '"red"' not in text
    assert '"low"' not in text
    assert "y' = [y EXCEPT ![a] = x[a]]" in text


def test_constants_print_with_their_type() -> None:
    assert Printer(INSTANCE, Enums()).line(Const(1, True), Scope(frozenset())).lines == ("TRUE",)


def test_vsr_export_tla_writes_module_and_configuration(tmp_path: Path) -> None:
    words = ["export", "tla", "core", "--replicas", "2", "--views", "2", "--out", str(tmp_path / "new")]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert "MODULE core" in (tmp_path / "new" / "core.tla").read_text()
    assert "MaxReplica = 1\n  MaxView = 1\n" in (tmp_path / "new" / "core.cfg").read_text()


def test_another_format_is_refused_by_name(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["export", "promela", "core", "--json", str(tmp_path / "r.json")])
    assert result.exit_code == 2
    assert "not available in this version for promela" in result.stderr
    assert (tmp_path / "r.json").exists()
