"""What is recorded of the specification, in one checkout or compared between two.

    python -m benchmarks.ir OLD NEW            # what differs between two checkouts (directories); exit code 1 if any
    python -m benchmarks.ir --show [WORD …]    # the recorded text of this one, of what has all the words in its name

Recorded are the guards and updates of every action, and every invariant, witness and lemma, for every model, and for
every model with each known mistake that it has. The order of guards, conjuncts and disjuncts, and the names of bound
variables, mean nothing and are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

Recorded = dict[str, str]
"""Model, kind and name → text."""
TRUE = ("const", 1, True)


def normal(key: Any) -> Any:
    """A recorded expression without what means nothing: order in conjunctions and disjunctions, names of bound
    variables.
    """
    if not isinstance(key, tuple):
        return re.sub(r"^\w*_(\d+)$", r"#\1", key) if isinstance(key, str) else key
    parts = tuple(normal(part) for part in key)
    if parts and parts[0] in ("and", "or"):
        flat = [one for part in parts[1:] for one in (part[1:] if part[:1] == parts[:1] else (part,))]
        return (parts[0], *sorted(flat, key=repr))
    return parts


def of_spec(spec: Any) -> Iterator[tuple[str, str]]:
    """Kind and name, and text, of all that is recorded of a specification."""
    for act in spec.action_irs:
        conjuncts = (one for guard in act.guards for one in _conjuncts(guard.cond.key()))
        guards = sorted(repr(one) for one in conjuncts if one != TRUE)
        updates = sorted(
            repr(normal((u.var.name, *(i.key() for i in u.index), *_ranges(u), u.value.key()))) for u in act.updates
        )
        yield f"action {act.name}", "\n".join(guards) + "\n  →\n" + "\n".join(updates)
    for kind, found in (("invariant", spec.invariant_irs), ("witness", spec.witness_irs)):
        for predicate in found:
            yield f"{kind} {predicate.name}", repr(normal(predicate.cond.key()))


def _conjuncts(key: Any) -> tuple[Any, ...]:
    plain = normal(key)
    return plain[1:] if plain[:1] == ("and",) else (plain,)


def _ranges(update: Any) -> tuple[Any, ...]:
    return tuple((b.name.name, b.lo.key(), b.hi.key()) for b in update.binders)


def recorded(package: str = "viewproof.spec", *, faults_of: Mapping[str, Collection[str]] | None = None) -> Recorded:
    """All that is recorded of the models of a checkout, in this process; with `faults_of`, only these mistakes of each
    model.
    """
    vsr = import_module(f"{package}.vsr")
    lemmas_of = import_module(f"{package}.vsr.lemmas").lemmas_of
    record = import_module(f"{package}.lang.record").record_predicate
    refused = import_module(f"{package}.lang").SpecError
    found: Recorded = {}
    for name in vsr.MODELS:
        spec = vsr.model(name)
        found |= {f"{name} {what}": text for what, text in of_spec(spec)}
        for lemma in lemmas_of(spec.cfg):
            ir = record(lemma.id, lemma.title, lemma.fn, spec.schema, spec.cfg, lemma.doc)
            found[f"{name} lemma {lemma.id}"] = repr(normal(ir.cond.key()))
        for fault in sorted(vsr.FAULTS if faults_of is None else faults_of.get(name, ())):
            try:
                wrong = vsr.model(name, faults=(fault,))
            except refused:
                continue
            texts = {f"{name}+{fault} {what}": text for what, text in of_spec(wrong)}
            found |= {key: text for key, text in texts.items() if found.get(key.replace(f"+{fault}", "", 1)) != text}
    return found


def of_checkout(checkout: Path) -> Recorded:
    """All that is recorded in another checkout. Raises `CalledProcessError` if it cannot be run."""
    package = "viewproof.spec" if (checkout / "viewproof").exists() else "spec"
    command = [sys.executable, str(Path(__file__).resolve()), "--dump", package]
    done = subprocess.run(command, cwd=checkout, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def digests(found: Recorded) -> str:
    """A line for each, with a digest of its text."""
    return "".join(f"{key} {hashlib.sha256(text.encode()).hexdigest()[:12]}\n" for key, text in sorted(found.items()))


def differences(old: Recorded, new: Recorded) -> Iterator[str]:
    """What differs, as text."""
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) == new.get(key):
            continue
        if key not in old or key not in new:
            yield f"{key}: only in the {'new' if key in new else 'old'} one"
            continue
        before, after = old[key].splitlines(), new[key].splitlines()
        yield f"{key}:"
        yield from (f"  - {line}" for line in before if line not in after)
        yield from (f"  + {line}" for line in after if line not in before)


def main() -> int:
    """Compare or show."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", nargs="*", metavar="OLD NEW", type=Path)
    parser.add_argument("--show", nargs="*", metavar="WORD")
    parser.add_argument("--dump", metavar="PACKAGE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dump:
        sys.path.insert(0, str(Path.cwd()))
        sys.stdout.write(json.dumps(recorded(options.dump)))
        return 0
    if options.show is not None and not options.checkouts:
        shown = {key: text for key, text in recorded().items() if all(word in key.split() for word in options.show)}
        sys.stdout.writelines(f"{key}\n{text}\n\n" for key, text in shown.items())
        return 0 if shown else 2
    if len(options.checkouts) != 2:
        parser.error("two checkouts, or --show")
    for checkout in options.checkouts:
        if not (checkout / "spec" / "vsr").is_dir():
            parser.error(f"{checkout} is no checkout: it has no spec/vsr")
    old, new = (of_checkout(checkout) for checkout in options.checkouts)
    found = list(differences(old, new))
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.stdout.write(f"{sum(not line.startswith('  ') for line in found)} of {len(old.keys() | new.keys())} differ\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
