"""Where the settings of a server come from: a TOML file with what it includes, the environment, options; and the copy
of what is in effect, beside the data.

What comes later wins: defaults, included files in their order, the file, the environment (`VSR_SECTION_NAME`), options.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from viewproof.impl.groups.group import NAMESPACES
from viewproof.impl.machine.namespaces import NamespaceLayout
from viewproof.impl.net.settings import (
    SETTINGS,
    Key,
    SettingsError,
    Value,
    effective_text,
    environment_name,
    layout_of,
)
from viewproof.impl.storage.file import FileSystem, write_atomically

__all__ = ["EFFECTIVE_NAME", "keep_effective", "kept_layout", "resolve"]

EFFECTIVE_NAME = "configuration.toml"
"""The file in a data directory that says what was in effect when it was last started."""

INCLUDES_MAX = 16
"""Files that include each other, at most; also what ends a circle."""

_FILE_BYTES_MAX = 1 << 20


def resolve(
    file: Path | None, options: Mapping[Key, Any], environment: Mapping[str, str] = os.environ
) -> dict[Key, Value]:
    """Every setting with its value, valid for itself, and its origin. `options` with None were not given.

    Raises SettingsError: it names file and line, variable or option, the setting, and what was expected.
    """
    values = {key: Value(setting.default, "default") for key, setting in SETTINGS.items()}
    found = list(_from_file(file, ())) if file is not None else []
    found += _from_environment(environment)
    found += [
        (key, Value(value, f"option {SETTINGS[key].option}")) for key, value in options.items() if value is not None
    ]
    for key, given in found:
        setting = SETTINGS[key]
        _require_text(key, given)
        try:
            values[key] = Value(setting.read(given.value), given.origin)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise SettingsError(
                f"{'.'.join(key)} ({given.origin}): {given.value!r}; expected {setting.expected}"
            ) from error
    return values


def _require_text(key: Key, given: Value) -> None:
    """What is in effect is written to a file in UTF-8."""
    for each in given.value if isinstance(given.value, list | tuple) else [given.value]:
        try:
            str(each).encode()
        except UnicodeEncodeError as error:
            raise SettingsError(f"{'.'.join(key)} ({given.origin}): {str(each)!a}; expected UTF-8") from error
        if "\0" in str(each):
            raise SettingsError(f"{'.'.join(key)} ({given.origin}): {str(each)!a}; expected text without zero bytes")


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[Key, Value]]:
    names = {environment_name(key): key for key in SETTINGS}
    sections = tuple(f"VSR_{section}_".upper() for section, _ in SETTINGS)
    for name in sorted(environment):
        if name in names:
            yield names[name], Value(environment[name], f"environment {name}")
        elif name.startswith(sections):
            raise SettingsError(f"environment {name}: no such setting; there are {', '.join(sorted(names))}")


def _from_file(path: Path, including: tuple[Path, ...]) -> Iterator[tuple[Key, Value]]:
    """The settings in a file, after those of the files that it includes."""
    if "\0" in str(path):
        raise SettingsError(f"{str(path)!r}: expected the name of a file")
    if path.resolve() in including or len(including) >= INCLUDES_MAX:
        raise SettingsError(f"{path}: included by itself, or {INCLUDES_MAX} deep, by {including[-1]}")
    text = _read(path)
    content = _parsed(path, text, "expected TOML")
    include = content.pop("include", [])
    if not isinstance(include, list) or not all(isinstance(each, str) for each in include):
        raise SettingsError(f"{path}:{_line_of(text, '', 'include')}: include: expected a list of file names")
    for each in include:
        yield from _from_file(path.parent / each, (*including, path.resolve()))
    for section, members in content.items():
        if not isinstance(members, dict) or section not in {known for known, _ in SETTINGS}:
            known = ", ".join(dict.fromkeys(section for section, _ in SETTINGS))
            raise SettingsError(f"{path}:{_line_of(text, section, '')}: {section}: expected a section, of {known}")
        for name, value in members.items():
            line = _line_of(text, section, name)
            if (section, name) not in SETTINGS:
                known = ", ".join(known for of_section, known in SETTINGS if of_section == section)
                raise SettingsError(f"{path}:{line}: {section}.{name}: no such setting; there are {known}")
            yield (section, name), Value(value, f"{path}:{line}")


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise SettingsError(f"{path}: cannot read the configuration: {error.strerror or error}") from error
    if len(data) > _FILE_BYTES_MAX:
        raise SettingsError(f"{path}: more than {_FILE_BYTES_MAX} bytes; expected a configuration")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: byte {error.start} is no UTF-8; expected TOML") from error


def _parsed(path: Path, text: str, advice: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # not TOML, or a number of too many digits
        raise SettingsError(f"{path}: {error}; {advice}") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: nested too deeply; {advice}") from error


def _line_of(text: str, section: str, name: str) -> int:
    """Where a setting, or with an empty name a section, stands in a file that is valid; its first line, if unsure."""
    inside, start = section == "", 1
    wanted = rf"\s*\"?{re.escape(name or section)}\"?\s*="
    dotted = rf"\s*{re.escape(section)}\s*\.\s*{re.escape(name)}\s*="
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\s*([\w.-]+)\s*\]", line)
        if header is not None:
            inside = header[1] == section
            start = number if inside else start
            if inside and not name:
                return number
        elif (re.match(wanted, line) and (inside or not name)) or (section and name and re.match(dotted, line)):
            return number
    return start


def kept_layout(directory: Path) -> NamespaceLayout:
    """How the names of partitions are packed in a data directory, by what is kept in it or above it.

    The default if nothing is. Raises SettingsError.
    """
    for place in (directory, directory.parent):
        if (place / EFFECTIVE_NAME).exists():
            return layout_of(resolve(place / EFFECTIVE_NAME, {}, {}))
    return NAMESPACES


def kept_problem(directory: Path) -> tuple[Path, str] | None:
    """The file of what was in effect in a data directory, or above it, and why no replica starts beside it."""
    for path in (directory / EFFECTIVE_NAME, directory.parent / EFFECTIVE_NAME):
        try:
            if path.exists():
                _parsed(path, _read(path), "expected TOML")
        except SettingsError as error:
            return path, str(error).removeprefix(f"{path}: ")
    return None


def keep_effective(files: FileSystem, directory: Path, values: Mapping[Key, Value]) -> None:
    """Writes what is in effect beside the data, unless it is there, or a setting that may never change has changed
    since.

    Raises SettingsError with both values, OSError if it cannot be written.
    """
    path, text = directory / EFFECTIVE_NAME, ""
    if files.exists(str(path)):
        text = _read(path)
        content = _parsed(path, text, "remove it if its data were never started otherwise")
        for (section, name), setting in SETTINGS.items():
            given, members = values[section, name], content.get(section, {})
            before = members.get(name, given.value) if isinstance(members, dict) else given.value
            if setting.fixed and before != given.value:
                raise SettingsError(
                    f"{section}.{name} ({given.origin}): {given.value}, but {directory} was started with {before} "
                    f"({path}:{_line_of(text, section, name)}): it is never changed, as the data are laid out by it"
                )
    if text != effective_text(values):
        write_atomically(files, str(path), effective_text(values).encode())
