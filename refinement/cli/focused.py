"""A command with many options: `--help` shows on one screen those that most need, `--help-all` shows every one."""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from typing import Any

import click

ALL = "viewproof.help_all"


class Focused(click.Command):
    """A command whose `--help` explains the options named in `main` and only lists the others."""

    def __init__(self, *args: Any, main: Collection[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._main = frozenset(main)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own, and `--help-all`."""
        every = click.Option(
            ["--help-all"], is_flag=True, expose_value=False, is_eager=True, callback=_show_all,
            help="Show every option and exit.",
        )  # fmt: skip
        return [*super().get_params(ctx), every]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options that most need, with what they do; of the others only the names."""
        if ctx.meta.get(ALL):
            super().format_options(ctx, formatter)
            return
        rows, names = [], []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None or not isinstance(param, click.Option):
                continue
            if param.name in self._main or {"--help", "--help-all"} & set(param.opts):
                rows.append((_shortened(param, record[0]), record[1]))
            else:
                names.append(param.opts[0])
        with formatter.section("Options"):
            formatter.write_dl(rows)
        with formatter.section("More, explained by --help-all"):
            for line in textwrap.wrap(" ".join(names), formatter.width - 4, break_on_hyphens=False):
                formatter.write_text(line)


def _shortened(param: click.Option, shown: str) -> str:
    """The option with a word in place of a long list of choices."""
    known = isinstance(param.type, click.Choice) and len(param.type.choices) > 4
    return f"{param.opts[0]} NAME" if known else shown.replace("INTEGER RANGE", "N")


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
