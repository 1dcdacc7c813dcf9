"""The border of the simulated processes: who speaks with whom, and strangers who try to.

The real border judges: `impl.net.peers` each pair of processes that meet, `impl.net.inbound` and `impl.net.guard` each
frame of a stranger. One replica may be formatted otherwise, or brought back with files from a backup; what the others
refuse is shut out, and the rest must go on without it. A stranger has a certificate of a client at most; of what it
sends nothing may reach a replica.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from viewproof.impl.faults import stand_in
from viewproof.impl.interface.durable import ClientTableConfig, Quorums
from viewproof.impl.interface.messages import Message, Request
from viewproof.impl.net.configuration import configuration_of
from viewproof.impl.net.framing import Hello, Position, Status
from viewproof.impl.net.guard import Guard
from viewproof.impl.net.inbound import Inbound, InboundHost
from viewproof.impl.net.limits import Limits
from viewproof.impl.net.peers import Peers
from viewproof.impl.net.tls import Tls
from viewproof.impl.replica import ReplicaConfig
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.sim.storage import SimStorage
from viewproof.impl.sim.strangers import StrangerTransport, attack

if TYPE_CHECKING:
    from viewproof.impl.sim.cluster import SimCluster

TELL_TICKS = 10
"""Between two times that processes tell each other what they hold, and try again whom they refused."""

RECENT = 64
"""Messages that a stranger has seen."""

BACKUP_TICKS = 100
"""A backup is at least so old when it is put back."""

RESTART_TICKS = 50
"""From when a backup is noticed until all processes are started anew."""

WRONG = ("quorums", "quorums", "client table", "checkpoint interval")
"""In what a replica differs; half of the time, quorums."""


class BorderChecker(Checker):
    """Nothing of what a stranger sends reaches a replica."""

    name = "border"


class Door:
    """Of one process: what it knows of the others, and where strangers come in."""

    def __init__(self, border: SimBorder, node: int) -> None:
        cluster = border.cluster
        self.node = node
        self.guard = stand_in("guard", Guard, border.faults, node)()
        block = cluster.storages[node].superblock
        interval = border.config_of(node).checkpoint_interval
        count = len(cluster.replicas)
        self.peers = stand_in("peers", Peers, border.faults, node)(
            cluster=block.cluster,
            replica=node,
            addresses=[("replica", index) for index in range(count)],
            configuration=configuration_of([block], interval, cluster.profile.segment_bytes),
            incarnation=cluster.incarnations[node] * count + node + 1,
            sessions=block.clients.sessions,
            positions=lambda: (border.position(node, self.peers.incarnation),),
            tls=cast(Tls, object()),
            clock=border.seconds,
            on_outdated=lambda group, reason: border.on_outdated(node, reason),
        )
        self.host = InboundHost(
            peers=self.peers,
            limits=Limits(),
            on_request=lambda connection, group, request: self._take(border, request),
            on_peer_message=lambda group, message: self._take(border, message),
            status=lambda group: Status(block.cluster, node, count, "", 0, 0, 0, 0, 0, 0, ()),
            flush_later=lambda: None,
            clock=border.seconds,
            kind=stand_in("inbound", Inbound, border.faults, node),
        )
        self.host.log = type(self.host.log)(lambda text: None, clock=border.seconds)

    def _take(self, border: SimBorder, message: Message) -> None:
        """A stranger's frame was not refused so far: as `impl.net.server` goes on."""
        replica = border.cluster.replicas[self.node]
        if replica is None or self.guard.too_far(message, replica.state) is not None:
            return
        if isinstance(message, Request) and not border.takes_requests(self.node):
            return
        border.checker.fail(
            f"tick {border.cluster.now}: replica {self.node} took a stranger's {type(message).__name__}"
        )
        border.cluster.deliver(self.node, message)


