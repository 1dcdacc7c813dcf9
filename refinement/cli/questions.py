"""Which options apply to which question of a command: one that does not is refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.core import ParameterSource


def given(ctx: click.Context) -> set[str]:
    """The parameters that the command line gives."""
    return {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def refuse_others(ctx: click.Context, question: str, table: Mapping[str, frozenset[str]]) -> None:
    """Refuse a given option that some questions of the table know, and this one does not. Raises `UsageError`."""
    spelled = {param.name: param.opts[0] for param in ctx.command.params}
    for name in sorted(given(ctx)):
        others = [other for other, names in table.items() if name in names]
        if others and question not in others:
            raise click.UsageError(f"{spelled[name]} does not apply to {question}; it is for {' and '.join(others)}")
