"""`vsr diff OLD NEW`: what a change of the specification changes."""

from __future__ import annotations

from pathlib import Path

import click

from viewproof.refinement.cli.options import OutputFile, Place, protect
from viewproof.refinement.cli.output import json_option, note, save_json
from viewproof.refinement.difference import Plan, compare, page, versions
from viewproof.refinement.reports.files import write_text
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_VIOLATES
from viewproof.spec.protocols import MODELS

_count = click.IntRange(1)


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--model", "models", multiple=True, type=click.Choice(sorted(MODELS)), metavar="MODEL",
              help="Search this model.  [default: of each change the first model that has it]")  # fmt: skip
@click.option("--shapes", type=_count, default=4, show_default=True, help="So many of a model's shapes.")
@click.option("--states", type=_count, default=300_000, show_default=True, help="States of a search at most.")
@click.option("--no-mutants", is_flag=True, help="Leave out which mutants of the changed actions are noticed.")
@click.option("--corpus", "corpora", multiple=True, type=Place(exists=True),
              help="Audit these traces with both.")  # fmt: skip
@click.option("--repository", type=Place(exists=True, file_okay=False), default=".",
              help="The git repository of the revisions.  [default: the directory at hand]")  # fmt: skip
@click.option("--workers", type=_count, help="Threads of each search.  [default: the cores]")
@click.option("--page", "file", type=OutputFile(), help="Write the page (Markdown), as for a pull request.")
@json_option
def diff(
    old: str, new: str, models: tuple[str, ...], shapes: int, states: int, no_mutants: bool,
    corpora: tuple[Path, ...], repository: Path, workers: int | None, file: Path | None, json_file: Path | None,
) -> int:  # fmt: skip
    """Compare two versions of the specification: git revisions, or directories that hold one.

    Says which actions, invariants and lemmas differ as text; in which shapes one has a behaviour that the other has
    not, the shortest; which invariants break now and which witnesses are reached; which mutants of the changed actions
    survive now; which proofs are to be done again; with --corpus, whose verdicts change. The code of both versions is
    run. Exit codes: 0: an invariant that held in the shapes holds; 1: one is broken now.
    """
    for argument, name in (("OLD", old), ("NEW", new)):
        if not name.strip():
            raise click.UsageError(f"{argument} is empty; expected a directory (. for the one at hand) or a revision")
    protect({"--page": file, "--json": json_file})
    plan = Plan(models, shapes, states, not no_mutants, corpora, workers)
    with versions((old, new), repository) as (one, two):
        found = compare(one, two, plan, note)
    text = page(found)
    click.echo(text, nl=False)
    if file is not None:
        write_text(file, text)
    worse = [s for s in found.sized if s.old and s.new and s.old.holds and not s.new.holds]
    code = EXIT_VIOLATES if worse else EXIT_CONFORMS
    save_json({"format": "viewproof.diff/1", **found.to_json(), "exit_code": code}, json_file)
    return code
