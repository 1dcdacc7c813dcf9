"""What evidence is worth: mistakes that are still caught with lines lost, without a column, without lines of an event.

    python -m benchmarks.evidence --lines 20 [--write docs/audit.md]      # runs caught with 0, 1, 10 and 50 % lost
    python -m benchmarks.evidence --columns [--write traces/README.md]    # what each column and event buys
    python -m benchmarks.evidence … FAULT …                               # some mistakes only (--write: their rows)

The runs are those of docs/faults.md that the audit rejects, each up to a little after the event that it rejects
(`AFTER`). Lines are lost at random, the same ones for each mistake and seed. Of a column (or event) every value (line)
is taken away in one run of each mistake, the one with the fewest events: it counts as caught if the verdict is still
"violates". The verdict on good runs is that on one run of each of `GOOD`, the worst of them.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from benchmarks.fault_runs import END, FAULT_RUNS, MARK, write_table
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.run import simulate
from viewproof.refinement.checker import check_run
from viewproof.refinement.ordering import order_key
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import COLUMNS, EVENTS, INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

SHARES = (0.01, 0.1, 0.5)
AFTER = 30
"""Events kept after the one that is rejected: what comes later decides nothing."""
SEEDS = 2
"""Runs of a mistake of which the shortest is taken for columns and events."""
GOOD: tuple[tuple[str, int], ...] = (("", 0), ("", 1), ("lost-superblocks", 1))
"""(profile, seed) of good runs."""
ALWAYS = 5
"""The columns that every event has: without them it is none."""
NAMES_SHOWN = 4
REPLICAS = 3

_NODE, _SEQ, _EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]


@dataclass(frozen=True)
class Case:
    """A run that the audit rejects, up to a little after that event."""

    fault: str
    seed: int
    rows: list[Row]


def rows_of(seed: int, replicas: int, requests: int, profile: SimProfile | None, faults: Iterable[str]) -> list[Row]:
    """The events of a simulated run, in replay order."""
    folder = Path(tempfile.mkdtemp(prefix="viewproof-"))
    try:
        simulate(seed, replicas=replicas, requests=requests, profile=profile, faults=frozenset(faults), out=folder)
        log = ProblemLog()
        found = [row for file in sorted(folder.rglob("*.ndjson")) for row in read_rows(str(file), log)]
    finally:
        shutil.rmtree(folder)
    return sorted(found, key=order_key)


def judged(rows: list[Row]) -> RunVerdict:
    """The verdict on a run."""
    return check_run("run", rows, AuditOptions())


def cases(fault: str, seeds: int) -> Iterator[Case]:
    """The runs of a mistake that the audit rejects, of so many."""
    chosen = FAULT_RUNS[fault]
    for seed in range(seeds):
        rows = rows_of(seed, chosen.replicas, chosen.requests, chosen.sim_profile, (fault,))
        verdict = judged(rows)
        if verdict.verdict == "violates":
            yield Case(fault, seed, rows[: verdict.violations[0].prefix_length + 1 + AFTER])


def lost(rows: list[Row], share: float, seed: int) -> list[Row]:
    """The run without that share of its lines."""
    rng = random.Random(seed)
    return [row for row in rows if rng.random() >= share]


def without_column(rows: list[Row], column: str) -> list[Row]:
    """The run as if the column were never there."""
    at = INDEX[column]
    return [(*row[:at], None, *row[at + 1 :]) for row in rows]


def without_event(rows: list[Row], event: str) -> list[Row]:
    """The run without the lines of an event: the numbers show that they are missing."""
    return [row for row in rows if row[_EVENT] != event]


def line_rows(faults: Sequence[str], runs: int) -> Iterator[tuple[str, ...]]:
    """Per mistake: in how many of its runs it is caught with all lines, and of those with some lost."""
    total = [0] * (len(SHARES) + 1)
    for fault in faults:
        found = list(cases(fault, runs))
        kept = [
            sum(judged(lost(case.rows, share, case.seed)).verdict == "violates" for case in found) for share in SHARES
        ]
        for at, number in enumerate((len(found), *kept)):
            total[at] += number
        yield (f"`{fault}`", f"{len(found)} of {runs}", *(percent(number, len(found)) for number in kept))
    yield ("all", f"{total[0]} of {runs * len(faults)}", *(percent(number, total[0]) for number in total[1:]))


def percent(number: int, of: int) -> str:
    """The share in whole percent."""
    return f"{100 * number / of:.0f} %" if of else "–"


def shortest(faults: Sequence[str]) -> list[Case]:
    """Of each mistake the run with the fewest events before it is caught."""
    found = (min(cases(fault, SEEDS), key=lambda case: len(case.rows), default=None) for fault in faults)
    return [case for case in found if case is not None]


def good_runs() -> list[list[Row]]:
    """Runs that conform, of several profiles."""
    return [rows_of(seed, REPLICAS, 10, NAMED_PROFILES[name] if name else None, ()) for name, seed in GOOD]


def worth(taken: Callable[[list[Row]], list[Row]], bad: list[Case], good: list[list[Row]]) -> tuple[str, str]:
    """The verdict on good runs without something, and which mistakes are no longer caught."""
    verdicts = {judged(left).verdict for rows in good if (left := taken(rows)) != rows or taken is list}
    gone = [
        f"`{case.fault}`"
        for case in bad
        if taken(case.rows) != case.rows and judged(taken(case.rows)).verdict != "violates"
    ]
    shown = ", ".join(gone[:NAMES_SHOWN]) + (f" and {len(gone) - NAMES_SHOWN} more" if len(gone) > NAMES_SHOWN else "")
    worst = next((v for v in ("violates", "inconclusive", "conforms") if v in verdicts), "not shown")
    return worst, f"{len(gone)}: {shown}" if gone else "none"


def column_rows(faults: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Per column, then per event: the verdict on good runs without it, and the mistakes that are no longer caught."""
    bad, good = shortest(faults), good_runs()
    yield ("nothing", *worth(list, bad, good))
    for column in COLUMNS[ALWAYS:]:
        yield (f"`{column}`", *worth(partial(without_column, column=column), bad, good))
    columns = least(good)
    yield ("all that the least can do without", "conforms", lost_with(columns, bad))
    for event in EVENTS:
        yield (f"lines of `{event}`", *worth(partial(without_event, event=event), bad, good))


