"""`vsr diff-audit OLD NEW TRACES`: whose verdict a change of the specification or of settings changes."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from viewproof.refinement.cli.options import Place, protect
from viewproof.refinement.cli.output import json_option, note, save_json
from viewproof.refinement.difference import versions
from viewproof.refinement.difference.audits import Answer, Side, at_hand, compare, side
from viewproof.refinement.difference.versions import Version
from viewproof.refinement.discovery import survey
from viewproof.refinement.reports.text import number
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES

RUNS_SHOWN = 5


@click.command("diff-audit")
@click.argument("old")
@click.argument("new")
@click.argument("traces", nargs=-1, required=True, type=Place(exists=True))
@click.option("--engine", type=click.Choice(("local", "spark")), default="local", show_default=True)
@click.option("--master", default="local[*]", show_default=True, help="Spark master.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes of the local engine.")
@click.option("--repository", type=Place(exists=True, file_okay=False), default=".",
              help="The git repository of the revisions.  [default: the directory at hand]")  # fmt: skip
@click.option("--keep-violations", "keeps", is_flag=True,
              help="Exit 1 also where a run that violates by OLD does not by NEW.")  # fmt: skip
@json_option
def diff_audit(
    old: str, new: str, traces: tuple[Path, ...], engine: str, master: str, workers: int, repository: Path,
    keeps: bool, json_file: Path | None,
) -> int:  # fmt: skip
    """Audit traces by two versions, and say which runs change their verdict, and by which guard.

    OLD and NEW are NAME[:KEY=VALUE,...]. NAME is a git revision, a directory with a specification, nothing (the program
    at hand), or the report of an audit (*.json), which is then not made again. A KEY is one of input, profile, adapter,
    allow, forbid, without, set. The code of both versions is run. Exit codes: 0: no run violates that did not; 1: some
    do (or with --keep-violations: no longer do); 4: no run was read.
    """
    sides = [side(words) for words in (old, new)]
    inputs = survey(map(str, traces))
    reports = [one.report for one in sides if one.report is not None]
    protect({"--json": json_file}, [*traces, *inputs.files, *reports], inputs.directories)
    words = ["--engine", "spark", "--master", master] if engine == "spark" else ["--workers", str(workers)]
    _require_here(sides, engine, master)
    with ExitStack() as stack:
        one, two = [(one, _version(one, repository, stack)) for one in sides]
        answer = compare(one, two, traces, words, note)
    _show(answer)
    code = EXIT_CONFORMS if answer.runs else EXIT_INCONCLUSIVE
    code = EXIT_VIOLATES if any(one.worse or (keeps and one.spared) for one in answer.changed) else code
    save_json({"format": "viewproof.diff-audit/1", **answer.to_json(), "exit_code": code}, json_file)
    return code


def _version(side: Side, repository: Path, stack: ExitStack) -> Version | None:
    if side.report is not None:
        return None
    if not side.version:
        return at_hand()
    return stack.enter_context(versions([side.version], repository))[0]


def _require_here(sides: list[Side], engine: str, master: str) -> None:
    """Executors elsewhere have one version of the program: that which is installed there."""
    if engine == "spark" and not master.startswith("local"):
        for one in sides:
            if one.version:
                text = f"executors of {master} have the version that is installed there, not {one.version}"
                raise click.BadParameter(text, param_hint="--master")


def _show(answer: Answer) -> None:
    judged = ", ".join(f"{count:,} by {name}" for name, count in answer.judged.items())
    click.echo(f"{number(answer.runs, 'run')}; judged: {judged}{': ' + answer.reused if answer.reused else ''}")
    for (both, by), runs in answer.causes().items():
        more = f" and {len(runs) - RUNS_SHOWN:,} more" if len(runs) > RUNS_SHOWN else ""
        click.echo(f"{both}: {number(len(runs), 'run')}{': ' + by if by else ''}")
        click.echo(f"  {', '.join(runs[:RUNS_SHOWN])}{more}")
        one = next(one for one in answer.changed if one.run_id == runs[0])
        for name, told in (("old", one.old), ("new", one.new)):
            if told and told["message"]:
                place = f" [{told['place']}]" if told["place"] else ""
                click.echo(f"  {name}: {told['at'] + ': ' if told['at'] else ''}{told['message']}{place}")
    if not answer.runs:
        click.echo(f"nothing is compared: there is no run in {', '.join(answer.traces)}")
        return
    many = (
        "1 run changes its verdict"
        if len(answer.changed) == 1
        else f"{len(answer.changed):,} runs change their verdict"
    )
    click.echo(many if answer.changed else "no run changes its verdict")
