"""What simulated runs met, by kind: every injected fault, every row of the ring's decision table, every case of repair.

`python -m viewproof.impl.sim.summary FILE…` adds up the JSON files that `vsr simulate --json` wrote.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from viewproof.impl.storage.ring_table import TABLE

ENOUGH = 50
"""A campaign has met something if so often."""

CAMPAIGN = 1_000
"""Runs from which on what is met seldom is named."""

FAULTS = (
    "messages_lost", "messages_repeated", "messages_late", "messages_cut", "clogs", "partitions", "partitions_one_way",
    "link faults: deaf", "link faults: mute", "link faults: no clients", "link faults: clients apart",
    "link faults: one link", "link faults: some links", "client_messages_cut", "client_clocks_back", "disks_slow",
    "crashes", "crashes_of_all", "crashes_between_effects", "crashes_in_write", "crashes_in_view_change",
    "crashes_in_checkpoint", "crashes_in_install", "crash_append_torn", "crash_append_whole", "crash_superblock_old",
    "crash_superblock_new", "crash_snapshot_old", "crash_snapshot_new", "crash_drain_old", "crash_drain_new",
    "appends_failed", "snapshots_failed", "drains_failed", "superblock_writes_failed", "superblock_writes_unknown",
    "disks_full", "writes_slow",
    "boots_refused", "superblocks_lost", "snapshots_lost", "rot_header", "rot_prepare", "rot_both",
    "rot_of_unacknowledged", "header_writes_lost", "prepare_writes_lost", "header_writes_misdirected",
    "prepare_writes_misdirected",
)  # fmt: skip

REPAIR = (
    "boots_damaged", "boots_head_uncertain", "answer: prepare", "answer: prepare, own log damaged", "answer: nack",
    "answer: silence, own log damaged", "answer: silence, drained", "answer: silence, normal", "answer: silence, view",
    "nacks: fewer than q_n", "nacks: enough, waits", "nacks: discard", "nacks: too late", "discards",
    "mended: prepares", "mended: discard", "mended: start_view, of a later view", "mended: start_view, covers",
    "mended: start_view, answer", "start_view refused", "repair", "start_view", "on_start_view", "recover",
    "logs_replaced", "truncated", "snapshots_installed", "snapshots_repaired",
    "snapshots_overtaken", "restarts_in_view_change",
)  # fmt: skip

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "faults": {name: name for name in FAULTS},
    "decision table of the ring": {row: f"recovered: {row}" for row, _, _ in TABLE},
    "repair, nacks, start_views": {name: name for name in REPAIR},
}
"""Section → what it names → statistic of `impl.sim.run.SimResult`."""


def summarise(statistics: Iterable[Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Section → what was met → how often, in all runs."""
    totals: Counter[str] = Counter()
    for each in statistics:
        totals.update(each)
    return {section: {name: totals[key] for name, key in names.items()} for section, names in SECTIONS.items()}


def add(summaries: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """The sum of several summaries."""
    flat = [
        {key: each.get(section, {}).get(name, 0) for section, names in SECTIONS.items() for name, key in names.items()}
        for each in summaries
    ]
    return summarise(flat)


def summary_lines(summary: Mapping[str, Mapping[str, int]], runs: int) -> list[str]:
    """The summary as text: how much was met; in a campaign (`CAMPAIGN` runs) also what, and what was met too seldom."""
    met = {section: [f"{name} {n:,}" for name, n in counts.items() if n] for section, counts in summary.items()}
    told = [f"{section}: {len(met[section])} of {len(counts)}" for section, counts in summary.items()]
    if runs < CAMPAIGN:
        return [f"situations met (--json has all): {'; '.join(told)}"]
    lines = [f"{text} met: " + ("; ".join(met[section]) or "none") for section, text in zip(met, told, strict=True)]
    rare = [f"{name} {count}" for counts in summary.values() for name, count in counts.items() if count < ENOUGH]
    return [*lines, f"met less than {ENOUGH} times: {'; '.join(rare) or 'nothing'}"]


def main(paths: list[str]) -> int:
    """Prints the sum of the files' summaries, one name a line. Exit code 1 if something was met too seldom."""
    files = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    total = add(file["summary"] for file in files)
    runs = [run for file in files for run in file["runs"]]
    lines = [f"{len(runs):,} runs, {sum(not run['ok'] for run in runs)} failed"]
    for section, counts in total.items():
        lines.append(section)
        lines += [f"{n:12,}  {name}{'  (seldom)' if n < ENOUGH else ''}" for name, n in counts.items()]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(count < ENOUGH for counts in total.values() for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
