"""The settings of a server process: what there is, its bounds and defaults, and the configuration that they make.

A setting has a section and a name, as in a file; `impl.net.settings_files` reads files, environment and options. A
value comes with its origin, and every refusal names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewproof.impl.groups.group import parse_groups
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.interface.ranges import COUNTER_MAX
from viewproof.impl.machine.namespaces import NAMESPACE_BITS, NamespaceLayout, bits_required
from viewproof.impl.machine.partition_log import HEAD_BYTES, RECORD_BYTES, SEGMENT_BYTES
from viewproof.impl.net.server_config import (
    CHECKPOINT_INTERVAL,
    SCRUB_BYTES_PER_SECOND,
    ServerConfig,
    ServerError,
    parse_addresses,
)
from viewproof.impl.replica.features import parse_features

__all__ = ["SETTINGS", "Key", "Setting", "SettingsError", "Value", "effective_text", "layout_of", "server_config"]

Key = tuple[str, str]
"""Section and name."""


class SettingsError(ConfigurationError):
    """A setting is missing, unknown or out of its bounds; the text names it, where it came from, what was expected."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it was given, and where: a file and its line, the environment, an option, or the default."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `kind` is int, float, bool, str, or list (of str); `bounds` are of a number, both included.

    `fixed`: never changed once a data directory was started with it. `option`: that of `vsr start`.
    """

    kind: type
    default: Any
    text: str
    option: str
    bounds: tuple[float, float] = (0, COUNTER_MAX)
    fixed: bool = False

    @property
    def expected(self) -> str:
        """What a value must be."""
        low, high = self.bounds
        numbers = {int: f"a whole number in {low}..{high}", float: f"a number in {low}..{high}"}
        others = {bool: "true or false", str: "a text that is not empty", list: "a list of texts"}
        return numbers.get(self.kind) or others[self.kind]

    def read(self, given: Any) -> Any:
        """The value, from a file or as text. Raises ValueError if it is none of this kind, or out of bounds."""
        value: Any = given
        if isinstance(value, str) and self.kind is not str:
            value = _READERS[self.kind](value)
        if self.kind is float and type(value) is int:
            value = float(value)
        if type(value) is not self.kind or not self._is_within(value):
            raise ValueError(value)
        return value

    def _is_within(self, value: Any) -> bool:
        if self.kind in (int, float):
            return math.isfinite(value) and self.bounds[0] <= value <= self.bounds[1]
        return all(type(each) is str for each in value) if self.kind is list else value != ""


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_READERS: Mapping[type, Callable[[str], Any]] = {int: int, float: float, bool: _bool, list: _list}

PARTS_MAX = 1 << NAMESPACE_BITS - 2
"""Of streams, topics or partitions: each of the other two has one bit at least."""

SETTINGS: Mapping[Key, Setting] = {
    ("replica", "data"): Setting(str, None, "data directory, formatted before", "DIRECTORY"),
    ("replica", "index"): Setting(int, None, "index of this replica", "--replica", (0, 255)),
    ("cluster", "addresses"): Setting(list, None, "HOST:PORT of all replicas, by index", "--addresses"),
    ("cluster", "id"): Setting(int, None, "cluster that the data must be of", "--cluster", (0, (1 << 64) - 1)),
    ("cluster", "groups"): Setting(list, ["single"], "consensus groups of every process", "--groups"),
    ("cluster", "checkpoint_interval"): Setting(
        int, CHECKPOINT_INTERVAL, "ops between two checkpoints, 0: none", "--checkpoint-interval"
    ),
    ("cluster", "segment_bytes"): Setting(
        int,
        SEGMENT_BYTES,
        "size at which segments of messages roll",
        "--segment-bytes",
        (HEAD_BYTES + RECORD_BYTES, (1 << 32) - 1),
        fixed=True,
    ),
    ("cluster", "features"): Setting(list, [], "features that this member supports", "--feature"),
    ("namespace", "max_streams"): Setting(int, 1 << 20, "streams", "--max-streams", (1, PARTS_MAX), fixed=True),
    ("namespace", "max_topics"): Setting(
        int, 1 << 20, "topics of a stream", "--max-topics", (1, PARTS_MAX), fixed=True
    ),
    ("namespace", "max_partitions"): Setting(
        int, 1 << 24, "partitions of a topic", "--max-partitions", (1, PARTS_MAX), fixed=True
    ),
    ("replica", "tick_seconds"): Setting(float, 0.01, "seconds of a tick", "--tick", (0.001, 60.0)),
    ("replica", "pipeline"): Setting(
        int, 256, "entries prepared and not committed, at most", "--pipeline", (1, 1 << 16)
    ),
    ("replica", "scrub_bytes"): Setting(
        int,
        SCRUB_BYTES_PER_SECOND,
        "bytes a second of segments on the disk that are read to see if they are right, 0: none",
        "--scrub-bytes",
        (0, 1 << 32),
    ),
    ("network", "clients_max"): Setting(
        int, None, "connections of clients; what open files allow unless given", "--clients-max", (1, 1 << 20)
    ),
    ("network", "tls"): Setting(str, None, "directory of certificate, key and authority", "--tls"),
    ("network", "without_tls"): Setting(bool, False, "serve other machines without TLS", "--without-tls"),
    ("network", "metrics_port"): Setting(
        int, None, "where this machine may read what is measured", "--metrics-port", (1, 65535)
    ),
    ("trace", "file"): Setting(str, None, "trace file, continued if it exists", "--trace"),
    ("trace", "run"): Setting(str, "run", "run id in the trace", "--run"),
}
"""Every setting. Where the default is None it is optional, but for data, index and addresses."""

_REQUIRED: tuple[Key, ...] = (("replica", "data"), ("replica", "index"), ("cluster", "addresses"))


def environment_name(key: Key) -> str:
    """The variable of the environment that gives a setting."""
    return f"VSR_{key[0]}_{key[1]}".upper()


def server_config(values: Mapping[Key, Value], **extra: Any) -> ServerConfig:
    """The configuration that valid values make; `extra` are fields that are no settings. Raises SettingsError."""
    for key in _REQUIRED:
        if values[key].value is None:
            raise SettingsError(
                f"{'.'.join(key)} ({SETTINGS[key].text}) is missing: it comes from a file, from the environment "
                f"({environment_name(key)}) or from {SETTINGS[key].option}"
            )

    def of(section: str, name: str) -> Any:
        return values[section, name].value

    def made(key: Key, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except (ConfigurationError, ServerError) as error:
            raise SettingsError(f"{'.'.join(key)} ({values[key].origin}): {error}") from error

    layout = layout_of(values)
    addresses = made(("cluster", "addresses"), lambda: parse_addresses(",".join(of("cluster", "addresses"))))
    index = of("replica", "index")
    if index >= len(addresses):
        raise SettingsError(
            f"replica.index ({values['replica', 'index'].origin}): {index}, but there are {len(addresses)} addresses "
            f"({values['cluster', 'addresses'].origin}): expected 0..{len(addresses) - 1}"
        )
    return ServerConfig(
        data=Path(of("replica", "data")),
        replica=index,
        addresses=addresses,
        cluster=of("cluster", "id"),
        trace=None if of("trace", "file") is None else Path(of("trace", "file")),
        run=of("trace", "run"),
        tick_seconds=of("replica", "tick_seconds"),
        pipeline_max=of("replica", "pipeline"),
        groups=made(("cluster", "groups"), lambda: parse_groups(",".join(of("cluster", "groups")), layout)),
        supports=made(("cluster", "features"), lambda: parse_features(of("cluster", "features"))),
        checkpoint_interval=of("cluster", "checkpoint_interval"),
        segment_bytes=of("cluster", "segment_bytes"),
        scrub_bytes_per_second=of("replica", "scrub_bytes"),
        layout=layout,
        clients_max=of("network", "clients_max"),
        tls=None if of("network", "tls") is None else Path(of("network", "tls")),
        without_tls=of("network", "without_tls"),
        metrics_port=of("network", "metrics_port"),
        values=values,
        **extra,
    )


def layout_of(values: Mapping[Key, Value]) -> NamespaceLayout:
    """The widths that the numbers of streams, topics and partitions need. Raises SettingsError above 64 bits in all."""
    parts = ("max_streams", "max_topics", "max_partitions")
    given = [values["namespace", name] for name in parts]
    widths = [bits_required(each.value - 1) for each in given]
    if sum(widths) > NAMESPACE_BITS:
        told = "; ".join(
            f"{name} = {each.value} ({each.origin}) needs {width}"
            for name, each, width in zip(parts, given, widths, strict=True)
        )
        raise SettingsError(f"namespace: {told} bits: {sum(widths)}, expected at most {NAMESPACE_BITS} in all")
    return NamespaceLayout(*widths)


def effective_text(values: Mapping[Key, Value]) -> str:
    """All settings as a file, each with where it came from; what is not set is a comment."""
    lines = [
        "# The configuration in effect, as `vsr start` found it.",
        "# Written at every start; only what may never change is read.",
    ]
    for section in dict.fromkeys(section for section, _ in SETTINGS):
        lines += ["", f"[{section}]"]
        for (of_section, name), setting in SETTINGS.items():
            if of_section == section:
                value = values[section, name]
                origin = f"  # {value.origin}; {setting.text}"
                given = f"# {name} is not set" if value.value is None else f"{name} = {_toml(value.value)}"
                lines.append(given + origin)
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(f"\\u{ord(each):04x}" if ord(each) < 32 else each for each in escaped) + '"'
    return str(value)
