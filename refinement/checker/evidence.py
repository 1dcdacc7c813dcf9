"""What a run's events show, and where the evidence has holes: gaps, nodes without a file, late begins and early ends.

Absence is a fact only where the evidence is complete: after the last event before a hole, and after a node's last
event, there may be steps that nobody shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from viewproof.refinement.checker.begun import Begun
from viewproof.refinement.checker.story import sender_of
from viewproof.refinement.events.lines import Rule
from viewproof.refinement.events.system import System
from viewproof.refinement.ordering import GAPS_SHOWN, gap_text
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row

_NODE, _SEQ, _CLOCK, _EVENT = (INDEX[name] for name in ("node", "seq", "clock", "event"))

CLOCKS_SHOWN = 3
PARTIAL = "lines may be missing anywhere (--partial)"
"""Why nothing is known of a node between two of its events."""


@dataclass(slots=True)
class Evidence:
    """What the events of one run show as a whole.

    `boot` is the first event that shows a configuration; `holes_after[node, seq]` says what is missing after that event
    (0: before the node's first); `hole_at` is how many events come before the first of them; `ends[node]` is the node's
    last event; `clocks` are uses of a message by an event whose clock is not above that of the event that sent it.
    `anew` are nodes that ran before their traces begin, and count their events anew.
    """

    system: System
    boot: Row | None = None
    boots: list[Row] = field(default_factory=list)
    holes_after: dict[tuple[int, int], str] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    clocks: list[str] = field(default_factory=list)
    clock_problems: int = 0
    anew: set[int] = field(default_factory=set)
    hole_at: int = 0
    _shown: dict[tuple[int, int], int] = field(default_factory=dict)
    _complete: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, rows: Iterable[Row], system: System, rules: Mapping[str, Rule] | None = None, replicas: int = 0,
        partial: bool = False, begun: Begun | None = None,
    ) -> Evidence:  # fmt: skip
        """Look at all events of a run, in replay order; `rules` say which of them send and receive what. `partial`:
        events may be missing anywhere. With `begun` the rows are those after it: all before was shown.
        """
        found = cls(system)
        if begun is not None:
            found._go_on(begun)
        before = begun.events if begun else 0
        uses: list[Row] = []
        place: dict[tuple[int, int], int] = {}
        for number, row in enumerate(rows, before + 1):
            found._take(row, uses)
            place[row[_NODE], row[_SEQ]] = number
            if partial:
                found.holes_after[row[_NODE], row[_SEQ]] = PARTIAL
        if partial:
            found.gaps.append(PARTIAL)
            found.holes_after |= {(node, 0): PARTIAL for node in range(0 if begun else replicas)}
        found.hole_at = min([place.get(hole, before) for hole in found.holes_after], default=before + len(place))
        if found.absent(replicas):
            found.hole_at = 0
        found._check_clocks(rows, uses, rules or {})
        return found

    def _go_on(self, begun: Begun) -> None:
        """All that came before is shown, and its clocks are below those of what follows."""
        self.ends = {node: seq for node, seq in enumerate(begun.last_seq) if seq}
        self._complete = dict(self.ends)
        self.boots = list(begun.boots)
        needed = self.system.index[self.system.profile.needed[0]]
        self.boot = next((row for row in begun.boots if row[needed] is not None), None)

    def _take(self, row: Row, uses: list[Row]) -> None:
        node, seq = row[_NODE], row[_SEQ]
        if row[_EVENT] in self.system.profile.boots:
            self.boots.append(row)
            if self.boot is None and row[self.system.index[self.system.profile.needed[0]]] is not None:
                self.boot = row
        last = self.ends.get(node, 0)
        if seq > last + 1:
            text = gap_text(node, last + 1, seq - 1, row[FILE_INDEX], row[LINE_INDEX])
            self.holes_after[node, last] = text
            self.gaps.append(text)
        if seq == 1 and last == 0 and self.system.profile.begins_late(row[_EVENT]):
            text = (
                f"what node {node} did before its trace, which begins with {row[_EVENT]} "
                f"({row[FILE_INDEX]}:{row[LINE_INDEX]})"
            )
            self.holes_after[node, 0] = text
            self.gaps.append(text)
            self.anew.add(node)
        self.ends[node] = max(seq, last)
        self._shown[node, seq] = row[_CLOCK]
        if sender_of(row, self.system) is not None:
            uses.append(row)

    def _check_clocks(self, rows: Iterable[Row], uses: list[Row], rules: Mapping[str, Rule]) -> None:
        late = []
        for row in uses:
            sender = sender_of(row, self.system)
            if sender is None or sender[0] in self.anew:
                continue
            if sender[0] != row[_NODE] and self._shown.get(sender, 0) >= row[_CLOCK]:
                late.append((row, sender))
        if not late:
            return
        wanted = {sender for _, sender in late}
        senders = {(row[_NODE], row[_SEQ]): row for row in rows if (row[_NODE], row[_SEQ]) in wanted}
        for row, sender in late:
            if self._may_have_sent(senders[sender], row, rules):
                self._note_clock(row, sender, senders[sender][_CLOCK])

    def _note_clock(self, row: Row, sender: tuple[int, int], sent: int) -> None:
        self.clock_problems += 1
        if len(self.clocks) < CLOCKS_SHOWN:
            self.clocks.append(
                f"the clock of event {row[_SEQ]} of node {row[_NODE]} ({row[_EVENT]} at {row[FILE_INDEX]}:"
                f"{row[LINE_INDEX]}) is {row[_CLOCK]}, not above that of the message it uses: event {sender[1]} of "
                f"node {sender[0]}, clock {sent}; the order of the events cannot be trusted"
            )

    def configuration(self, boot: Row) -> Row:
        """The first event, with those columns of the configuration that it does not show and another boot does."""
        found = list(boot)
        for column in (self.system.index[name] for name in self.system.profile.configuration):
            if found[column] is None:
                found[column] = next((row[column] for row in self.boots if row[column] is not None), None)
        return tuple(found)

    def shown_of(self, column: str) -> object:
        """What the first boot that shows a column of the configuration says there; None: no boot shows it."""
        place = self.system.index[column]
        return next((row[place] for row in self.boots if row[place] is not None), None)

    def _may_have_sent(self, sender: Row, row: Row, rules: Mapping[str, Rule]) -> bool:
        """Did the event send such a message, as far as its columns show? One that did not is false in any order."""
        rule = rules.get(row[_EVENT])
        if rule is None or not rule.receives:
            return True
        kinds = rule.receives.split("|")
        sends = rules[sender[_EVENT]].sends if sender[_EVENT] in rules else ""
        places = [self.system.index[name] for name in self.system.messages[kinds[0]]]
        pairs = [(sender[place], row[place]) for place in places]
        return sends in kinds and all(None in pair or pair[0] == pair[1] for pair in pairs)

    def is_shown(self, node: int, seq: int) -> bool:
        """Is that event among those of the run?"""
        return (node, seq) in self._shown or seq <= self._complete.get(node, 0)

    def absent(self, replicas: int) -> list[str]:
        """Nodes of which there is no event."""
        return [f"node {node} has no event in the input" for node in range(replicas) if node not in self.ends]

    def missing(self, replicas: int) -> list[str]:
        """The holes in words, a few of many."""
        texts = self.gaps[:GAPS_SHOWN]
        if len(self.gaps) > GAPS_SHOWN:
            texts.append(f"{len(self.gaps) - GAPS_SHOWN} more gaps in sequence numbers")
        return [*texts, *self.absent(replicas)]
