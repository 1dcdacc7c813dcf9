"""What a state is of: the code that judges, and the options it was asked with. Another one cannot go on from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path

import msgspec

import viewproof.refinement as refinement_package
from viewproof.refinement.adapter import BUILT_IN, NATIVE
from viewproof.refinement.going_on.directory import FORMAT
from viewproof.refinement.verdict import AuditOptions

_JUDGES = (
    "spec/lang",
    "spec/engines/replay",
    "spec/engines/guards",
    "spec/vsr",
    "refinement/checker",
    "refinement/events",
)
"""Folders of the package that decide what a verdict is."""
_ALSO = ("schema.py", "global_facts.py", "ordering.py", "going_on/runs.py", "going_on/kept.py", "going_on/in_files.py")


def subject(options: AuditOptions) -> str:
    """A digest of the specification, the audit, the adapter and the options."""
    root = Path(next(iter(refinement_package.__path__))).parent
    files = [
        *(root / "refinement" / name for name in _ALSO),
        *chain.from_iterable((root / name).rglob("*.py") for name in _JUDGES),
    ]
    module = BUILT_IN.get(options.adapter, options.adapter).partition(":")[0]
    own = root / "refinement" / "native" if options.adapter == NATIVE else Path(str(import_module(module).__file__))
    files += own.rglob("*.py") if own.is_dir() else [own]
    found = hashlib.blake2b(FORMAT.encode() + msgspec.json.encode(options), digest_size=16)
    for file in sorted(files):
        found.update(file.read_bytes())
    return found.hexdigest()


def asked(options: AuditOptions) -> dict[str, str]:
    """The options as they are written on the command line, by their names there; "" is one that was not given."""
    given = " ".join(f"{column}={value}" for column, value in options.configuration)
    lists = {"--allow": options.allow, "--without": options.without, "--forbid": options.forbid}
    return {
        "--adapter": options.adapter,
        "--profile": options.profile,
        **{name: " ".join(values) for name, values in lists.items()},
        "--set": given,
        "--partial": "given" if options.partial else "",
    }


def differs(kept: Mapping[str, str], options: AuditOptions) -> str:
    """What is another now than when the state was kept, in words: the options, or else the code."""
    now = asked(options)
    pairs = ((name, kept.get(name, value), value) for name, value in now.items())
    others = [f"{name} was {old or 'not given'} and is {new or 'not given'}" for name, old, new in pairs if old != new]
    if others:
        return f"other options: {'; '.join(others)}"
    return "another version of the specification or the audit, or of the adapter"
