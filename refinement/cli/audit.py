"""`vsr audit`: do these traces conform?"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click
from click.core import ParameterSource

from viewproof.api import audit as api
from viewproof.refinement import baseline
from viewproof.refinement.cli.options import EMPTY, OutputFile, Place, configuration_of, json_option, protect
from viewproof.refinement.cli.output import note, save_json, steps
from viewproof.refinement.discovery import Inputs
from viewproof.refinement.reports import github, junit, sarif, table, text
from viewproof.refinement.reports.escape import printable
from viewproof.refinement.verdict import EXIT_ERROR, AuditReport, CheckRun


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a caller may put in place of the replay; passed as click's context object."""

    check_run: CheckRun


def load_check_run(interp: bool = False) -> CheckRun:
    """The replay: the caller's, or that of the API."""
    context = click.get_current_context(silent=True)
    if context is not None and isinstance(context.obj, Dependencies):
        return context.obj.check_run
    return api.check_run(interp=interp)


@dataclass(frozen=True, slots=True)
class Files:
    """Where the report is written besides stdout."""

    json: Path | None
    junit: Path | None
    sarif: Path | None
    html: Path | None
    violations: Path | None
    write_baseline: Path | None

    def by_option(self) -> dict[str, Path | None]:
        """Each by its option."""
        return {f"--{name.replace('_', '-')}": getattr(self, name) for name in self.__slots__}


_FILE = OutputFile()
_MASTER = re.compile(
    r"local(\[([1-9][0-9]*|\*)(,[0-9]+)?\])?|local-cluster\[[0-9]+,[0-9]+,[0-9]+\]|spark://\S+|k8s://\S+|sc://\S+|yarn"
)
"""The masters that Spark knows; with a second number `local` tries a task again."""
_PACKED = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
"""How packed input on standard input begins, and what the name of such a file ends with."""


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option("--input", type=click.Choice(api.INPUTS), default="native", show_default=True, help="Format.")
@click.option("--profile", type=click.Choice(api.PROFILES), default="core", show_default=True, help="Of the spec.")
@click.option("--allow", multiple=True, metavar="FAULT", help="Permit a known deviation; the report says where used.")
@click.option("--forbid", multiple=True, metavar="FAULT", help="Refuse a departure that is only named; all: each.")
@click.option("--partial", "is_partial", is_flag=True, help="Lines may be missing anywhere: none is missed.")
@click.option("--without", multiple=True, metavar="COLUMN", help="Judge as if the column were never there.")
@click.option("--adapter", metavar="NAME", default="", help="Logs of iggy, oxia, or MODULE:NAME (docs/adapters.md).")
@click.option("--set", "given", multiple=True, metavar="COLUMN=N", help="Configuration that no boot of a run shows.")
@click.option("--engine", type=click.Choice(api.ENGINES), default="local", show_default=True)
@click.option("--master", default="local[*]", show_default=True, help="Spark master.")
@click.option("--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the Spark session.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes of the local engine.")
@click.option("--state", type=Place(), help="Go on from the audit kept here; without PATH: show it.")
@click.option("--interp", is_flag=True, help="Take each spec step by the reference interpreter: slow, the oracle.")
@click.option("--why", is_flag=True, help="Print the steps that led to a violation, also of old ones.")
@json_option
@click.option("--junit", "junit_file", type=_FILE, help="Write JUnit XML.")
@click.option("--sarif", "sarif_file", type=_FILE, help="Write SARIF 2.1.0.")
@click.option("--html", "html_file", type=_FILE, help="Write one self-contained HTML page.")
@click.option("--violations", type=_FILE, help="Write the violations as a table: *.parquet or *.ndjson.")
@click.option("--baseline", "baseline_file", type=Place(), help="Known violations.")
@click.option("--write-baseline", type=_FILE, help="Write the violations found (and those known) as a baseline.")
def audit(
    paths: tuple[str, ...], input: str, profile: str, allow: tuple[str, ...], forbid: tuple[str, ...], is_partial: bool,
    without: tuple[str, ...], adapter: str, given: tuple[str, ...], engine: str, master: str,
    settings: tuple[str, ...], workers: int, state: Path | None, interp: bool, why: bool,
    json_file: Path | None, junit_file: Path | None, sarif_file: Path | None, html_file: Path | None,
    violations: Path | None, baseline_file: Path | None, write_baseline: Path | None,
) -> int:  # fmt: skip
    """Check recorded traces against the spec.

    PATH is a trace file (NDJSON, .gz and .zst, too, or Parquet), a directory, a pattern, or - for what comes on
    standard input (NDJSON, or a log). Prints a verdict per run: conforms (exit 0), violates (1), inconclusive (4);
    malformed input is exit 2 with file, line and field.
    """
    if "" in paths:
        raise click.BadParameter(EMPTY, param_hint="PATH")
    if not paths and state is None:
        raise click.UsageError("Missing argument 'PATH...'.")
    files = Files(json_file, junit_file, sarif_file, html_file, violations, write_baseline)
    known = _baseline(baseline_file)
    _check_usable(violations, engine, master)
    conf = _settings(engine, settings)
    try:
        configuration = configuration_of(given)
        options = api.audit_options(
            input, profile, allow, without, adapter, configuration, forbid=forbid, partial=is_partial
        )
        api.require_state(state, input, options, workers, interp=interp)
    except api.AuditOptionError as error:
        raise click.BadParameter(str(error), param_hint=f"--{error.option}") from None
    try:
        inputs = api.survey_inputs(map(partial(_from_stdin, suffix=api.suffix_of(options)), paths), options)
    except api.AuditOptionError as error:
        raise click.BadParameter(str(error), param_hint="--adapter") from None
    protect(files.by_option(), [*paths, *inputs.files, *inputs.ignored], inputs.directories)
    if not inputs.refused:
        _note_unread(inputs)
    judge = load_check_run(interp)
    try:
        with steps("audit") as progress:
            report = api.judge_inputs(
                inputs, options, judge, engine=engine, master=master, workers=workers, conf=conf, state=state,
                progress=progress, log=note,
            )  # fmt: skip
    except api.AuditOptionError as error:
        raise click.BadParameter(str(error), param_hint=f"--{error.option}") from None
    return publish(replace(report, baseline=known), files, why=why)


