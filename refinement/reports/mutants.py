"""The page of mutants (docs/mutants.md), from the tables that `vsr mutate --record` keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from viewproof.refinement.reports.text import number as number_of

HEAD = """# Mutants: which place of the specification which shape needs

Made by `vsr mutate --document docs/mutants.md` from the tables in `spec/mutants/`, which `vsr mutate MODEL --record`
makes; do not edit. Each guard of each action is left out and weakened, each part of it left out, each quorum made one
smaller, each order of two keys turned round; each update is left out, its condition taken always and never, its
variable exchanged for another of the same kind; each cell that a crash leaves is lost in it. `vsr check MODEL` searches
the shapes below. A mutant that they do not notice is equivalent for the invariants, for the reason given, or open.
"""
EFFECTS = {
    "same": "as many states and steps: no size here needs it",
    "fewer": "fewer behaviours, none new",
    "more": "more behaviours, none wrong",
}
"""What a mutant that nobody notices does, in words."""


def document(tables: Iterable[dict[str, Any]]) -> str:
    """The page, Markdown."""
    return HEAD + "".join(_model(table) for table in tables)


def _model(table: dict[str, Any]) -> str:
    number = {shape["name"]: n for n, shape in enumerate(table["shapes"], start=1)}
    rows = table["mutants"]
    noticed = [m for m in rows if m["death"]]
    explained = [m for m in rows if not m["death"] and m["reason"]]
    left = [m for m in rows if not m["death"] and not m["reason"]]
    lines = [
        f"\n## {table['model']}\n",
        *([f"Its own places; the others are those of {', '.join(table['beside'])}.\n"] if table["beside"] else []),
        f"{len(noticed)} of {len(rows)} mutants are noticed, {len(explained)} are explained, {len(left)} are open.\n",
        "| shape | size | states | needed first by |",
        "|---|---|---|---|",
    ]
    for shape in table["shapes"]:
        first = sum(1 for m in noticed if m["death"]["shape"] == shape["name"])
        states = f"first {shape['states']:,}" if shape["bounded"] else f"all {shape['states']:,}"
        lines.append(f"| {number[shape['name']]} | {shape['name']} | {states} | {number_of(first, 'mutant')} |")
    lines += ["", "### Noticed", "", "| action | place | mutant | by | steps | shape |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{m['action']}` | {_place(m)} | {_what(m)} | {m['death']['by']} | {m['death']['steps'] or ''} "
        f"| {number.get(m['death']['shape'], 'all')} |"
        for m in noticed
    ]
    for title, found, of in (("Explained", explained, "why"), ("Open", left, "in the shapes that end")):
        if found:
            lines += ["", f"### {title}", "", f"| action | place | mutant | {of} |", "|---|---|---|---|"]
            lines += [
                f"| `{m['action']}` | {_place(m)} | {_what(m)} | {m['reason'] or EFFECTS[m['effect']]} |" for m in found
            ]
    return "\n".join(lines) + "\n"


def _place(mutant: dict[str, Any]) -> str:
    return _code(mutant["written"] or mutant["place"])


def _what(mutant: dict[str, Any]) -> str:
    part = f": {_code(mutant['part'])}" if mutant["part"] else ""
    return f"{mutant['kind']}{part}"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")
