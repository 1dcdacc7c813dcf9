"""`vsr export`: a bounded model of the specification in the language of another tool."""

from __future__ import annotations

from pathlib import Path

import click

from viewproof.refinement.cli.export_behaviour import html, itf, state_graph, svg
from viewproof.refinement.cli.focused import Focused
from viewproof.refinement.cli.models import bounded_model, model_options
from viewproof.refinement.cli.options import Place, json_option, protect
from viewproof.refinement.cli.output import note, save_json
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_ERROR
from viewproof.spec.engines import tla as engine


class Formats(click.Group):
    """The formats; one that is not there refuses by name."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a format, or one that refuses."""
        return super().get_command(ctx, cmd_name) or _refusal(cmd_name)


@click.group(cls=Formats)
def export() -> None:
    """Export a bounded model, a behaviour or a state graph for other tools: `vsr export tla core --out DIR`."""


for _command in (html, itf, state_graph, svg):
    export.add_command(_command)


@export.command(cls=Focused, main=("replicas", "views", "ops", "faults", "invariants", "out", "json_file"))
@model_options
@click.option("--out", type=Place(file_okay=False), required=True, help="Directory for MODEL.tla and .cfg.")
@json_option
def tla(
    name: str,
    out: Path,
    faults: tuple[str, ...],
    invariants: tuple[str, ...],
    json_file: Path | None,
    replicas: int | None,
    **sizes: int | None,
) -> int:
    """Write a TLA+ module and a configuration for TLC, with every invariant of the model.

    Sizes that are not given are the model's own, or, with one --fault, those in which it is found quickly. docs/tla.md
    says how to run TLC, and what it agrees on with vsr check.
    """
    spec, text = bounded_model(name, replicas, faults, sizes)
    module = engine.export(spec, note=f"{text}.", invariants=invariants or None)
    if json_file is not None and json_file.suffix in (".tla", ".cfg"):
        protect({"--json": json_file}, files=[out / f"{module.name}{suffix}" for suffix in (".tla", ".cfg")])
    paths = [str(path) for path in module.write(out)]
    for path in paths:
        click.echo(path)
    answer = {"format": "viewproof.export/1", "exit_code": EXIT_CONFORMS, "faults": list(faults), "sizes": text}
    save_json({**answer, "model": name, "files": paths, "properties": module.properties}, json_file)
    return EXIT_CONFORMS


def _refusal(format: str) -> click.Command:
    @click.command(format, context_settings={"ignore_unknown_options": True})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @json_option
    def refuse(arguments: tuple[str, ...], json_file: Path | None) -> int:
        """A format that is not there."""
        known = ", ".join(sorted(export.commands))
        text = f"vsr export is not available in this version for {format}; there is: {known}"
        note(f"error: {text}")
        save_json({"format": "viewproof.export/1", "exit_code": EXIT_ERROR, "error": text}, json_file)
        return EXIT_ERROR

    return refuse
