"""`vsr mutate`: which guard, update and order of a model does which of its shapes need?"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import click

from viewproof.refinement.cli.check_portfolio import Wanted, shapes
from viewproof.refinement.cli.models import ModelName, refuse_own_sizes, size_option
from viewproof.refinement.cli.options import OutputFile, Place
from viewproof.refinement.cli.output import json_option, note, save_json, steps
from viewproof.refinement.cli.own_model import is_own, own_model
from viewproof.refinement.reports.files import write_text
from viewproof.refinement.reports.mutants import document
from viewproof.refinement.reports.table import write_json
from viewproof.refinement.reports.text import number
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE
from viewproof.spec.engines.mutate import Mutant, Report, all_mutants, hunt, survey
from viewproof.spec.engines.portfolio import Shape, digest_of_predicates, digest_of_steps
from viewproof.spec.mutants import FOLDER, FORMAT, longest, reason_of, tables
from viewproof.spec.protocols import portfolio_of

OWN_STATES = 1_000_000
"""States of a search of a model of one's own at most, where nothing else is said."""


@dataclass(frozen=True)
class Target:
    """A model whose mutants are hunted: its shapes; ids of the mutants that are in the tables of the models `beside`;
    and why an id need not be noticed (empty: nothing is written).
    """

    name: str
    shapes: list[Shape]
    elsewhere: frozenset[str]
    beside: tuple[str, ...]
    reason: Callable[[str], str]


@click.command()
@click.argument("name", metavar="[MODEL]", type=ModelName(), required=False)
@size_option
@click.option("--action", "actions", multiple=True, help="Only mutants of this action; may be repeated.")
@click.option("--part", help="Only mutants of text in a file or folder of this name: repair, view_change.")
@click.option("--states", type=click.IntRange(1), help="States of each shape at most.")
@click.option(
    "--reasons", type=Place(exists=True, dir_okay=False), help="Of a model of one's own: why some are equivalent."
)
@click.option("--workers", type=click.IntRange(1), help="Threads of each search.  [default: the cores]")
@click.option("--record", is_flag=True, help="Keep the table of the whole model beside the specification.")
@click.option("--document", "page", type=OutputFile(), help="Write the page of all tables that are kept; no search.")
@json_option
def mutate(
    name: str | None, actions: tuple[str, ...], part: str | None, states: int | None, reasons: Path | None,
    workers: int | None, record: bool, page: Path | None, json_file: Path | None,
) -> int:  # fmt: skip
    """Change a model in one place at a time, and see which of its shapes notices.

    Each guard is left out and weakened, each part of it left out, each quorum made one smaller, each order of two keys
    turned round; each update is left out, its condition taken always and never, its variable exchanged for one of the
    same kind; each cell that a crash leaves is lost in it. A mutant is noticed if an invariant breaks, a step leaves
    its range, or over all shapes a witness is not reached or an action not taken. A model of parts tries its own
    places; those that it has from a smaller model are in that one's table. A model of one's own, ./my_model.py[:NAME],
    has one shape. Exit code 4: some mutant is open, neither noticed nor explained (spec/mutants/reasons.toml;
    --reasons). What was searched is kept: the same command goes on where it stopped.
    """
    if page is not None:
        write_text(page, document(tables()))
        note(f"page: {page}")
        if name is None:
            return EXIT_CONFORMS
    if name is None:
        raise click.UsageError("a MODEL is missing")
    if record and (actions or part):
        raise click.UsageError("--record keeps the table of a whole model: not with --action or --part")
    target = _own(name, reasons, record) if is_own(name) else _target(name, reasons)
    searched = [replace(s, max_states=min(filter(None, (states, s.max_states)))) for s in target.shapes]
    known = {action.name for shape in searched for action in shape.spec.actions}
    if unknown := sorted(set(actions) - known):
        raise click.UsageError(f"no action {', '.join(unknown)} in {name}; there are: {', '.join(sorted(known))}")
    every = [next(iter(each.values())) for each in all_mutants(searched).values()] if part is not None else []
    if part is not None and not any(_in_part(mutant, part) for mutant in every):
        raise click.UsageError(f"no mutant of {name} is in a file or folder {part}")
    ground = survey(searched, workers)
    reports = []
    with steps("mutants") as bar:
        for report in hunt(
            searched, ground, actions=frozenset(actions) or None, workers=workers,
            wanted=lambda mutant: mutant.id not in target.elsewhere and (part is None or _in_part(mutant, part)),
            explained=lambda mutant: bool(target.reason(mutant.id)),
            progress=lambda done, total, report: bar(done, total, report.mutant.action),
        ):  # fmt: skip
            reports.append(report)
            click.echo(report_line(report, target.reason(report.mutant.id)))
    shapes = [{"name": s.name, "states": ground.states[s.name], "bounded": s.name in ground.bounded} for s in searched]
    table: dict[str, Any] = {
        "format": FORMAT,
        "model": target.name,
        "beside": list(target.beside),
        "digest": digest_of_steps(*(shape.spec for shape in searched)),
        "predicates": digest_of_predicates(*(shape.spec for shape in searched)),
        "shapes": shapes,
        "mutants": [_row(report) for report in reports],
    }
    if record:
        write_json(table, FOLDER / f"{name}.json")
    code = EXIT_INCONCLUSIVE if _count(target, reports) else EXIT_CONFORMS
    for row in table["mutants"]:
        row["reason"] = "" if row["death"] else target.reason(row["id"])
    save_json({**table, "exit_code": code}, json_file)
    return code


