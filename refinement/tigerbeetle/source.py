"""From log files to runs: which family and cluster each is of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.tigerbeetle.parts import Parts, init_line
from viewproof.refinement.tigerbeetle.reading import Lines, marked
from viewproof.refinement.tigerbeetle.records import Cluster, Family
from viewproof.refinement.tigerbeetle.runs import LogRun

SEARCH_LINES: Final = 200_000
"""So many lines are searched for a replica that starts."""
NODES_MAX: Final = 12
"""Replicas and standbys of the largest cluster."""
_DEBUG: Final = b"[debug] ("
"""Without lines of that level most of what a replica does is not shown."""
_STANDBYS = re.compile(rb"^[^\S\n]+standbys=(\d+)$", re.MULTILINE)


class Source:
    """The runs of files of these families, which lie in rows of these columns."""

    def __init__(self, families: tuple[Family, ...], columns: tuple[str, ...]) -> None:
        self.families = families
        self.columns = columns

    def runs(self, segment: Segment, profile: str, log: ProblemLog) -> Iterator[LogRun]:
        """The runs of a part of a file, one after the other; each must be gone through (`rest`) before the next.

        What is no such log, or not of the profile, goes to `log`. Raises `OSError`.
        """
        lines = Lines(segment)
        source = lines.blocks()
        pending = b""
        number, count = segment.first_line, 0
        while True:
            part = replace(
                segment, first_line=number, ordinal=segment.ordinal or (count + 1 if count else 0),
                part=count + 1 if count and segment.ordinal else 0,
            )  # fmt: skip
            head = pending
            while (cluster := self.find_cluster(head)) is None and marked(head, ())[0] < SEARCH_LINES:
                if (more := next(source, None)) is None:
                    break
                head += more
            if cluster is None or not self._is_judged(part, cluster, profile, log):
                if cluster is None and (not count or pending):
                    self._no_log(part, head, log)
                return
            parts = Parts(head, source, lines, number)
            run = LogRun(part, cluster, self.columns, parts, segment)
            count += 1
            yield run
            pending, number = parts.beyond or b"", parts.number
            if not pending.strip():
                return

    def find_cluster(self, head: bytes) -> Cluster | None:
        """Family and configuration, from the first replica that starts and the simulator's own settings."""
        init = init_line(head)
        if init is None or _DEBUG not in head:
            return None
        name = "2026" if init["release"] else "2022"
        family = next((f for f in self.families if f.name == name), None)
        if family is None:
            return None
        n, standbys = int(init["n"]), _STANDBYS.findall(head, 0, init.start())
        return Cluster(family, n, int(init["q_v"]), int(init["q_r"]), n + (int(standbys[-1]) if standbys else 0))

    @staticmethod
    def _is_judged(segment: Segment, cluster: Cluster, profile: str, log: ProblemLog) -> bool:
        if profile not in ("core", cluster.family.profile):
            log.add(segment.file, 0, "", f"a log of profile {profile}", f"one of {cluster.family.profile}")
            return False
        if cluster.nodes > NODES_MAX:
            expected = f"a cluster of at most {NODES_MAX} replicas and standbys"
            log.add(segment.file, segment.first_line, "", expected, str(cluster.nodes))
            return False
        return True

    @staticmethod
    def _no_log(segment: Segment, head: bytes, log: ProblemLog) -> None:
        expected = (
            "the debug log of a TigerBeetle simulator (June 2022 or July 2026), with the line of a replica that starts"
        )
        first = next((line for line in head.decode("utf-8", "replace").split("\n") if line.strip()), "")
        got = f"no such line; it begins with: {first[:80]}" if first else "an empty file"
        log.add(segment.file, segment.first_line, "", expected, got)
