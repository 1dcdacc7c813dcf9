"""A behaviour for a reader: the HTML page and why-not, for `vsr check` and `vsr export`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from viewproof.refinement.cli.options import OutputFile
from viewproof.refinement.cli.output import note
from viewproof.refinement.reports import behaviour as page
from viewproof.refinement.reports.behaviour import tell
from viewproof.spec.engines import story
from viewproof.spec.lang import Spec, SpecError

__all__ = [
    "answer_questions", "answer_what_can_be", "parse_questions", "require_questions", "story_options", "tell",
    "write_page",
]  # fmt: skip

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    click.option("--html", type=OutputFile(), help="Write the behaviour as a page with a sequence diagram."),
    click.option(
        "--why-not",
        "why_not",
        multiple=True,
        metavar="ACTION[:ARGS]@STEP",
        help="Why is ACTION (with r=1,v=2 …) not enabled after STEP steps of the behaviour? May be repeated.",
    ),
)


def story_options(command: Command) -> Command:
    """Add --html and --why-not."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def parse_questions(spec: Spec, options: dict[str, Any]) -> list[story.Question]:
    """The questions of --why-not; one that cannot be understood is an error before any search."""
    return [story.parse_question(spec, text) for text in options["why_not"]]


def require_questions(specs: Sequence[Spec], options: dict[str, Any]) -> None:
    """A question of --why-not that can be understood in none of these instances is an error before any search."""
    for text in options["why_not"]:
        problems: list[SpecError] = []
        for spec in sorted(specs, key=lambda spec: len(spec.actions)):
            try:
                story.parse_question(spec, text)
            except SpecError as problem:
                problems.append(problem)
        if len(problems) == len(specs):
            raise problems[-1]


def answer_what_can_be(told: story.Story, options: dict[str, Any]) -> dict[str, Any]:
    """As `answer_questions`, of those that make sense in this instance and this behaviour; of the others a note."""
    asked = []
    for text in options["why_not"]:
        try:
            question = story.parse_question(told.spec, text)
            told.require_step(question.step)
        except SpecError as problem:
            note(f"--why-not {text}: {problem} ({told.about})")
        else:
            asked.append(question)
    return answer_questions(told, asked)


def write_page(told: story.Story, html: Path | None) -> None:
    """Write the page, if it was asked for and there is a behaviour."""
    if html is not None and told.steps:
        page.write(told, html)
        note(f"page: {html}")
    elif html is not None:
        note(f"there is no behaviour to show; {html} was not written")


def answer_questions(told: story.Story, asked: Iterable[story.Question]) -> dict[str, Any]:
    """Print the answers to --why-not; what there is to say of them in the command's JSON."""
    answers = [(q, told.why_not(q.step, q.action, q.args)) for q in asked]
    for question, reasons in answers:
        click.echo(f"why not {question.action} after step {question.step}:")
        for reason in reasons:
            click.echo(f"  {reason.text()}")
    if not answers:
        return {}
    return {"why_not": [{"step": q.step, "answers": [r.to_json() for r in reasons]} for q, reasons in answers]}
