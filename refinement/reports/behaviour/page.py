"""Render a story as HTML: everything inline, nothing loaded, all texts escaped."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from viewproof.refinement.reports.behaviour import diagram
from viewproof.spec.engines.story import Story, to_json

_PACKAGE = "viewproof.refinement.reports.behaviour"


def render(story: Story, document: dict[str, Any] | None = None) -> str:
    """The page; `document` is the story's JSON if it is at hand."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False, "separators": (",", ":")}
    return environment.get_template("page.html.j2").render(
        story=story,
        drawing=diagram.draw(story),
        document=document or to_json(story),
        style=_own("page.css"),
        script=_own("page.js"),
        box_height=diagram.BOX_HEIGHT,
    )


def write(story: Story, file: Path, document: dict[str, Any] | None = None) -> None:
    """Write the page."""
    file.write_text(render(story, document), encoding="utf-8")


def _own(name: str) -> Markup:
    """A file of this package, as it stands: it is ours, not data."""
    return Markup(files(_PACKAGE).joinpath(name).read_text(encoding="utf-8"))