def _baseline(file: Path | None) -> baseline.Baseline | None:
    """The known violations."""
    if file is None:
        return None
    try:
        return baseline.read(file)
    except baseline.BaselineError as error:
        raise click.BadParameter(str(error), param_hint="--baseline") from None


def _save_page(report: AuditReport, file: Path) -> None:
    from viewproof.refinement.reports.audit import write  # its templates take longer to load than a small audit

    write(report, file)


def _save_baseline(report: AuditReport, file: Path) -> None:
    """Write what is known, and what was found beside it."""
    found = (
        baseline.Known(v.cause, v.rule_id, v.action, f"{v.file}:{v.line}: {v.message}") for v in report.new_violations
    )
    baseline.write(file, baseline.merged(report.baseline, found))


def _settings(engine: str, given: tuple[str, ...]) -> dict[str, str]:
    """KEY=VALUE, each as key and value; refused where no Spark is used."""
    if given and engine != "spark":
        raise click.UsageError("--conf is for --engine spark")
    found = {}
    for word in given:
        key, equals, value = word.partition("=")
        if not equals or not key.startswith("spark."):
            text = f"{word!r} is not KEY=VALUE with a key of Spark's, such as spark.executor.memory=4g"
            raise click.BadParameter(text, param_hint="--conf")
        found[key] = value
    return found


def _from_stdin(path: str, suffix: str = ".ndjson") -> str:
    """The path; of `-`, that of a file with what comes on standard input, which is gone at the end."""
    if path != "-":
        return path
    folder = tempfile.mkdtemp(prefix="viewproof-")
    click.get_current_context().call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    begin = sys.stdin.buffer.read(4)
    packed = next((suffix for magic, suffix in _PACKED.items() if begin.startswith(magic)), "")
    file = Path(folder) / f"stdin{suffix}{packed}"
    with file.open("wb") as out:
        out.write(begin)
        shutil.copyfileobj(sys.stdin.buffer, out)
    return str(file)


def _check_usable(file: Path | None, engine: str, master: str) -> None:
    _check_master(engine, master)
    if file is not None and file.suffix not in table.SUFFIXES:
        raise click.BadParameter("the file's name must end in .parquet or .ndjson", param_hint="--violations")


def _check_master(engine: str, master: str) -> None:
    """Refuse a master or workers that are not used, or what Spark would refuse only after Java has started."""
    source = click.get_current_context().get_parameter_source
    if engine == "spark" and source("workers") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--workers is for --engine local; Spark's cores are in --master, such as local[4]")
    if engine == "local" and source("master") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--master is for --engine spark")
    if engine == "spark" and not _MASTER.fullmatch(master):
        known = "local, local[N], local[*], spark://HOST:PORT, sc://HOST:PORT, k8s://URL, yarn"
        raise click.BadParameter(f"{master!r} is none of {known}", param_hint="--master")


def _note_unread(inputs: Inputs) -> None:
    if inputs.ignored:
        note(f"{len(inputs.ignored)} files that are no traces are not read, the first: {inputs.ignored[0]}")
    if inputs.repeated:
        note(f"{len(inputs.repeated)} paths lead to files that are read already, the first: {inputs.repeated[0]}")


def publish(report: AuditReport, files: Files, *, why: bool = False) -> int:
    """Print the report, then write it in every form asked for; the exit code, 2 where one cannot be written."""
    closed: BrokenPipeError | None = None
    try:
        _print(report, why)
    except BrokenPipeError as error:
        closed = error
    code = report.exit_code
    writers: tuple[tuple[str, Path | None, Callable[[Path], None]], ...] = (
        ("--json", files.json, partial(save_json, report.to_dict())),
        ("--junit", files.junit, partial(junit.write, report)),
        ("--sarif", files.sarif, partial(sarif.write, report)),
        ("--html", files.html, partial(_save_page, report)),
        ("--violations", files.violations, partial(table.write_violations, report)),
        ("--write-baseline", files.write_baseline, partial(_save_baseline, report)),
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


def _print(report: AuditReport, why: bool) -> None:
    for line in text.lines(report, why=why):
        click.echo(line)
    sys.stdout.flush()
    rate = f", {report.events / report.seconds:,.0f} events/s" if report.seconds and report.events else ""
    note(f"{report.engine} engine: {report.seconds:.1f} s{rate}")
    if os.environ.get("GITHUB_ACTIONS"):
        for line in github.workflow_commands(report):
            click.echo(printable(line))
        github.write_summary(report, os.environ)
