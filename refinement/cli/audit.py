"""`vsr audit`: do these traces conform?"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click
from click.core import ParameterSource

from viewproof.refinement import local
from viewproof.refinement.cli.options import OutputFile, json_option, protect
from viewproof.refinement.cli.output import note, save_json, steps
from viewproof.refinement.discovery import Inputs, survey
from viewproof.refinement.interrupts import held
from viewproof.refinement.reports import github, html, junit, sarif, table, text
from viewproof.refinement.reports.escape import printable
from viewproof.refinement.verdict import EXIT_ERROR, AuditOptions, AuditReport, CheckRun

PROFILES = ("core", "tigerbeetle-2022", "tigerbeetle-2026")
INPUTS = ("native", "tigerbeetle")


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a caller may put in place of the replay; passed as click's context object."""

    check_run: CheckRun


def load_check_run(interp: bool = False) -> CheckRun:
    """The replay: the caller's, or `refinement.checker.check_run`, compiled or by the reference interpreter."""
    context = click.get_current_context(silent=True)
    if context is not None and isinstance(context.obj, Dependencies):
        return context.obj.check_run
    with held():
        from viewproof.refinement.checker import check_run

    return partial(check_run, engine="interp") if interp else check_run


@dataclass(frozen=True, slots=True)
class Files:
    """Where the report is written besides stdout."""

    json: Path | None
    junit: Path | None
    sarif: Path | None
    html: Path | None
    violations: Path | None

    def by_option(self) -> dict[str, Path | None]:
        """Each by its option."""
        return {f"--{name}": getattr(self, name) for name in self.__slots__}


_FILE = OutputFile()
_MASTER = re.compile(
    r"local(\[([1-9][0-9]*|\*)(,[0-9]+)?\])?|local-cluster\[[0-9]+,[0-9]+,[0-9]+\]|spark://\S+|k8s://\S+|yarn"
)
"""The masters that Spark knows; with a second number `local` tries a task again."""


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
    _check_master(engine, master)
    if input_format == "tigerbeetle":
        report = audit_logs(paths, profile, allow, files, engine=engine, master=master, workers=workers)
        return publish(report, files)
    if profile != "core":
        raise click.BadParameter(f"{profile} is for --input tigerbeetle", param_hint="--profile")
    options = AuditOptions(profile, known_faults(allow))
    inputs = survey(paths)
    protect(files.by_option(), [*paths, *inputs.files, *inputs.ignored], inputs.directories)
    if inputs.refused:
        report = AuditReport(engine, options, problems=inputs.refused)
    else:
        _note_unread(inputs)
        judge = load_check_run(interp)
        report = run(inputs, options, judge, engine=engine, master=master, workers=workers)
    return publish(report, files)


def audit_logs(
    paths: tuple[str, ...],
    profile: str,
    allow: tuple[str, ...],
    files: Files,
    *,
    engine: str,
    master: str,
    workers: int,
) -> AuditReport:
    """Audit debug logs of TigerBeetle's simulators (docs/tigerbeetle.md); core stands for the profile of each log."""
    with held():
        from viewproof.refinement.tigerbeetle import audit as logs
        from viewproof.refinement.tigerbeetle.families import known_deviations
        from viewproof.refinement.tigerbeetle.inputs import survey_logs
    known = known_deviations()
    if unknown := [fault for fault in allow if fault not in known]:
        message = f"{unknown[0]} cannot be permitted for these logs; there are: {', '.join(sorted(known))}"
        raise click.BadParameter(message, param_hint="--allow")
    options = AuditOptions(profile, tuple(dict.fromkeys(allow)))
    found = survey_logs(paths)
    protect(files.by_option(), [*paths, *found.files], found.directories)
    if found.problems:
        return AuditReport(engine, options, problems=found.problems)
    with steps("audit") as progress:
        if engine == "local":
            report = logs.audit(list(found.files), options, workers=workers, progress=progress)
        else:
            with held():
                from viewproof.refinement.tigerbeetle import on_spark
            report = on_spark.audit(list(found.files), options, master=master, log=note)
    return replace(report, empty=(*report.empty, *found.empty))


def _check_master(engine: str, master: str) -> None:
    """Refuse a master that is not used, or that Spark would refuse only after Java has started."""
    source = click.get_current_context().get_parameter_source("master")
    if engine == "local" and source is ParameterSource.COMMANDLINE:
        raise click.UsageError("--master is for --engine spark")
    if engine == "spark" and not _MASTER.fullmatch(master):
        known = "local, local[N], local[*], spark://HOST:PORT, k8s://URL, yarn"
        raise click.BadParameter(f"{master!r} is none of {known}", param_hint="--master")


def _note_unread(inputs: Inputs) -> None:
    if inputs.ignored:
        note(f"{len(inputs.ignored)} files that are no traces are not read, the first: {inputs.ignored[0]}")
    if inputs.repeated:
        note(f"{len(inputs.repeated)} paths lead to files that are read already, the first: {inputs.repeated[0]}")


def run(
    inputs: Inputs, options: AuditOptions, check_run: CheckRun, *, engine: str, master: str, workers: int
) -> AuditReport:
    """Audit with the named engine."""
    with steps("audit") as progress:
        if engine == "local":
            return local.audit(inputs, options, check_run, workers=workers, progress=progress)
        with held():
            from viewproof.refinement import spark

        return spark.audit(inputs, options, check_run, master=master, log=note, progress=progress)


def known_faults(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once; refuses one that the spec does not know, or that no trace event can show."""
    if not names:
        return ()
    with held():
        from viewproof.spec.lang import SpecError
        from viewproof.spec.vsr.faults import alternatives
    once = tuple(dict.fromkeys(names))
    try:
        alternatives(once)
    except SpecError as error:
        raise click.BadParameter(str(error), param_hint="--allow") from None
    return once


def publish(report: AuditReport, files: Files) -> int:
    """Print the report, then write it in every form asked for; the exit code, 2 where one cannot be written."""
    closed: BrokenPipeError | None = None
    try:
        _print(report)
    except BrokenPipeError as error:
        closed = error
    code = report.exit_code
    writers: tuple[tuple[str, Path | None, Callable[[Path], None]], ...] = (
        ("--json", files.json, partial(save_json, report.to_dict())),
        ("--junit", files.junit, partial(junit.write, report)),
        ("--sarif", files.sarif, partial(sarif.write, report)),
        ("--html", files.html, partial(html.write, report)),
        ("--violations", files.violations, partial(table.write_violations, report)),
    )
    for option, path, write in writers:
        if path is None:
            continue
        try:
            write(path)
            note(f"{option} written: {path}")
        except Exception as error:
            if os.environ.get("VSR_DEBUG"):
                raise
            note(f"error: {option} {path} is not written: {error}")
            code = EXIT_ERROR
    if closed:
        raise closed
    return code


def _print(report: AuditReport) -> None:
    for line in text.lines(report):
        click.echo(line)
    sys.stdout.flush()
    rate = f", {report.events / report.seconds:,.0f} events/s" if report.seconds and report.events else ""
    note(f"{report.engine} engine: {report.seconds:.1f} s{rate}")
    if os.environ.get("GITHUB_ACTIONS"):
        for line in github.error_lines(report):
            click.echo(printable(line))
        github.write_summary(report, os.environ)
