"""`vsr export itf`, `html` and `graph`: behaviours and state graphs of a bounded model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from viewproof.refinement.cli.check_text import show_value
from viewproof.refinement.cli.focused import Focused
from viewproof.refinement.cli.models import SIZES, bounded_model, model_options, witness_search
from viewproof.refinement.cli.options import OutputFile, json_option, protect
from viewproof.refinement.cli.output import PLAIN_SECONDS, note, save_json
from viewproof.refinement.cli.story import tell
from viewproof.refinement.reports import behaviour as page
from viewproof.refinement.reports.table import write_json
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_ERROR, EXIT_INCONCLUSIVE
from viewproof.spec.engines import explicit, graph, interp, story
from viewproof.spec.engines.graph.build import STATES_MAX
from viewproof.spec.engines.itf import to_itf
from viewproof.spec.lang import Spec
from viewproof.spec.lang.definitions import call_text

_out = click.option("--out", type=OutputFile(), required=True, help="File to write.")
_sometimes = click.option("--sometimes", metavar="ID", help="The shortest behaviour to a witness state (I1 …) instead.")
_max_states = click.option("--max-states", type=click.IntRange(1), help="Give up at this number of distinct states.")


MAIN = ("replicas", "views", "ops", "faults", "invariants", "sometimes", "out", "json_file")


def _behaviour_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (json_option, _max_states, _sometimes, _out):
        command = option(command)
    return model_options(command)


@click.command(cls=Focused, main=MAIN)
@_behaviour_options
def itf(out: Path, json_file: Path | None, **options: Any) -> int:
    """Write the shortest counterexample as an ITF trace (Apalache, Quint, the ITF viewer).

    With --sometimes, the shortest behaviour to a witness. Where there is none, nothing is written, and the exit code is
    2, or 4 at a bound.
    """
    protect({"--json": json_file, "--out": out})
    return _export(out, json_file, options, lambda told, result: write_json(to_itf(told.spec, result), out))


@click.command(cls=Focused, main=MAIN)
@_behaviour_options
def html(out: Path, json_file: Path | None, **options: Any) -> int:
    """Write the shortest counterexample as one self-contained page with a sequence diagram.

    With --sometimes, the shortest behaviour to a witness. Where there is none, nothing is written, and the exit code is
    2, or 4 at a bound.
    """
    protect({"--json": json_file, "--out": out})
    return _export(out, json_file, options, lambda told, _: page.write(told, out))


@click.command(cls=Focused, main=MAIN)
@_behaviour_options
def svg(out: Path, json_file: Path | None, **options: Any) -> int:
    """Write the sequence diagram of the shortest counterexample as a picture for a document (light and dark).

    With --sometimes, the shortest behaviour to a witness. Where there is none, nothing is written, and the exit code is
    2, or 4 at a bound.
    """
    protect({"--json": json_file, "--out": out})
    return _export(out, json_file, options, lambda told, _: page.write_picture(told, out))


def _export(
    out: Path, json_file: Path | None, options: dict[str, Any], write: Callable[[story.Story, explicit.Result], None]
) -> int:
    spec, text = bounded_model(options["name"], options["replicas"], options["faults"], {k: options[k] for k in SIZES})
    ending, invariants, searched = None, options["invariants"] or None, spec
    if options["sometimes"]:
        ending, searched = _goal(spec, options["sometimes"])
        invariants = None
    result = explicit.explore(searched, max_states=options["max_states"], invariants=invariants, notify=note)
    answer = {"format": "viewproof.export/1", "model": spec.name, "faults": list(options["faults"]), "sizes": text}
    if result.verdict != "violated":
        code = EXIT_ERROR if result.verdict == "holds" else EXIT_INCONCLUSIVE
        problem = _nothing(spec, result, options["sometimes"])
        note(f"error: {problem}")
        save_json({**answer, "exit_code": code, "error": problem}, json_file)
        return code
    broken = None if ending else result.broken
    told = tell(spec, result.behaviour, about=text, faults=options["faults"], broken=broken, ending=ending)
    write(told, replace(result, broken=None, title=f"reaches {ending.id}") if ending else result)
    click.echo(str(out))
    if json_file is not None:
        save_json({**answer, "exit_code": EXIT_CONFORMS, "files": [str(out)], "story": story.to_json(told)}, json_file)
    return EXIT_CONFORMS


def _goal(spec: Spec, id: str) -> tuple[story.Ending, Spec]:
    """The ending of a behaviour to a witness, and a specification whose only invariant is that it is never reached."""
    searched, wanted = witness_search(spec, id)
    recorded = next(w for w in spec.witness_irs if w.name == id)
    return story.Ending(wanted.id, wanted.title, wanted.doc, recorded.source, broken=False), searched


def _nothing(spec: Spec, result: explicit.Result, sometimes: str | None) -> str:
    if result.verdict != "holds":
        return f"{spec.name}: {result.reason} before a behaviour was found"
    if sometimes:
        return f"{spec.name}: no reachable state of this instance is one of witness {sometimes}"
    return f"{spec.name} holds: it has no counterexample; --sometimes ID writes a behaviour to a witness state"


@click.command(name="graph")
@model_options
@click.option("--out", type=OutputFile(), help=f"File to write; its ending chooses: {', '.join(graph.FORMATS)}.")
@click.option("--max-states", type=click.IntRange(1), default=STATES_MAX, show_default=True, help="Refuse above this.")
@click.option("--from", "start", default="initial", show_default=True, metavar="STATE", help="Where a path starts.")
@click.option("--to", "goal", metavar="STATE", help="Show a shortest path to this state.")
@click.option("--html", "html_file", type=OutputFile(), help="Write the path as a page with a sequence diagram.")
@json_option
def state_graph(
    name: str, out: Path | None, max_states: int, start: str, goal: str | None, html_file: Path | None,
    json_file: Path | None, faults: tuple[str, ...], invariants: tuple[str, ...], replicas: int | None,
    **sizes: int | None,
) -> int:  # fmt: skip
    """Build the graph of all reachable states of a small model; export it, or find a path in it.

    STATE is: initial; #12, a number in the graph; a witness (I1 …); "not I3", where that invariant fails; or cells such
    as "status[0]=normal, op[1]>=1". Of several such states the nearest is taken.
    """
    protect({"--json": json_file, "--out": out, "--html": html_file})
    if invariants:
        raise click.UsageError("a state graph has all states, whatever holds in them: --invariant has no place here")
    if out is not None and out.suffix not in graph.FORMATS:
        raise click.UsageError(f"{out}: the ending of --out must be one of {', '.join(graph.FORMATS)}")
    if html_file is not None and (goal is None or start != "initial"):
        raise click.UsageError("--html shows a path from the initial state: it needs --to, and no --from")
    spec, text = bounded_model(name, replicas, faults, sizes)
    for named in filter(None, (start, goal)):
        graph.check_name(spec, named)
    note(f"{name}: {text}")
    built = graph.build(spec, max_states=max_states, progress=_Counter())
    found = graph.summary(built)
    _print_summary(found)
    if out is not None:
        graph.write(built, out, show_value)
        click.echo(str(out))
    answer = {"format": "viewproof.graph/1", "exit_code": EXIT_CONFORMS, "faults": list(faults), "sizes": text, **found}
    if goal is None:
        save_json(answer, json_file)
        return EXIT_CONFORMS
    path = graph.shortest_path(built, graph.parse(built, start), graph.parse(built, goal))
    _print_path(path, start, goal)
    if html_file is not None and path is not None:
        ending = story.Ending(goal, "", broken=False)
        page.write(tell(spec, path, about=text, faults=faults, ending=ending), html_file)
        note(f"page: {html_file}")
    steps = None if path is None else [{"action": s.action, "args": s.args} for s in path]
    save_json({**answer, "path": steps}, json_file)
    return EXIT_CONFORMS


def _print_path(path: list[interp.Step] | None, start: str, goal: str) -> None:
    if path is None:
        click.echo(f"no path from {start} to {goal}")
        return
    click.echo(f"a shortest path from {start} to {goal}: {len(path)} steps")
    for number, step in enumerate(path, start=1):
        click.echo(f"{number:3}. {call_text(step.action, step.args)}")


def _print_summary(found: dict[str, Any]) -> None:
    final = found["final_components"]
    shown = ", ".join(f"#{c['state']}" + (f" ({c['size']} states)" if c["size"] > 1 else "") for c in final[:8])
    click.echo(f"{found['states']:,} states, {found['steps']:,} steps")
    click.echo(
        f"{found['components']:,} strongly connected components, {found['cyclic_components']:,} of them with a cycle; "
        f"the largest has {found['largest_component']:,} states"
    )
    more = f" and {len(final) - 8:,} more" if len(final) > 8 else ""
    click.echo(f"{len(final):,} that no step leaves: {shown}{more}")


class _Counter:
    """Progress as a plain line now and then."""

    def __init__(self) -> None:
        self._printed = time.monotonic()

    def __call__(self, found: int, waiting: int) -> None:
        """Print where the building stands, if the last line is old enough."""
        if time.monotonic() - self._printed >= PLAIN_SECONDS:
            self._printed = time.monotonic()
            note(f"{found:,} states, {waiting:,} waiting")
