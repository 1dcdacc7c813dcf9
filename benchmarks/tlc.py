"""TLC and the explicit engine on the same models: one command, one table.

    VSR_TLC=/path/to/tla2tools.jar python -m benchmarks.tlc            # five models
    VSR_TLC=/path/to/tla2tools.jar python -m benchmarks.tlc --models 2 # the first two
    VSR_TLC=/path/to/tla2tools.jar python -m benchmarks.tlc --shapes core   # those that `vsr check core` searches
    VSR_TLC=/path/to/tla2tools.jar python -m benchmarks.tlc --record        # the table of docs/tla.md

TLC is not part of this project (docs/tla.md says where to get it); it runs with 2 workers on the exported module. The
explicit engine runs by `vsr check` in a process of its own, with what workers it has by itself.

Columns: `distinct` states of the model; per tool seconds, distinct states a second, and the peak of its memory. TLC's
seconds are those of its process, with the second or so that Java and parsing take; explicit's are those of the search,
without compiling, which is shown apart (it is kept on disk: a second run has almost none). `ratio` is explicit's
states a second over TLC's. A `*` marks a TLC run that was stopped after --tlc-seconds: its numbers are those of its
last progress line. `load` is the machine's load average before the model: where other programs kept the machine busy,
both are too slow.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.figures import record
from benchmarks.watch import watch
from viewproof.spec.engines.tla import export, tlc
from viewproof.spec.protocols import shapes_of
from viewproof.spec.vsr import MODELS as VSR_MODELS
from viewproof.spec.vsr import model

MODELS: tuple[tuple[str, dict[str, int]], ...] = (
    ("core_restart", {"replicas": 3, "views": 2, "ops": 1, "requests": 1, "restarts": 1}),
    ("core", {"replicas": 2, "views": 3, "ops": 3, "requests": 3}),
    ("core", {"replicas": 3, "views": 2, "ops": 2, "requests": 2}),
    ("core", {"replicas": 3, "views": 3, "ops": 1, "requests": 1}),
    ("core", {"replicas": 3, "views": 3, "ops": 2, "requests": 2}),
)
"""From 60 thousand to 55.7 million states."""

HEADER = ("model", "distinct", "TLC s", "TLC states/s", "TLC MiB", "explicit s", "compile s", "explicit states/s",
          "explicit MiB", "ratio", "load")  # fmt: skip
_VSR = (sys.executable, "-m", "viewproof")


@dataclass(frozen=True)
class Measured:
    """One row."""

    title: str
    tlc: tlc.Outcome
    explicit: dict[str, Any]
    explicit_mib: float
    load: float

    def cells(self) -> tuple[str, ...]:
        """As text."""
        stopped = "*" if self.tlc.verdict == "inconclusive" else ""
        slow = self.tlc.distinct / max(self.tlc.seconds, 1e-9)
        fast = float(self.explicit["states_per_second"])
        return (
            self.title, f"{self.explicit['distinct']:,}", f"{self.tlc.seconds:,.1f}{stopped}", f"{slow:,.0f}{stopped}",
            f"{self.tlc.memory_bytes / 2**20:,.0f}", f"{self.explicit['seconds']:,.1f}",
            f"{self.explicit['compile_seconds']:.1f}", f"{fast:,.0f}", f"{self.explicit_mib:,.0f}",
            f"{fast / slow:,.0f}{stopped}", f"{self.load:.1f}",
        )  # fmt: skip


def measure(name: str, sizes: dict[str, int], classes: str, seconds: float, heap: str) -> Measured:
    """Both tools on one model, one after the other; an answer on which they differ is an error."""
    load = os.getloadavg()[0]
    title = ", ".join([name, *(f"{key} {value}" for key, value in sizes.items())])
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place) / "answer.json"
        options = [word for key, value in sizes.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        watched = watch([*_VSR, "check", name, *options, "--json", str(answer)])
        found = json.loads(answer.read_text(encoding="utf-8"))
    spec = model(name, replicas=sizes["replicas"], bounds=replace(VSR_MODELS[name], **_bounds(sizes)))
    outcome = tlc.run(export(spec), classes, workers=2, heap=heap, timeout_seconds=seconds)
    if outcome.verdict != "inconclusive":
        said = (outcome.verdict, outcome.distinct, outcome.generated)
        own = (found["verdict"], found["distinct"], found["generated"])
        if said != own:
            raise SystemExit(f"{title}: TLC says {said}, explicit says {own}")
    return Measured(title, outcome, found, watched.peak_mib, load)


def shapes(name: str) -> list[tuple[str, dict[str, int]]]:
    """The shapes of a model that `vsr check` searches, the smallest first; also those with a bound, to their end."""
    return [
        (name, {key: n for key, n in {"replicas": size.replicas, **vars(size.bounds)}.items() if n})
        for size in shapes_of(name)
    ]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _bounds(sizes: dict[str, int]) -> dict[str, int]:
    return {key: value for key, value in sizes.items() if key != "replicas"}


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="TLC and the explicit engine on the same models")
    parser.add_argument("--models", type=int, help="only the first so many of the models")
    parser.add_argument("--shapes", choices=sorted(VSR_MODELS), help="instead of five models the shapes of this one")
    parser.add_argument("--tlc-seconds", type=float, default=900.0, help="stop TLC on a model after so long")
    parser.add_argument("--heap", default="4g", help="Java heap of TLC")
    parser.add_argument("--record", action="store_true", help="keep the table, and write docs/tla.md")
    options = parser.parse_args(words)
    classes = tlc.class_path()
    if classes is None:
        raise SystemExit(f"{tlc.VARIABLE} is not set: it names the jar of TLC (docs/tla.md)")
    _say("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    chosen = shapes(options.shapes) if options.shapes else MODELS
    rows = []
    for name, sizes in chosen[: options.models]:
        rows.append(measure(name, sizes, classes, options.tlc_seconds, options.heap))
        _say("| " + " | ".join(rows[-1].cells()) + " |")
    ended = [row for row in rows if row.tlc.verdict != "inconclusive"]
    fast, slow = sum(row.explicit["seconds"] for row in ended), sum(row.tlc.seconds for row in ended)
    _say(f"{len(ended)} of {len(rows)} were searched to the end by both, with equal verdicts and counts")
    _say(f"seconds in these: TLC {slow:,.1f}, explicit {fast:,.1f}")
    if options.record:
        note = (
            f"A `*`: TLC was stopped after {options.tlc_seconds:g} s; its numbers are those of its last progress line."
        )
        record("tlc", "speed", HEADER, [row.cells() for row in rows], "python -m benchmarks.tlc --record", note)


if __name__ == "__main__":
    main()
