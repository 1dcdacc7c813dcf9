"""Commands that documents show are commands that there are: their names, subcommands and options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from viewproof.refinement.cli.explore_trace import explore_trace
from viewproof.refinement.cli.root import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "traces/README.md"])
COMMAND = re.compile(r"(?<![\w./-])vsr ([a-z-]+(?: [^`\n]*)?)")
ENDS = re.compile(r"\s#|&&|\||;|`|, `| \(|\)$")
"""Where a command ends on its line: a comment, another command, the text around it."""


def shown(page: Path) -> Iterator[str]:
    """The commands of a page, in code of any kind, each up to where it ends."""
    for code in re.findall(r"`[^`\n]*\bvsr [^`\n]*`|^(?: {4}|vsr ).*$", page.read_text(encoding="utf-8"), re.MULTILINE):
        for found in COMMAND.findall(code):
            yield ENDS.split(found)[0]


def unknown(words: list[str]) -> list[str]:
    """Of a command's words those that it does not have."""
    context = click.Context(cli)
    if words[0] in {"--version", "--help"}:
        return []
    command = cli.get_command(context, words[0])
    if command is None:
        return words[:1]
    if isinstance(command, click.Group) and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
        words, command = words[1:], command.commands.get(words[1])
        if command is None:
            return words[:1]
    if isinstance(command, click.Group):
        return []
    params = [*command.params, *(explore_trace.params if words[0] == "explore" else ())]
    known = {name for param in params for name in (*param.opts, *param.secondary_opts)}
    known |= {"--help", "-h", "--help-all"}
    return [word for word in words[1:] if word.startswith("--") and word.partition("=")[0] not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_are_shown_are_there(page: Path) -> None:
    lost = {text: words for text in shown(page) if (words := unknown(text.split()))}
    assert lost == {}


def test_there_are_commands_to_look_at_and_a_wrong_one_is_noticed() -> None:
    assert sum(1 for page in PAGES for _ in shown(page)) > 200
    assert unknown(["chek", "core"]) == ["chek"]
    assert unknown(["check", "core", "--view", "2"]) == ["--view"]
    assert unknown(["export", "itf", "core", "--outt", "x"]) == ["--outt"]