class SimBorder:
    """Between the processes of a cluster.

    `met` are pairs of them that said hello, `refused` those that do not speak, `_known` replicas that met one ever.

    `wrong`: the replica that is formatted otherwise, and how; None: all are alike. `restored`: the replica whose files
    are from a backup, and how many lines its trace had before.
    """

    def __init__(self, cluster: SimCluster, faults: frozenset[str]) -> None:
        self.cluster = cluster
        self.faults = faults
        self.checker = BorderChecker()
        self.doors: dict[int, Door] = {}
        self.refused: set[tuple[int, int]] = set()
        self.met: set[tuple[int, int]] = set()
        self._known: set[int] = set()
        self.recent: deque[Message] = deque(maxlen=RECENT)
        self.wrong: tuple[int, str] | None = None
        self.restored: tuple[int, int] | None = None
        self._known_outdated = False
        self._backup: tuple[int, int, Position, dict[str, object]] | None = None
        profile, random = cluster.profile, cluster.random
        if profile.misconfigured:
            first = random.random() < 0.5  # the first primary does most harm
            self.wrong = 0 if first else random.randrange(len(cluster.replicas)), random.choice(WRONG)
            self._format_otherwise(*self.wrong)
        cluster.at(TELL_TICKS, self._tell)
        if profile.stranger_interval_ticks:
            self._strike_later()

    def _format_otherwise(self, node: int, what: str) -> None:
        storage = self.cluster.storages[node]
        block, count = storage.superblock, len(self.cluster.replicas)
        if what == "quorums":
            quorums = Quorums(1, count) if self.cluster.random.random() < 0.5 else Quorums(count, 1)
            block = replace(block, quorums=quorums)
        elif what == "client table":
            clients = ClientTableConfig(block.clients.slots + 2, not block.clients.sessions, False)
            block = replace(block, clients=clients)
        storage.formatted = storage.superblock = block

    # Who speaks with whom

    @property
    def shut_out(self) -> frozenset[int]:
        """The replica with which no process that it met speaks, if there is one, once it has met one."""
        node = self.outsider
        if node is None or node not in self._known:
            return frozenset()
        met = {pair for pair in self.met if pair[0] == node}
        return frozenset((node,)) if met <= self.refused else frozenset()

    @property
    def outsider(self) -> int | None:
        """The replica that is not to be counted on: it is formatted otherwise, or its files are old."""
        restored = None if self.restored is None else self.restored[0]
        return restored if self.wrong is None else self.wrong[0]

    def linked(self, a: int, b: int) -> bool:
        """True if two processes speak with each other."""
        return (a, b) not in self.refused

    def passes(self, a: int, b: int, message: Message) -> bool:
        """True if a message between two processes goes out; strangers may have seen it."""
        self.recent.append(message)
        return self.linked(a, b)

    def takes_requests(self, node: int) -> bool:
        """True if its process takes requests of clients."""
        return self.doors[node].peers.has_majority

    def on_boot(self, node: int) -> None:
        """A process began, and dials all others, as they dial it."""
        self.doors[node] = Door(self, node)
        for other in sorted(self.doors.keys() - {node}):
            self._meet(node, other)

    def on_crash(self, node: int) -> None:
        """A process has ended: the next one of this replica has met nobody."""
        self.doors.pop(node, None)
        self.met = {pair for pair in self.met if node not in pair}

    def _meet(self, a: int, b: int) -> None:
        one, two = self.doors[a].peers, self.doors[b].peers
        hellos = one.hello(), two.hello()
        reasons = one.refusal(hellos[1], dialled=b), two.refusal(hellos[0], dialled=a)
        pair = {(a, b), (b, a)}
        self.met |= pair
        self._known |= {a, b}
        if any(reasons):
            self.cluster.statistics["links_refused"] += not pair <= self.refused
            self.refused |= pair
        else:
            self.refused -= pair

    def _tell(self) -> None:
        """What each holds, to those that it speaks with; whom it refused may have changed."""
        for a in sorted(self.doors):
            for b in sorted(self.doors):
                if a < b and not self.linked(a, b):
                    self._meet(a, b)
                elif a != b and self.linked(a, b) and (a, b) not in self.cluster.network.cut:
                    self.doors[b].peers.hear(self.doors[a].peers.all_positions())
        self._back_up()
        self.cluster.at(self.cluster.now + TELL_TICKS, self._tell)

    def position(self, node: int, incarnation: int) -> Position:
        """What the disk of a replica holds, as `impl.net.group_host` says it."""
        replica, block = self.cluster.replicas[node], self.cluster.storages[node].superblock
        op = -1
        if replica is not None:
            state = replica.state
            known = str(state.status) != "recovering" and state.log_view == state.superblock.log_view
            op = state.durable_op if known else -1
        return Position(node, block.group, block.recoveries, block.view, block.log_view, op, incarnation)

    def config_of(self, node: int) -> ReplicaConfig:
        """The configuration of a replica's process."""
        config = self.cluster.config
        if self.wrong == (node, "checkpoint interval"):
            return replace(config, checkpoint_interval=max(1, config.checkpoint_interval - 3))
        return config

    def seconds(self) -> float:
        """The clock of the processes."""
        return float(self.cluster.now)

    # Backups

    def _back_up(self) -> None:
        """The files of one replica are copied, once."""
        cluster, random = self.cluster, self.cluster.random
        if not cluster.profile.backup or self._backup is not None or random.random() > 0.1:
            return
        node = random.randrange(len(cluster.replicas))
        if (replica := cluster.replicas[node]) is None or replica.state.commit_min == 0:
            return
        position = self.position(node, 0)
        if position.op >= 0 and not cluster.storages[node].in_flight:
            self._backup = node, cluster.now, position, _durable(cluster.storages[node])

    def may_restore(self, node: int) -> bool:
        """True if the replica, which has just crashed, is brought back with its backup.

        That its files are old can only be noticed if enough others, all of which run, have heard of newer ones.
        """
        cluster = self.cluster
        if self._backup is None or self._backup[0] != node or self.restored is not None:
            return False
        _, at, position, _ = self._backup
        others = self.doors.keys() - {node}
        heard = [
            each
            for other in others
            for each in self.doors[other].peers.heard
            if each.replica == node and (each.view > position.view or (each.log_view, each.op) > _log(position))
        ]
        whole = len(others) == len(cluster.replicas) - 1 and len(heard) == len(others)
        return whole and cluster.now - at >= BACKUP_TICKS and cluster.random.random() < cluster.profile.backup

    def restore(self, node: int) -> None:
        """The files of the replica are those of its backup."""
        assert self._backup is not None
        self.cluster.statistics["backups_restored"] += 1
        self.restored = node, len(self.cluster.lines[node])
        for name, value in self._backup[3].items():
            setattr(self.cluster.storages[node], name, value)

    def on_outdated(self, node: int, reason: str) -> None:
        """The replica's files are known to be old. Soon after all processes are started anew, and none remembers it."""
        storage, cluster = self.cluster.storages[node], self.cluster
        if not self._known_outdated:
            self._known_outdated = True
            cluster.at(cluster.now + RESTART_TICKS, self._restart_all)
        storage.keep_outdated(reason)

    def _restart_all(self) -> None:
        """Every process ends, and is started again; not once the run is to calm down."""
        if not self.cluster.profile.backup:
            return
        self.cluster.statistics["restarts_of_all_beside_a_backup"] += 1
        for node in sorted(self.doors):
            self.cluster.crash(node)
            self.cluster.on_stop(node)

    def lines_of_member(self, node: int, lines: list[bytes]) -> list[bytes]:
        """Of the trace, what the replica wrote while it was one: nothing while it is shut out."""
        if self.outsider != node or node not in self.shut_out:
            return lines
        return lines[: self.restored[1]] if self.restored is not None else []

    # Strangers

    def _strike_later(self) -> None:
        cluster = self.cluster
        wait = 1 + int(cluster.random.expovariate(1.0 / cluster.profile.stranger_interval_ticks))
        cluster.at(cluster.now + wait, self._strike)

    def _strike(self) -> None:
        cluster = self.cluster
        if not cluster.profile.stranger_interval_ticks:
            return
        up = [node for node in sorted(self.doors) if cluster.replicas[node] is not None]
        if up:
            self._send(cluster.random.choice(up))
        self._strike_later()

    def _send(self, node: int) -> None:
        door, cluster = self.doors[node], self.cluster
        replica = cluster.replicas[node]
        assert replica is not None
        kind, subject, frames = attack(cluster.random, replica, self._hellos(node), list(self.recent))
        transport = StrangerTransport(subject)
        connection = door.host.kind(door.host)
        door.host.opened(connection)
        connection.connection_made(transport)
        before = Counter(door.host.refused)
        for frame in frames:
            if not transport.is_closing():
                connection.data_received(frame)
        connection.connection_lost(None)
        refused = transport.is_closing() or door.host.refused != before
        cluster.statistics[f"strangers: {kind}, {'refused' if refused else 'not heard'}"] += 1

    def _hellos(self, node: int) -> dict[int, Hello]:
        return {other: door.peers.hello() for other, door in self.doors.items() if other != node}


def _log(position: Position) -> tuple[int, int]:
    return position.log_view, position.op


def _durable(storage: SimStorage) -> dict[str, object]:
    """What lies on a disk."""
    names = ("superblock", "records", "snapshots", "segments")
    return {name: copy.deepcopy(getattr(storage, name)) for name in names}
