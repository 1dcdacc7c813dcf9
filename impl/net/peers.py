"""What a process knows of the other replicas: who may speak for them, and what they were heard to hold.

Every hello of a replica, on a connection of either direction, is judged here: its index, its configuration, its
process and what its data directory holds. What is refused is refused by name, said to the other side, and shown by
`vsr status`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from viewproof.impl.net.address import Address, address_text
from viewproof.impl.net.configuration import Configuration, address_differences, differences
from viewproof.impl.net.framing import PROTOCOL_VERSION, Hello, Position
from viewproof.impl.net.limits import shown
from viewproof.impl.net.tls import Tls, subject_error

__all__ = ["Peers", "is_older", "newer"]

PROBLEM_SECONDS = 30.0
"""A problem that does not come again is shown for so long."""

INCARNATIONS_MAX = 64
"""Former processes of each replica that are remembered."""


class Peers:
    """The other replicas of ``replica``; ``positions`` gives what its own data directories hold now.

    With ``tls`` every connection is encrypted, and each side shows a certificate of who it is. ``on_outdated`` is told
    the group, and why, if others have heard more of this replica than its directory held when its process began.
    """

    def __init__(
        self,
        *,
        cluster: int,
        replica: int,
        addresses: Sequence[Address],
        configuration: Configuration,
        incarnation: int,
        sessions: bool,
        positions: Callable[[], tuple[Position, ...]],
        tls: Tls | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_outdated: Callable[[int, str], None] = lambda group, reason: None,
    ) -> None:
        self.cluster = cluster
        self.replica = replica
        self.addresses = tuple(addresses)
        self.configuration = configuration
        self.incarnation = incarnation
        self.sessions = sessions
        self.tls = tls
        self._positions = positions
        self._at_boot: tuple[Position, ...] | None = None
        self._on_outdated = on_outdated
        self._clock = clock
        self._agreed: set[int] = set()
        self._current: dict[int, int] = {}
        self._former: dict[int, dict[int, None]] = {}
        self._heard: dict[tuple[int, int], Position] = {}
        self._problems: dict[tuple[int, str], tuple[str, float]] = {}

    @property
    def count(self) -> int:
        """Replicas of the cluster."""
        return self.configuration.replica_count

    @property
    def has_majority(self) -> bool:
        """True once this process and others that are configured like it were more than half of the cluster.

        Before that it takes no request: a primary that is set up wrongly might need nobody to acknowledge it.
        """
        return 2 * (len(self._agreed) + 1) > self.count

    def hello(self) -> Hello:
        """What this process says of itself, and what it heard of the others."""
        self._look_at_itself()
        return Hello(
            PROTOCOL_VERSION,
            self.cluster,
            "replica",
            self.replica,
            self.sessions,
            self.incarnation,
            self.configuration,
            tuple(map(address_text, self.addresses)),
            self.all_positions(),
        )

    def _look_at_itself(self) -> tuple[Position, ...]:
        """What its directories held when its process began."""
        if self._at_boot is None:
            self._at_boot = self._positions()
        return self._at_boot

    def refusal(self, hello: Hello, dialled: int | None = None) -> str | None:
        """Why a replica is not to be spoken with that says this, or None: it is what it says, as far as is known.

        ``dialled``: the replica that was expected at the other end.
        """
        number = hello.number
        reason = self._reason(hello, dialled)
        if reason is not None:
            self.note(number if dialled is None else dialled, "refused", reason)
            return reason
        self._agreed.add(number)
        current = self._current.get(number)
        if current is not None and current != hello.incarnation:
            former = self._former.setdefault(number, {})
            former[current] = None
            while len(former) > INCARNATIONS_MAX:
                del former[next(iter(former))]
        self._current[number] = hello.incarnation
        self.take_back(number, "stopped")
        self.hear(hello.positions)
        others = address_differences(self.addresses, hello.addresses)
        if others:
            self.note(number, "addresses", f"replica {number} has other addresses: {'; '.join(others)}", lasting=True)
        else:
            self.take_back(number, "addresses")
        return None

    def _reason(self, hello: Hello, dialled: int | None) -> str | None:
        number = hello.number
        if dialled is not None and number != dialled:
            at = address_text(self.addresses[dialled])
            return f"the replica at {at} is {number}, not {dialled}: are the addresses in the order of the indices?"
        if hello.configuration is None:
            return f"replica {number} does not say how it is configured"
        return (
            self.configuration_error(hello.configuration, number)
            or self.age_error(hello)
            or self.own_age_error(hello)
            or self.process_error(number, hello.incarnation)
        )

    def configuration_error(self, there: Configuration, number: int) -> str | None:
        """How a replica is configured that must be configured like this one."""
        different = differences(self.configuration, there)
        if not different:
            return None
        return f"replica {number} is configured differently from replica {self.replica}: {'; '.join(different)}"

    def age_error(self, hello: Hello) -> str | None:
        """Its data directory is older than what was heard from it."""
        for position in hello.positions:
            known = self._heard.get((position.replica, position.group))
            if position.replica != hello.number or known is None or known.incarnation == hello.incarnation:
                continue  # what one process says may overtake itself on another connection
            if is_older(position, known):
                return (
                    f"the data directory of replica {hello.number} is older than what was heard from it "
                    f"({_text(known)}; now {_text(position)}): it may have forgotten what it acknowledged. "
                    "Stop it; `vsr recover DIRECTORY --from-cluster ADDRESSES` puts it back"
                )
        return None

    def own_age_error(self, hello: Hello) -> str | None:
        """Another heard more of this replica, from a process before this one, than it had when this one began."""
        for mine in self._look_at_itself():
            for known in hello.positions:
                same = (known.replica, known.group) == (mine.replica, mine.group)
                if same and known.incarnation != self.incarnation and is_older(mine, known):
                    reason = (
                        f"the data directory of replica {self.replica} is older than what was heard from it "
                        f"({_text(known)}; it began with {_text(mine)}): it may have forgotten what it acknowledged"
                    )
                    self._on_outdated(mine.group, reason)
                    return f"{reason}; `vsr recover DIRECTORY --from-cluster ADDRESSES` puts it back"
        return None

    def process_error(self, number: int, incarnation: int) -> str | None:
        """A process that another one of the same index has taken the place of."""
        if incarnation in self._former.get(number, {}):
            return f"another process of replica {number} has come since: two of one index must not run"
        return None

    def certificate_error(self, transport: asyncio.BaseTransport, hello: Hello) -> str | None:
        """Why the certificate at the other end of a connection does not let it say this hello."""
        if self.tls is None:
            return None
        reason = subject_error(transport, self.cluster, hello.role, hello.number)
        return None if reason is None else f"{hello.role} {hello.number}: {reason}"

    def hear(self, positions: Iterable[Position]) -> None:
        """What others say of what they hold, and of what they heard from others."""
        for position in positions:
            if not 0 <= position.replica < self.count or position.replica == self.replica:
                continue
            key = (position.replica, position.group)
            known = self._heard.get(key)
            if known is not None or len(self._heard) < self.count * len(self.configuration.groups):
                self._heard[key] = position if known is None else newer(known, position)

    def all_positions(self) -> tuple[Position, ...]:
        """Its own, and what was heard of the others."""
        return (*self._positions(), *self.heard)

    @property
    def heard(self) -> tuple[Position, ...]:
        """What was heard of the others."""
        return tuple(self._heard.values())

    def note(self, peer: int, what: str, text: str, lasting: bool = False) -> bool:
        """A problem with a peer; ``lasting``: until it is taken back. True if it was not known already."""
        now, text = self._clock(), shown(text)
        before = self._problems.get((peer, what))
        self._problems[peer, what] = text, float("inf") if lasting else now + PROBLEM_SECONDS
        return before is None or before[0] != text or before[1] < now

    def take_back(self, peer: int, what: str) -> None:
        """A problem with a peer that is none any more."""
        self._problems.pop((peer, what), None)

    def problems(self) -> tuple[str, ...]:
        """What is wrong between this process and the others, now or a moment ago."""
        now = self._clock()
        return tuple(text for text, until in self._problems.values() if until >= now)


def is_older(found: Position, known: Position) -> bool:
    """True if a data directory that holds ``found`` cannot be the one that held ``known``."""
    if found.recoveries != known.recoveries:
        return found.recoveries < known.recoveries
    if found.view < known.view:
        return True
    return min(found.op, known.op) >= 0 and (found.log_view, found.op) < (known.log_view, known.op)


def newer(known: Position, found: Position) -> Position:
    """What is known of a replica after something else was heard of it."""
    if is_older(found, known):
        return known
    if found.recoveries > known.recoveries or found.op >= 0:
        return found
    return msgspec.structs.replace(found, log_view=known.log_view, op=known.op)


def _text(position: Position) -> str:
    log = f", op {position.op} of view {position.log_view}" if position.op >= 0 else ""
    again = f", recoveries {position.recoveries}" if position.recoveries else ""
    return f"view {position.view}{log}{again}"
