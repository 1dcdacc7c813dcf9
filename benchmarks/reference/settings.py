"""The page of the settings of a server."""

from __future__ import annotations

from typing import Any

from benchmarks.reference.text import wrapped
from viewproof.impl.net.settings import SETTINGS, Setting, environment_name

HEAD = """# Settings of a server

What `vsr start` knows, from the declarations in `impl/net/settings.py`. `python -m benchmarks.reference --write
docs/reference` makes this page.

A setting comes from a file (`--config FILE`, TOML: a table for each section), from the environment, or from an option;
the later of these wins. `vsr start --show-config` prints all of them, and where each came from. See
[a cluster](../cluster.md).

"""


def page() -> str:
    """The document."""
    parts = [HEAD]
    for section in dict.fromkeys(section for section, _ in SETTINGS):
        parts.append(f"## [{section}]\n")
        for (of, name), setting in SETTINGS.items():
            if of == section:
                parts.append(_entry((of, name), setting))
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _entry(key: tuple[str, str], setting: Setting) -> str:
    fixed = " It never changes once a data directory was started with it." if setting.fixed else ""
    default = "no default" if setting.default is None else f"default {_toml(setting.default)}"
    given = f"`{setting.option}`, `{environment_name(key)}`"
    said = f"{setting.expected[0].upper()}{setting.expected[1:]}; {default}. {given}.{fixed}"
    return wrapped(f"- `{key[1]}`: {setting.text}. {said}", "  ")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return "`[" + ", ".join(f'"{each}"' for each in value) + "]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"
