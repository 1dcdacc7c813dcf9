"""`vsr diff OLD NEW`: what a change of the specification changes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from viewproof.refinement.cli.models import size_option
from viewproof.refinement.cli.options import OutputFile, Place, protect
from viewproof.refinement.cli.output import json_option, note, save_json
from viewproof.refinement.cli.own_model import SIZES, own_model_in
from viewproof.refinement.cli.questions import given
from viewproof.refinement.difference import Plan, Side, compare, file_of, own_model_of, page, versions
from viewproof.refinement.reports.files import write_text
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_VIOLATES
from viewproof.spec.protocols import MODELS

_count = click.IntRange(1)
_OF_VERSIONS = {"models": "--model", "shapes": "--shapes", "corpora": "--corpus"}
"""Options that are about versions of the specification that is here."""


@click.command()
@click.argument("old")
@click.argument("new")
@size_option
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
@click.pass_context
def diff(
    ctx: click.Context, /, old: str, new: str, models: tuple[str, ...], shapes: int, states: int, no_mutants: bool,
    corpora: tuple[Path, ...], repository: Path, workers: int | None, file: Path | None, json_file: Path | None,
) -> int:  # fmt: skip
    """Compare two versions of the specification: git revisions, or directories that hold one; or two of a model of
    one's own: ./my_model.py[:NAME], or REVISION:my_model.py[:NAME].

    Says which actions, invariants and lemmas differ as text; in which shapes one has a behaviour that the other has
    not, the shortest; which invariants break now and which witnesses are reached; which mutants of the changed actions
    survive now; which proofs are to be done again; with --corpus, whose verdicts change. The code of both versions is
    run. Exit codes: 0: an invariant that held in the shapes holds; 1: one is broken now.
    """
    for argument, name in (("OLD", old), ("NEW", new)):
        if not name.strip():
            raise click.UsageError(f"{argument} is empty; expected a directory (. for the one at hand) or a revision")
    protect({"--page": file, "--json": json_file})
    with _sides(ctx, (old, new), repository) as (one, two, size):
        plan = Plan(models, shapes, states, not no_mutants, corpora, workers, size)
        found = compare(one, two, plan, note)
    text = page(found)
    click.echo(text, nl=False)
    if file is not None:
        write_text(file, text)
    worse = [s for s in found.sized if s.new and not s.new.holds and (s.old is None or s.old.holds)]
    code = EXIT_VIOLATES if worse else EXIT_CONFORMS
    save_json({"format": "viewproof.diff/1", **found.to_json(), "exit_code": code}, json_file)
    return code


@contextmanager
def _sides(ctx: click.Context, names: Sequence[str], repository: Path) -> Iterator[tuple[Side, Side, str]]:
    """The two sides; of a model of one's own also its size, in words."""
    files = [_file_in(name) for name in names]
    own = [file for file in files if file is not None]
    if not own:
        if ctx.meta.get(SIZES):
            raise click.UsageError("--size is for a model of one's own; versions are compared in their models' shapes")
        with versions(names, repository) as (old, new):
            yield old, new, ""
        return
    if len(own) < len(files):
        raise click.UsageError(
            f"{names[0]} and {names[1]} are not of a kind: two versions of the specification are compared, or two of a "
            "model of one's own, ./my_model.py[:NAME]"
        )
    if wrong := sorted(given(ctx) & _OF_VERSIONS.keys()):
        raise click.UsageError(
            f"{_OF_VERSIONS[wrong[0]]} is about the models that are here, not about one of one's own"
        )
    with tempfile.TemporaryDirectory(prefix="vsr-diff-") as folder:
        found = []
        for n, (revision, path, wanted) in enumerate(own):
            file = file_of(revision, path, repository, Path(folder, str(n))) if revision else Path(path)
            found.append(own_model_in(file, wanted, path))
        sides = [own_model_of(name, found[1][0].name, spec) for name, (spec, _) in zip(names, found, strict=True)]
        sizes = dict.fromkeys(size for _, size in found)
        yield sides[0], sides[1], " / ".join(sizes)


def _file_in(name: str) -> tuple[str, str, str] | None:
    """Revision (empty: as it is), file and NAME of a model of one's own; None for a version of the specification."""
    parts = name.split(":")
    place = next((n for n, part in enumerate(parts[:2]) if part.endswith(".py")), None)
    return None if place is None else (parts[0] if place else "", parts[place], ":".join(parts[place + 1 :]))
