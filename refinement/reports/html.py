"""The report as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from refinement.reports.escape import printable
from refinement.verdict import AuditReport


def write(report: AuditReport, file: Path) -> None:
    """Write the page; everything from the traces is escaped, control characters are shown as such."""
    environment = Environment(
        loader=PackageLoader("refinement", "reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    file.write_text(environment.get_template("audit.html.j2").render(report=report), encoding="utf-8")
