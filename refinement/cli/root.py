"""The root of the command line: commands loaded on use, and no traceback for users."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

import click

from viewproof.refinement.cli.streams import outlive_readers
from viewproof.refinement.interrupts import held
from viewproof.refinement.reports.escape import printable
from viewproof.refinement.verdict import EXIT_ERROR, EXIT_INCONCLUSIVE

_OURS = "viewproof"
"""Errors of this package are written for users: shown without the name of their class."""

COMMANDS = {
    "audit": "viewproof.refinement.cli.audit:audit",
    "authority": "viewproof.refinement.cli.authority:authority",
    "bench": "viewproof.refinement.cli.bench:bench",
    "check": "viewproof.refinement.cli.check:check",
    "cluster": "viewproof.refinement.cli.server:cluster",
    "explore": "viewproof.refinement.cli.explore:explore",
    "diff": "viewproof.refinement.cli.diff:diff",
    "diff-audit": "viewproof.refinement.cli.diff_audit:diff_audit",
    "export": "viewproof.refinement.cli.export:export",
    "format": "viewproof.refinement.cli.server:format_data",
    "mutate": "viewproof.refinement.cli.mutate:mutate",
    "inspect": "viewproof.refinement.cli.inspect:inspect",
    "prove": "viewproof.refinement.cli.prove:prove",
    "recover": "viewproof.refinement.cli.recover:recover",
    "record": "viewproof.refinement.cli.server:record",
    "repl": "viewproof.refinement.cli.server:repl",
    "simulate": "viewproof.refinement.cli.simulate:simulate",
    "start": "viewproof.refinement.cli.start:start",
    "status": "viewproof.refinement.cli.status:status",
}
"""Command → module and attribute. A command whose module is not there is not listed."""


class VsrGroup(click.Group):
    """Loads a command's module when it is used, and turns every failure into one line and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands whose modules exist."""
        return sorted(name for name, target in COMMANDS.items() if find_spec(target.partition(":")[0]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if there is none of that name."""
        module, _, attribute = COMMANDS.get(cmd_name, "").partition(":")
        if not module or not find_spec(module):
            return None
        with held():
            command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Code of a model or an adapter that ends the program is no result."""
        try:
            return super().invoke(ctx)
        except SystemExit as error:
            text = f"code of yours ended the program (exit {error.code}): there is no result"
            raise click.ClickException(text) from error

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run, and exit with the command's code: 0, 1, 2 or 4."""
        extra["standalone_mode"] = False
        outlive_readers()
        try:
            code = super().main(args, **extra)
            sys.stdout.flush()
        except click.ClickException as error:
            error.show()
            code = EXIT_ERROR
        except (click.Abort, KeyboardInterrupt):
            click.echo("stopped", err=True)
            code = EXIT_INCONCLUSIVE
        except Exception as error:
            code = _report(error)
        sys.exit(code if isinstance(code, int) else 0)


def _report(error: Exception) -> int:
    if os.environ.get("VSR_DEBUG"):
        traceback.print_exc()
    elif isinstance(error, OSError) or type(error).__module__.partition(".")[0] == _OURS:
        click.echo("\n".join(map(printable, f"error: {error}".splitlines())), err=True)
    else:
        text = " ".join(str(error).split()) or "no message"
        click.echo(
            f"error: {type(error).__name__}: {printable(text[:500])} (VSR_DEBUG=1 shows the traceback)", err=True
        )
    return EXIT_ERROR


@click.group(cls=VsrGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="viewproof", prog_name="vsr")
def cli() -> None:
    """Viewstamped Replication: one spec, a replica, and an audit of real traces.

    Exit codes: 0 holds or conforms; 1 violation found; 2 usage or tool error; 4 inconclusive.
    """
