"""A model of one's own: `./my_model.py[:NAME]`, a file whose code is run to get its specification.

NAME is a `Spec`, or a function that returns one and whose parameters are its sizes. Without NAME the file has one of
them. `--size SORT=N` gives a sort of the specification so many members, or a parameter of the function the value N.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from viewproof.refinement.value_text import show_sizes, sorts_of
from viewproof.spec.lang import Instance, Spec, SpecError

SIZES = "viewproof.own_sizes"
"""Where the sizes of `--size` are in a click context."""


def is_own(name: str) -> bool:
    """Does the name mean a file?"""
    return name.partition(":")[0].endswith(".py")


def keep_sizes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    """Callback of `--size`: the sizes, by name. Refuses what is not NAME=NUMBER."""
    sizes: dict[str, int] = {}
    for value in values:
        name, _, number = value.partition("=")
        if not name.isidentifier() or not number.isdecimal():
            raise click.BadParameter(f"{value!r} is not NAME=NUMBER, such as Voter=3", ctx, param)
        sizes[name] = int(number)
    ctx.meta[SIZES] = sizes


def own_model(name: str) -> tuple[Spec, str]:
    """The specification in a file, in the sizes of the command line; and the sizes in words."""
    path, _, wanted = name.partition(":")
    return own_model_in(Path(path), wanted, path)


def own_model_in(file: Path, wanted: str, path: str) -> tuple[Spec, str]:
    """The same of the specification `wanted` in a file that is called `path`."""
    sizes: dict[str, int] = click.get_current_context().meta.get(SIZES, {})
    found = _named(_run(file, path), path, wanted)
    spec = found if isinstance(found, Spec) else _made(found, path, sizes)
    if isinstance(found, Spec):
        spec = _resized(spec, sizes)
    if not isinstance(spec.instance, Instance) or not spec.instance.bounds:
        raise SpecError(f"{path}: {spec.name} has no bounds: say --size SORT=N for each of {', '.join(sorts_of(spec))}")
    return spec, show_sizes(spec)


def _run(file: Path, path: str) -> ModuleType:
    found = spec_from_file_location(file.stem, file)
    if not file.is_file() or found is None or found.loader is None:
        raise click.UsageError(f"there is no file {path}")
    module = module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except SpecError:
        raise
    except (Exception, SystemExit) as problem:
        raise SpecError(f"{path} cannot be run: {type(problem).__name__}: {problem}") from problem
    return module


def _named(module: ModuleType, path: str, wanted: str) -> Spec | Callable[..., Any]:
    if wanted:
        found = getattr(module, wanted, None)
        if not isinstance(found, Spec) and not inspect.isfunction(found):
            raise click.UsageError(f"{path} has no specification {wanted}, nor a function of that name that makes one")
        return found
    specs = {name: value for name, value in vars(module).items() if isinstance(value, Spec)}
    if len(specs) != 1:
        told = ", ".join(specs) or "none"
        raise click.UsageError(f"name one specification of {path}, {path}:NAME; it has: {told}")
    return next(iter(specs.values()))


def _made(make: Callable[..., Any], path: str, sizes: Mapping[str, int]) -> Spec:
    known = list(inspect.signature(make).parameters)
    if unknown := sorted(set(sizes) - set(known)):
        told = ", ".join(known) or "none"
        raise click.UsageError(f"{make.__name__} has no size {', '.join(unknown)}; there are: {told}")
    try:
        spec = make(**sizes)
    except TypeError as problem:
        raise SpecError(f"{path}: {make.__name__} needs its sizes, --size NAME=N: {problem}") from problem
    if not isinstance(spec, Spec):
        raise SpecError(f"{path}: {make.__name__} does not return a specification")
    return spec


def _resized(spec: Spec, sizes: Mapping[str, int]) -> Spec:
    """The specification with so many members of each sort."""
    sorts = sorts_of(spec)
    if unknown := sorted(set(sizes) - sorts.keys()):
        raise click.UsageError(f"{spec.name} has no sort {', '.join(unknown)}; there are: {', '.join(sorts)}")
    bounds = {name: sorts[name].lo + number - 1 for name, number in sizes.items()}
    return replace(spec, instance=Instance({**spec.instance.bounds, **bounds}))
