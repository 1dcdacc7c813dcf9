"""The report of an audit as one self-contained HTML file.

Causes come first, however many runs show them. Of each a few runs are told step by step, within a bound for the whole
page; those beyond it are listed with their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from os.path import relpath
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from viewproof.refinement.reports.audit.causes import Cause, causes, reasons
from viewproof.refinement.reports.audit.telling import system_of, tell
from viewproof.refinement.reports.audit.timeline import Plan, plan
from viewproof.refinement.reports.behaviour import render_drawing
from viewproof.refinement.reports.behaviour.page import LOADER, page_files
from viewproof.refinement.reports.escape import printable
from viewproof.refinement.reports.text import coverage_rows, how_far, number
from viewproof.refinement.verdict import AuditReport, RunVerdict, Violation

STORIES_MAX = 60
"""Violations of a page that are told step by step: first one of each cause, then a second one, and so on."""
STORIES_PER_CAUSE = 3
LISTED_MAX = 100
"""Runs listed of each cause, and of each kind of missing evidence."""
RUNS_MAX = 3_000
"""Rows of the table of runs; those that do not conform come first."""
TIMELINES_MAX = 3
"""Timelines shown of each kind of missing evidence."""


@dataclass(frozen=True)
class Told:
    """A violation of which the page holds the story."""

    number: int
    run: RunVerdict
    violation: Violation
    drawing: str
    document: dict[str, Any]
    timeline: Plan | None


def write(report: AuditReport, file: Path) -> None:
    """Write the page; everything from the traces is escaped, control characters are shown as such."""
    file.write_text(render(report, file.parent), encoding="utf-8")


def render(report: AuditReport, folder: Path) -> str:
    """The page, as it will lie in that folder."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("viewproof.refinement", "reports/audit"), LOADER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters["id"] = id
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False, "separators": (",", ":")}
    style, script = page_files()
    found = causes(report)
    told = _told(report, found, folder)
    runs = sorted(report.verdicts, key=lambda run: run.verdict == "conforms")
    return environment.get_template("audit.html.j2").render(
        report=report,
        causes=found,
        told=told,
        number_of={(one.run.run_id, id(one.violation)): one.number for one in told},
        reasons=reasons(report.verdicts),
        runs=runs[:RUNS_MAX],
        runs_more=len(runs) - RUNS_MAX,
        rows=coverage_rows(report),
        listed=LISTED_MAX,
        timelines=TIMELINES_MAX,
        number=number,
        how_far=how_far,
        plan=plan,
        style=style + _own("audit.css"),
        script=script,
        own_script=_own("audit.js"),
    )


def _told(report: AuditReport, found: list[Cause], folder: Path) -> list[Told]:
    """The stories of the page: one of each cause, then a second one, and so on."""
    system = system_of(report.options.adapter)
    told: list[Told] = []
    for nth in range(STORIES_PER_CAUSE):
        for cause in found:
            if nth < len(cause.found) and len(told) < STORIES_MAX:
                run, violation = cause.found[nth]
                telling = tell(run, violation, system)
                document = _printable(_linked(telling.document, folder))
                drawing = render_drawing(telling.scene)
                told.append(Told(len(told) + 1, run, violation, drawing, document, plan(run)))
    return told


def _linked(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Each step's file as a link from the page, where the file is there."""
    links: dict[str, str] = {}
    for step in document["steps"]:
        source = step["source"]
        name = source["file"]
        if name not in links:
            links[name] = quote(relpath(name, folder)) if name and Path(name).is_file() else ""
        source["href"] = links[name]
    return document


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _printable(one) for key, one in value.items()}
    return [_printable(one) for one in value] if isinstance(value, (list, tuple)) else value


def _own(name: str) -> Markup:
    return Markup(files("viewproof.refinement").joinpath("reports/audit", name).read_text(encoding="utf-8"))
