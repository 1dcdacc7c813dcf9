"""The page of the commands: arguments, options, exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from benchmarks.reference.text import paragraphs, wrapped
from viewproof.refinement.cli.root import cli
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_ERROR, EXIT_INCONCLUSIVE, EXIT_VIOLATES

HEAD = """# Commands, options, exit codes

What `vsr` knows, from its own declarations. `python -m benchmarks.reference --write docs/reference` makes this page.

"""
CHOICES_MAX = 10
"""More values of an option are listed once, at the end."""
CODES = {
    EXIT_CONFORMS: "holds, conforms, proved: what was asked is so",
    EXIT_VIOLATES: "a violation: a broken invariant, or an event that no behaviour of the specification explains",
    EXIT_ERROR: "usage error, malformed input (file, line, field), or a failure of the tool",
    EXIT_INCONCLUSIVE: "inconclusive: evidence is missing, a bound was hit, it was interrupted, or nothing was checked",
}


def page() -> str:
    """The document."""
    rows = "\n".join(f"| {code} | {text} |" for code, text in sorted(CODES.items()))
    codes = f"## Exit codes\n\n| code | meaning |\n|---|---|\n{rows}\n"
    context = click.Context(cli, info_name="vsr")
    found = [one for name in cli.list_commands(context) if (one := cli.get_command(context, name))]
    every = [below for one in found for below in (one.commands.values() if isinstance(one, click.Group) else [one])]
    sections = (text for one in found for text in _command(f"vsr {one.name}", one))
    return HEAD + codes + "".join(sections) + _lists(every)


def _command(name: str, command: click.Command) -> Iterator[str]:
    """A section of a command, and of those below it."""
    yield f"\n## {name}\n\n{paragraphs(_markdown(command.help or ''))}\n"
    if isinstance(command, click.Group):
        for below, one in sorted(command.commands.items()):
            yield from _command(f"{name} {below}", one)
        return
    listed = [entry for param in command.params if (entry := _parameter(param))]
    if listed:
        yield "\n" + "\n".join(listed) + "\n"


def _markdown(text: str) -> str:
    """Help without the marks that click reads, and with placeholders that no HTML swallows."""
    return text.replace("\b\n", "").replace("<", "&lt;")


def _parameter(param: click.Parameter) -> str:
    if isinstance(param, click.Argument):
        name = (param.metavar or param.name or "").upper().rstrip(".")
        many = " …" if param.nargs != 1 else ""
        return f"- `{name}`{many}{'' if param.required else ' (may be left out)'}"
    if not isinstance(param, click.Option) or param.hidden:
        return ""
    names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    said = _markdown(" ".join((param.help or "").split()))
    told = " ".join(text for text in (said, _default(param)) if text)
    return wrapped(f"- {names}{_value(param)}" + (f": {told}" if told else ""), "  ")


def _value(param: click.Option) -> str:
    if param.is_flag or param.count:
        return ""
    several = " (may be repeated)" if param.multiple else ""
    if isinstance(param.type, click.Choice):
        choices = tuple(map(str, param.type.choices))
        if len(choices) <= CHOICES_MAX:
            return f" `{'|'.join(choices)}`{several}"
    return f" `{(param.metavar or _kind(param.type)).upper()}`{several}"


def _lists(commands: list[click.Command]) -> str:
    """The values of options and arguments that have many, each list once."""
    found: dict[tuple[str, ...], list[str]] = {}
    for command in commands:
        for param in command.params:
            if isinstance(param.type, click.Choice) and len(param.type.choices) > CHOICES_MAX:
                name = param.opts[0] if isinstance(param, click.Option) else (param.metavar or param.name or "").upper()
                found.setdefault(tuple(map(str, param.type.choices)), []).append(f"`{name}` of {command.name}")
    told = (
        f"\n{wrapped(', '.join(users))}:\n\n{wrapped(', '.join(f'`{v}`' for v in of))}\n" for of, users in found.items()
    )
    return "\n## Long lists of values\n" + "".join(told)


def _kind(of: Any) -> str:
    """What a value is: of a number the bounds, where it has some."""
    if isinstance(of, (click.IntRange, click.FloatRange)):
        low, high = of.min, of.max
        return (
            "N"
            if low is None and high is None
            else f"{'' if low is None else f'{low} ≤ '}N{'' if high is None else f' ≤ {high}'}"
        )
    return {"integer": "N", "float": "N", "choice": "NAME"}.get(str(of.name), str(of.name))


def _default(param: click.Option) -> str:
    """The default, where it is a value that is written in the declaration, and help does not say it."""
    value = param.default
    if param.is_flag or param.multiple or not isinstance(value, (int, float, str)) or value == "":
        return ""
    return "" if "default" in (param.help or "").lower() else f"Default: `{value}`."
