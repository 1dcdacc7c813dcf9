"""`vsr explore TRACE`: a page on which one looks at a recorded run event by event."""

from __future__ import annotations

import signal
import webbrowser
from collections.abc import Callable

import click

from viewproof.api.audit import INPUTS, AuditOptionError
from viewproof.api.trace import TraceError, record_run
from viewproof.refinement.cli.options import configuration_of
from viewproof.refinement.cli.output import note
from viewproof.refinement.explorer import Server, Subject, Trace, serve


def page_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a page of this machine."""
    opens = click.option(
        "--open/--no-open", "opens", default=True, help="Open the page in a browser.", show_default=True
    )
    port = click.option(
        "--port", type=click.IntRange(0, 65535), default=0, help="Port of the page.  [default: a free one]"
    )
    return port(opens(command))


def show(subject: Subject | Trace, port: int, opens: bool) -> int:
    """Serve the page until interrupted."""
    try:
        server = Server(subject, port)
    except OSError as problem:
        raise click.UsageError(f"port {port} cannot be listened on: {problem.strerror}") from None
    click.echo(server.address)
    note("Ctrl-C ends it")
    if opens:
        webbrowser.open(server.address)
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.default_int_handler)
    serve(server)
    return 0


@click.command("explore")
@click.argument("paths", nargs=-1, required=True, metavar="TRACE...")
@click.option("--run", default="", help="The run, by its id.  [default: the first that violates, else the first]")
@click.option("--input", type=click.Choice(INPUTS), default="native", show_default=True, help="Format.")
@click.option("--adapter", default="", metavar="NAME", help="Of the logs, as of vsr audit (docs/adapters.md).")
@click.option("--allow", multiple=True, metavar="FAULT", help="Permit a known deviation.")
@click.option("--set", "given", multiple=True, metavar="COLUMN=N", help="Configuration that no boot of a run shows.")
@page_options
def explore_trace(
    paths: tuple[str, ...], run: str, input: str, adapter: str, allow: tuple[str, ...], given: tuple[str, ...],
    port: int, opens: bool,
) -> int:  # fmt: skip
    """Look at a recorded run event by event, on a page of this machine (127.0.0.1).

    The page shows what each event stood for, on what grounds, the state of each replica after it and what is not known;
    of actions that are not enabled the guard in the way, with its values. From any event on one may go on with the
    model's actions ("what if"). The run up to an event is saved as a page or as a scenario test. Ctrl-C ends it.
    """
    try:
        verdict, recording = record_run(
            *paths, run=run, input=input, adapter=adapter, allow=allow, configuration=configuration_of(given)
        )
    except AuditOptionError as error:
        raise click.BadParameter(str(error), param_hint=f"--{error.option}") from None
    except TraceError as error:
        raise click.UsageError(str(error)) from None
    note(f"run {verdict.run_id}: {verdict.verdict}, {recording.total:,} events replayed")
    return show(Trace(verdict, recording), port, opens)
