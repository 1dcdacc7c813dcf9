"""Commands of the contract that are not there yet: they refuse, by name, with exit code 2."""

from __future__ import annotations

from pathlib import Path

import click

from refinement.cli.output import json_option, note, save_json
from refinement.verdict import EXIT_ERROR

_LOOSE = {"ignore_unknown_options": True}


def _refuse(command: str, json_file: Path | None) -> int:
    text = f"vsr {command} is not available in this version; vsr check searches all states of a bounded model"
    note(f"error: {text}")
    save_json({"command": command, "verdict": "error", "exit_code": EXIT_ERROR, "error": text}, json_file)
    return EXIT_ERROR


@click.command(context_settings=_LOOSE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@json_option
def prove(arguments: tuple[str, ...], json_file: Path | None) -> int:
    """Inductive and bounded proofs (not available in this version)."""
    return _refuse("prove", json_file)
