"""`vsr start`: one replica, as files, environment and options say."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from viewproof.impl.net.server import run_server
from viewproof.impl.net.settings import SETTINGS, Key, Setting, effective_text, server_config
from viewproof.impl.net.settings_files import resolve
from viewproof.impl.replica.features import FEATURES
from viewproof.refinement.cli.options import OutputFile, Place, json_option, protect, protect_data
from viewproof.refinement.cli.output import save_json
from viewproof.refinement.discovery import is_trace
from viewproof.refinement.verdict import EXIT_CONFORMS

_DATA: Key = ("replica", "data")
_TRACE: Key = ("trace", "file")
_FEATURES: Key = ("cluster", "features")
_TLS: Key = ("network", "tls")


def _parameter(key: Key) -> str:
    return "_".join(key)


def _type_of(key: Key, setting: Setting) -> Any:
    """What click checks of an option; the rest is checked with where the value came from."""
    low, high = setting.bounds
    special: dict[Key, Any] = {
        _TRACE: OutputFile(made=True),
        _FEATURES: click.Choice(sorted(FEATURES.values())),
        _TLS: Place(file_okay=False, exists=True),
    }
    ranges: dict[type, Any] = {int: click.IntRange(int(low), int(high)), float: click.FloatRange(low, high)}
    return special.get(key) or ranges.get(setting.kind) or str


def _settings_options(command: Callable[..., int]) -> Callable[..., int]:
    """An option for each setting. None of them has a default: that is the setting's."""
    for key, setting in reversed(list(SETTINGS.items())):
        if key == _DATA:
            continue
        default = ",".join(setting.default) if setting.kind is list and setting.default else setting.default
        shown = f" [default: {default}]" if default else ""
        text = f"{setting.text[0].upper()}{setting.text[1:]}.{shown}"
        flag: dict[str, Any] = {"is_flag": True} if setting.kind is bool else {"type": _type_of(key, setting)}
        command = click.option(
            setting.option, _parameter(key), default=None, multiple=key == _FEATURES, help=text, **flag
        )(command)
    return click.argument(_parameter(_DATA), metavar="[DIRECTORY]", required=False)(command)


@click.command()
@_settings_options
@click.option(
    "--config",
    "config_file",
    type=Place(dir_okay=False, exists=True),
    help="TOML file with sections cluster, replica, namespace, network, trace; it may include others.",
)
@click.option("--show-config", is_flag=True, help="Print the configuration in effect, and where it comes from; end.")
@click.option("--accept-loss", is_flag=True, help="Start without messages that are lost, if there is no other replica.")
@json_option
def start(config_file: Path | None, show_config: bool, accept_loss: bool, json_file: Path | None, **given: Any) -> int:
    """Run one replica, of each group, until SIGTERM or Ctrl-C.

    Each setting is an option, a line of the file given with --config, or a variable VSR_SECTION_NAME of the
    environment; options win, then the environment.

    With several groups each has a trace of its own: DIR/RUN.GROUP/FILE for --trace DIR/RUN/FILE.
    """
    named = {key: given[_parameter(key)] for key in SETTINGS}
    options = {key: str(value) if isinstance(value, Path) else value for key, value in named.items()}
    options[_FEATURES] = list(options[_FEATURES]) or None
    values = resolve(config_file, options)
    config = server_config(values, accept_loss=accept_loss)
    if show_config:
        click.echo(effective_text(values), nl=False)
        return EXIT_CONFORMS
    trace = config.trace
    protect({"--trace": trace, "--json": json_file}, files=[] if config_file is None else [config_file])
    protect_data("--json", json_file, [config.data])
    protect_data("--trace", trace if trace is not None and not is_trace(trace.name) else None, [config.data])
    pattern = f"%(asctime)s replica {config.replica} %(levelname)s %(message)s"
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=pattern)
    run_server(config)
    result = {"format": "viewproof.start/1", "directory": str(config.data), "replica": config.replica}
    save_json({**result, "exit_code": EXIT_CONFORMS}, json_file)
    return EXIT_CONFORMS