def _target(name: str, reasons: Path | None) -> Target:
    """A model that is here."""
    refuse_own_sizes(name)
    if reasons is not None:
        raise click.UsageError(
            f"--reasons is for a model of one's own; those of {name} are in spec/mutants/reasons.toml"
        )
    portfolio = portfolio_of(name)
    if portfolio.table != name:
        raise click.UsageError(f"{name} is {portfolio.table} in other sizes: vsr mutate {portfolio.table}")
    return Target(name, model_shapes(name), elsewhere(name), portfolio.beside, lambda id: reason_of(name, id))


def _own(name: str, reasons: Path | None, record: bool) -> Target:
    """A model of one's own: one shape, its size."""
    if record:
        raise click.UsageError(f"--record keeps tables of the models that are here, not of {name}: say --json FILE")
    spec, size = own_model(name)
    known = {} if reasons is None else _reasons(reasons)
    return Target(spec.name, [Shape(size, spec, OWN_STATES)], frozenset(), (), lambda id: longest(known, id))


def _reasons(file: Path) -> Mapping[str, str]:
    """Mutant id, or its beginning → why it need not be noticed. Refuses what is not such a file."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise click.UsageError(f"{file} is not TOML: {problem}") from problem
    if wrong := next((id for id, why in found.items() if not isinstance(why, str) or not why.strip()), None):
        raise click.UsageError(f'{file}: {wrong}: expected a reason, "MUTANT" = "why it need not be noticed"')
    return found


def _count(target: Target, reports: list[Report]) -> int:
    """How many are open, once it is said."""
    left = sum(r.death is None and not target.reason(r.mutant.id) for r in reports)
    noticed = sum(r.death is not None for r in reports)
    explained = len(reports) - noticed - left
    click.echo(
        f"{target.name}: {noticed} of {len(reports)} mutants are noticed, {explained} are explained, {left} are open"
    )
    return left


def elsewhere(name: str) -> frozenset[str]:
    """Ids of the mutants of a model that are in the tables of smaller models."""
    return frozenset(id for other in portfolio_of(name).beside for id in all_mutants(model_shapes(other)))


def model_shapes(name: str) -> list[Shape]:
    """The shapes of a model under the core's profile."""
    return shapes(Wanted(name, "core", (), None, None, False, None, False))


def _in_part(mutant: Mutant, part: str) -> bool:
    path = PurePath(mutant.source.file)
    return part in (*path.parts, path.stem)


def report_line(report: Report, why: str) -> str:
    """What became of a mutant: its file and line, the text that is changed there as it is written, how, and the rest.

    One that is open is named by its id, too, as reasons want it; `why`: its reason.
    """
    mutant = report.mutant
    part = f" ({mutant.part})" if mutant.part and mutant.part != mutant.place else ""
    written = " ".join((mutant.written or mutant.place).split())
    head = f"{mutant.source}: {mutant.action}: {mutant.kind}{part}: {written}"
    if report.death is None:
        return f"{head}\n  " + (f"explained: {why}" if why else f"NOT NOTICED ({report.effect}), id: {mutant.id}")
    where = report.death.shape or "all shapes"
    after = f" after {number(report.death.steps, 'step')}" if report.death.steps else ""
    return f"{head}\n  {report.death.by}{after} ({where})"


def _row(report: Report) -> dict[str, Any]:
    mutant = report.mutant
    return {
        "id": mutant.id,
        "action": mutant.action,
        "place": mutant.place,
        "written": mutant.written,
        "kind": mutant.kind,
        "part": mutant.part,
        "file": mutant.source.file,
        "death": None if report.death is None else report.death.to_json(),
        "effect": report.effect,
    }
