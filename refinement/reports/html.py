"""The report as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from viewproof.refinement.reports.escape import printable
from viewproof.refinement.reports.text import coverage_rows, how_far, number
from viewproof.refinement.verdict import AuditReport


def write(report: AuditReport, file: Path) -> None:
    """Write the page; everything from the traces is escaped, control characters are shown as such."""
    environment = Environment(
        loader=PackageLoader("viewproof.refinement", "reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    page = environment.get_template("audit.html.j2").render(
        report=report, rows=coverage_rows(report), number=number, how_far=how_far
    )
    file.write_text(page, encoding="utf-8")
