"""Render a story as HTML: everything inline, nothing loaded, all texts escaped."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from viewproof.refinement.reports.behaviour import diagram
from viewproof.refinement.reports.behaviour.scene import Scene, scene_of
from viewproof.refinement.reports.escape import printable
from viewproof.refinement.reports.files import write_text
from viewproof.spec.engines.story import Story, to_json

_PACKAGE = "viewproof.refinement.reports.behaviour"
LOADER = PackageLoader(_PACKAGE, ".")
"""Finds the templates of this package, for pages that take some of them."""
PICTURE_HEAD = 70
"""What a picture has above and below the drawing: names of lanes, and how it ends."""


def render(story: Story, document: dict[str, Any] | None = None) -> str:
    """The page; `document` is the story's JSON if it is at hand."""
    style, script = page_files()
    told = document or to_json(story)
    return _fill("page.html.j2", scene_of(story), story=story, document=told, style=style, script=script)


def page_files() -> tuple[Markup, Markup]:
    """The style and the script of the page, for one that shows a behaviour among other things."""
    return _own("page.css"), _own("page.js")


def render_drawing(scene: Scene) -> str:
    """The sequence diagram alone, for a page that is there already."""
    return _fill("diagram.html.j2", scene)


def write_picture(story: Story, file: Path) -> None:
    """Write the diagram as an SVG file that stands alone, for a document: light or dark, as its reader's page is."""
    ending = f"{story.ending.id}: {story.ending.title}" if story.ending else ""
    verb = "breaks" if story.ending and story.ending.broken else "reaches"
    title = f"{len(story.steps)} steps of {story.spec.name}" + (f": it {verb} {ending}" if ending else "")
    scene, below = scene_of(story), f"{verb} {ending}"
    picture = _fill("picture.svg.j2", scene, story=story, title=title, ending=below, head=PICTURE_HEAD)
    write_text(file, picture)


def _fill(template: str, scene: Scene, **more: Any) -> str:
    environment = Environment(
        loader=LOADER,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False, "separators": (",", ":")}
    return environment.get_template(template).render(
        scene=scene, drawing=diagram.draw(scene), box_height=diagram.BOX_HEIGHT, **more
    )


def write(story: Story, file: Path, document: dict[str, Any] | None = None) -> None:
    """Write the page."""
    write_text(file, render(story, document))


def _own(name: str) -> Markup:
    """A file of this package, as it stands: it is ours, not data."""
    return Markup(files(_PACKAGE).joinpath(name).read_text(encoding="utf-8"))
