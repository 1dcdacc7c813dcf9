"""Write a state graph for other tools: GraphML (Gephi, yEd, networkx), DOT (Graphviz), JSON (node-link)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx

from viewproof.spec.engines.graph.build import StateGraph
from viewproof.spec.engines.guards import cell_name
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec, call_text
from viewproof.spec.lang.schema import Var

Show = Callable[[Var, int], str]


def write(graph: StateGraph, file: Path, show: Show) -> None:
    """Write by the file's ending, one of `FORMATS`."""
    FORMATS[file.suffix](graph, file, show)


def summary(graph: StateGraph) -> dict[str, Any]:
    """Counts: states, steps, components, and the components that no step leaves."""
    components = graph.components
    return {
        "model": graph.spec.name,
        "states": graph.graph.number_of_nodes(),
        "steps": graph.graph.number_of_edges(),
        "components": len(components),
        "largest_component": len(components[0]),
        "cyclic_components": sum(_is_cyclic(graph, c) for c in components),
        "final_components": [{"size": len(c), "state": min(c)} for c in graph.final_components],
    }


def _is_cyclic(graph: StateGraph, component: set[int]) -> bool:
    return len(component) > 1 or any(graph.graph.has_edge(n, n) for n in component)


def _leaves(spec: Spec, state: State, show: Show) -> dict[str, str]:
    """The cells that differ from the initial state."""
    return {
        cell_name(name, index): show(var, value)
        for name, var in spec.schema.vars.items()
        for index, value in sorted(state.tables.get(name, {}).items())
    }


def _call(edge: dict[str, Any]) -> str:
    return call_text(edge["action"], edge["args"])


def _nodes(graph: StateGraph, show: Show) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Number, component and leaves of every state."""
    component = {n: number for number, members in enumerate(graph.components) for n in members}
    for number, state in enumerate(graph.states):
        yield number, component[number], _leaves(graph.spec, state, show)


def _graphml(graph: StateGraph, file: Path, show: Show) -> None:
    plain: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for number, component, leaves in _nodes(graph, show):
        label = "\n".join(f"{k} = {v}" for k, v in leaves.items()) or "initial"
        plain.add_node(number, label=label, component=component)
    for before, after, edge in graph.graph.edges(data=True):
        plain.add_edge(before, after, label=_call(edge), action=edge["action"])
    nx.write_graphml(plain, file)


def _dot(graph: StateGraph, file: Path, show: Show) -> None:
    lines = ["digraph states {", "  node [shape=box, fontname=monospace, fontsize=9];"]
    for number, _, leaves in _nodes(graph, show):
        text = "\n".join([f"#{number}", *(f"{k} = {v}" for k, v in leaves.items())])
        lines.append(f"  {number} [label={_quoted(text)}];")
    for before, after, edge in graph.graph.edges(data=True):
        lines.append(f"  {before} -> {after} [label={_quoted(_call(edge))}];")
    file.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


def _quoted(text: str) -> str:
    """A DOT string; its lines are set flush left."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\l")
    return f'"{escaped}\\l"' if "\\l" in escaped else f'"{escaped}"'


def _json(graph: StateGraph, file: Path, show: Show) -> None:
    nodes = [{"id": n, "component": c, "cells": leaves} for n, c, leaves in _nodes(graph, show)]
    edges = [
        {"source": before, "target": after, "action": edge["action"], "args": edge["args"]}
        for before, after, edge in graph.graph.edges(data=True)
    ]
    document = {"directed": True, "multigraph": True, "graph": summary(graph), "nodes": nodes, "edges": edges}
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


FORMATS: dict[str, Callable[[StateGraph, Path, Show], None]] = {".graphml": _graphml, ".dot": _dot, ".json": _json}
"""File ending → writer."""
