"""`vsr audit`: do these traces conform?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from refinement import local
from refinement.cli.output import json_option, note, save_json, steps
from refinement.discovery import Inputs, TraceInputError, discover
from refinement.reports import github, html, junit, sarif, table, text
from refinement.verdict import AuditOptions, AuditReport, CheckRun

PROFILES = ("core",)
INPUTS = ("native",)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a caller may put in place of the replay; passed as click's context object."""

    check_run: CheckRun


def load_check_run(interp: bool = False) -> CheckRun:
    """The replay: the caller's, or `refinement.checker.check_run`, compiled or by the reference interpreter."""
    context = click.get_current_context(silent=True)
    if context is not None and isinstance(context.obj, Dependencies):
        return context.obj.check_run
    from refinement.checker import check_run

    return partial(check_run, engine="interp") if interp else check_run


@dataclass(frozen=True, slots=True)
class Files:
    """Where the report is written besides stdout."""

    json: Path | None
    junit: Path | None
    sarif: Path | None
    html: Path | None
    violations: Path | None


_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--input", "input_format", type=click.Choice(INPUTS), default="native", show_default=True, help="Format.")
@click.option("--profile", type=click.Choice(PROFILES), default="core", show_default=True, help="Profile of the spec.")
@click.option("--allow", multiple=True, metavar="FAULT", help="Permit a known deviation; the report says where used.")
@click.option("--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True)
@click.option("--master", default="local[*]", show_default=True, help="Spark master.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes of the local engine.")
@click.option("--interp", is_flag=True, help="Take each spec step by the reference interpreter: slow, the oracle.")
@json_option
@click.option("--junit", "junit_file", type=_FILE, help="Write JUnit XML.")
@click.option("--sarif", "sarif_file", type=_FILE, help="Write SARIF 2.1.0.")
@click.option("--html", "html_file", type=_FILE, help="Write one self-contained HTML page.")
@click.option("--violations", type=_FILE, help="Write the violations as a table: *.parquet or *.ndjson.")
def audit(
    paths: tuple[str, ...],
    input_format: str,
    profile: str,
    allow: tuple[str, ...],
    engine: str,
    master: str,
    workers: int,
    interp: bool,
    json_file: Path | None,
    junit_file: Path | None,
    sarif_file: Path | None,
    html_file: Path | None,
    violations: Path | None,
) -> int:
    """Check recorded traces against the spec.

    PATH is a trace file (NDJSON, also .gz and .zst, or Parquet), a directory, or a pattern. Prints a verdict per run:
    conforms (exit 0), violates (1), inconclusive (4); malformed input is exit 2 with file, line and field.
    """
    files = Files(json_file, junit_file, sarif_file, html_file, violations)
    if violations is not None and violations.suffix not in table.SUFFIXES:
        raise click.BadParameter("the file's name must end in .parquet or .ndjson", param_hint="--violations")
    options = AuditOptions(profile, known_faults(allow))
    try:
        inputs = discover(paths)
    except TraceInputError as error:
        report = AuditReport(engine, options, problems=(error.problem,))
    else:
        if inputs.ignored:
            note(f"{len(inputs.ignored)} files that are no traces are not read, the first: {inputs.ignored[0]}")
        judge = load_check_run(interp)
        report = run(inputs, options, judge, engine=engine, master=master, workers=workers)
    publish(report, files)
    return report.exit_code


def run(
    inputs: Inputs, options: AuditOptions, check_run: CheckRun, *, engine: str, master: str, workers: int
) -> AuditReport:
    """Audit with the named engine."""
    with steps("audit") as progress:
        if engine == "local":
            return local.audit(inputs, options, check_run, workers=workers, progress=progress)
        from refinement import spark

        return spark.audit(inputs, options, check_run, master=master, log=note, progress=progress)


def known_faults(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once; refuses one that the spec does not know."""
    if not names:
        return ()
    from spec.vsr.faults import FAULTS

    known: Any = FAULTS
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.BadParameter(
            f"{unknown[0]}: no such fault; known: {', '.join(sorted(known))}", param_hint="--allow"
        )
    return tuple(dict.fromkeys(names))


def publish(report: AuditReport, files: Files) -> None:
    """Print the report and write it in every form asked for."""
    save_json(report.to_dict(), files.json)
    if files.junit:
        junit.write(report, files.junit)
    if files.sarif:
        sarif.write(report, files.sarif)
    if files.html:
        html.write(report, files.html)
    if files.violations:
        table.write_violations(report, files.violations)
    for line in text.lines(report):
        click.echo(line)
    rate = f", {report.events / report.seconds:,.0f} events/s" if report.seconds and report.events else ""
    note(f"{report.engine} engine: {report.seconds:.1f} s{rate}")
    if os.environ.get("GITHUB_ACTIONS"):
        for line in github.error_lines(report):
            click.echo(line)
        github.write_summary(report, os.environ)
