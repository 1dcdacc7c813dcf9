"""A fleet of runs as one self-contained HTML page: verdicts, causes, missing evidence, what was exercised, a trend.

It shows tables that were counted elsewhere (`refinement.spark.fleet`), so it is as long for a million runs as for ten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from viewproof.refinement.reports.behaviour.page import LOADER, page_files
from viewproof.refinement.reports.escape import printable
from viewproof.refinement.reports.text import number

_ORDER = ("conforms", "inconclusive", "violates", "error", "open")


@dataclass(frozen=True)
class Cause:
    """A rule that was broken: in how many runs, some of them, and the violation of the first (its columns).

    `stories` are the violations of the first few, by run: their names link to them.
    """

    runs: int
    listed: tuple[str, ...]
    one: Mapping[str, Any]
    stories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Share:
    """Of one value of a column: how many runs had which verdict."""

    value: str
    runs: Mapping[str, int]

    def parts(self) -> list[tuple[str, int, float]]:
        """Verdict, runs, and percent of all runs of this value."""
        total = sum(self.runs.values()) or 1
        return [(name, self.runs[name], 100 * self.runs[name] / total) for name in _ORDER if self.runs.get(name)]


@dataclass(frozen=True)
class Fleet:
    """What the page shows: `missing` has (runs, one of them, what is missing there), `coverage` (action, steps, runs),
    `guards` those that were not known to hold in all steps (action, guard, place, steps in which it held, in which it
    was open, runs that it refused), `idle` the actions that no run took, `shares` the verdicts by the values of the
    column `by`.
    """

    runs: Mapping[str, int]
    events: int
    causes: tuple[Cause, ...] = ()
    missing: tuple[tuple[int, str, str], ...] = ()
    coverage: tuple[tuple[str, int, int], ...] = ()
    guards: tuple[tuple[str, str, str, int, int, int], ...] = ()
    idle: tuple[str, ...] = ()
    by: str = ""
    shares: tuple[Share, ...] = ()

    @property
    def verdict(self) -> str:
        """That of the worst run."""
        worst = ("error", "violates", "inconclusive", "open", "conforms")
        return next((name for name in worst if self.runs.get(name)), "inconclusive")


def render(fleet: Fleet) -> str:
    """The page; everything from the traces is escaped, control characters are shown as such."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("viewproof.refinement", "reports/audit"), LOADER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    style, _ = page_files()
    folder = Path(__file__).parent / "audit"
    own = Markup((folder / "audit.css").read_text(encoding="utf-8"))
    total = sum(fleet.runs.values())
    steps = max((steps for _, steps, _ in fleet.coverage), default=1)
    return environment.get_template("fleet.html.j2").render(
        fleet=fleet, total=total, all=Share("all runs", fleet.runs), steps_max=steps, number=number, style=style + own
    )


def write(fleet: Fleet, file: Path) -> None:
    """Write the page."""
    file.write_text(render(fleet), encoding="utf-8")
