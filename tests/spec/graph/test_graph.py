"""State graphs: complete, equal to what the search counts, and refused above the bound."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from tests.spec.counts import counts_of
from viewproof.spec.engines import graph, interp
from viewproof.spec.lang import (
    BOOL,
    Instance,
    Schema,
    Sort,
    Spec,
    SpecError,
    Var,
    action,
    all_of,
    not_,
    require,
    up_to,
    witness,
)
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model

Cell = Sort("Cell")


def _show(var: Var, value: int) -> str:
    return var.values.show(value)


@action
def flip(s, i: Cell):  # type: ignore[no-untyped-def]
    """A cell changes sides."""
    s.on[i] = not_(s.on[i])


@action
def stop(s):  # type: ignore[no-untyped-def]
    """All stops: this is final."""
    require(s.steps == 0)
    s.steps = 1
    s.on.update((Cell,), lambda i: False)


@action
def spin(s):  # type: ignore[no-untyped-def]
    """Nothing changes."""
    require(s.steps == 1)
    s.steps = 1


@witness("W", "both are on")
def both(s):  # type: ignore[no-untyped-def]
    """Both cells are on."""
    return all_of(s.on[0], s.on[1])


def _toggles() -> Spec:
    schema = Schema()
    schema.state("on", (Cell,), BOOL, doc="is it on?")
    schema.state("steps", (), up_to(Cell), doc="has all stopped?")
    return Spec("toggles", schema, None, (flip, stop, spin), (), (both,), Instance({"Cell": 1}))


@pytest.fixture(scope="module")
def core() -> graph.StateGraph:
    return graph.build(model("core", views=1, ops=1, requests=1))


def test_the_graph_has_the_states_and_steps_that_a_search_counts(core: graph.StateGraph) -> None:
    found = interp.explore(core.spec)
    assert (found.distinct, found.generated, found.depth) == counts_of("core", views=1, ops=1, requests=1)
    assert core.graph.number_of_nodes() == found.distinct
    assert core.graph.number_of_edges() == found.generated - 1
    assert max(nx.single_source_shortest_path_length(core.graph, 0).values()) == found.depth


def test_every_edge_is_a_step_of_the_interpreter(core: graph.StateGraph) -> None:
    for before, after, edge in core.graph.edges(data=True):
        result = interp.step(core.spec, core.states[before], core.spec.action(edge["action"]), edge["args"])
        assert result == core.states[after]


def test_components_are_found_and_the_final_ones_named() -> None:
    built = graph.build(_toggles())
    assert graph.summary(built) == {
        "model": "toggles",
        "states": 8,
        "steps": 8 * 2 + 4 + 4,
        "components": 2,
        "largest_component": 4,
        "cyclic_components": 2,
        "final_components": [{"size": 4, "state": 3}],
    }


def test_a_graph_above_the_bound_is_refused_by_name() -> None:
    with pytest.raises(graph.TooLargeError, match="core has more than 93 reachable states"):
        graph.build(model("core", views=1, ops=1, requests=1), max_states=93)


def test_a_shortest_path_between_named_states_is_a_behaviour(core: graph.StateGraph) -> None:
    path = graph.shortest_path(core, {0}, graph.parse(core, "commit_min[1]=1, op[2]>=1"))
    assert path is not None
    assert len(path) == 6
    state = State.initial()
    for step in path:
        after = interp.step(core.spec, state, core.spec.action(step.action), step.args)
        assert after == step.state
        state = step.state
    assert state.get(core.spec.schema.vars["commit_min"], (1,)) == 1


def test_a_path_that_is_not_there_is_none(core: graph.StateGraph) -> None:
    assert graph.shortest_path(core, {93}, {0}) is None
    assert graph.shortest_path(core, {5}, {5}) == []


def test_names_of_states(core: graph.StateGraph) -> None:
    assert graph.parse(core, "initial") == {0}
    assert graph.parse(core, "#7") == {7}
    assert graph.parse(core, "status[0]=normal") == set(range(94))
    assert graph.parse(core, "op[0] != 1") == {0}
    witness_states = graph.parse(core, "I1")
    assert witness_states < set(range(94))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("#94", "they are #0 … #93"),
        ("nonsense", "names no state"),
        ("op[0]=1 op[1]=1", "names no state"),
        ("foo[0]=1", "no variable foo"),
        ("op[7]=1", "op is indexed by"),
        ("op=1", "op is indexed by"),
        ("op[0]=2", "op has no value 2; it has 0, 1"),
        ("status[0]=view_change", "no reachable state"),
        ("not I3", "no reachable state"),
        ("not I4", "about steps, not states"),
    ],
)
def test_a_name_of_no_state_is_refused(core: graph.StateGraph, name: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        graph.parse(core, name)


def test_what_is_written_can_be_read_again(core: graph.StateGraph, tmp_path: Path) -> None:
    for suffix in graph.FORMATS:
        graph.write(core, tmp_path / f"g{suffix}", _show)
    again = nx.read_graphml(tmp_path / "g.graphml", node_type=int, force_multigraph=True)
    assert (again.number_of_nodes(), again.number_of_edges()) == (94, 258)
    document = json.loads((tmp_path / "g.json").read_text())
    assert len(document["nodes"]) == 94
    assert {"source": 0, "target": 1, "action": "on_request", "args": {"r": 0, "c": 1, "s": 1}} in document["edges"]
    dot = (tmp_path / "g.dot").read_text()
    assert dot.count(" -> ") == 258
    assert '0 -> 1 [label="on_request(r=0, c=1, s=1)"];' in dot