def least(good: list[list[Row]]) -> tuple[str, ...]:
    """Columns of the good runs that can all be left out, and they still conform: each, in order, if that holds."""
    gone: tuple[str, ...] = ()
    for column in (c for c in COLUMNS[ALWAYS:] if any(row[INDEX[c]] is not None for rows in good for row in rows)):
        trial = [*gone, column]
        if all(judged(without_all(rows, trial)).verdict == "conforms" for rows in good):
            gone = (*gone, column)
    return gone


def without_all(rows: list[Row], columns: Iterable[str]) -> list[Row]:
    """The run without several columns."""
    for column in columns:
        rows = without_column(rows, column)
    return rows


def lost_with(columns: Iterable[str], bad: list[Case]) -> str:
    """What is no longer caught without these columns, and which they are."""
    gone = sum(judged(without_all(case.rows, columns)).verdict != "violates" for case in bad)
    return f"{gone} of {len(bad)}; without {', '.join(f'`{column}`' for column in columns)}"


def merged(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The lines of a table of lost lines with some rows in place of those it had, in the order of the catalogue, and
    the row of all computed again: runs of a mistake are so few that a whole percent says how many.
    """
    rows: dict[str, list[str]] = {}
    for line in (*old, *new):
        first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        if first.startswith("`"):
            rows[first] = rest
    rows = {name: rows[name] for name in (f"`{fault}`" for fault in FAULT_RUNS) if name in rows}
    counts = {name: int(cells[0].split()[0]) for name, cells in rows.items()}
    runs = sum(int(cells[0].split()[-1]) for cells in rows.values())
    kept = [
        sum(round(counts[name] * int(cells[at].split()[0]) / 100) for name, cells in rows.items() if counts[name])
        for at in range(1, len(SHARES) + 1)
    ]
    found = sum(counts.values())
    rows["all"] = [f"{found} of {runs}", *(percent(number, found) for number in kept)]
    return [*new[:2], *(f"| {' | '.join((name, *cells))} |" for name, cells in rows.items())]


def table(header: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table, as they are found."""
    for row in (header, ["---"] * len(header)):
        yield f"| {' | '.join(row)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def main() -> None:
    """Measure and print, or write."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("faults", nargs="*", default=[f for f, runs in FAULT_RUNS.items() if runs.shows_in_trace])
    what = arguments.add_mutually_exclusive_group(required=True)
    what.add_argument("--lines", type=int, metavar="RUNS")
    what.add_argument("--columns", action="store_true")
    arguments.add_argument("--write", type=Path)
    given = arguments.parse_args()
    if given.columns:
        lines = table(("without", "good runs", "no longer caught"), column_rows(given.faults))
    else:
        shares = (f"{share:.0%} of lines lost".replace("%", " %") for share in SHARES)
        lines = table(("mistake", "caught", *shares), line_rows(given.faults, given.lines))
    found = []
    for line in lines:
        click.echo(line)
        found.append(line)
    if given.write and given.lines and len(given.faults) < sum(runs.shows_in_trace for runs in FAULT_RUNS.values()):
        text = given.write.read_text(encoding="utf-8").partition(MARK.format("benchmarks.evidence"))[2]
        found = merged([line for line in text.partition(END)[0].splitlines() if line.startswith("| `")], found)
    if given.write:
        write_table(given.write, found, "benchmarks.evidence")


if __name__ == "__main__":
    main()
