"""What the audit of one log remembers beside the state of the specification: names, messages, replies, what is due."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from typing import Any

from refinement.tigerbeetle.headers import Headers, Message

Row = Mapping[int, int]

HEADERS_ASKED = 64
"""Most headers in an answer to request_headers (2022)."""


class Reject(Exception):  # noqa: N818 - a verdict on the log, not an error of the program
    """A line that the specification does not explain; `refused` is (action, guard conjunct, arguments)."""

    def __init__(
        self,
        rule: str,
        message: str,
        expected: object = "",
        observed: object = "",
        refused: tuple[str, int, Mapping[str, int]] | None = None,
    ) -> None:
        self.rule = rule
        self.message = message
        self.expected = expected
        self.observed = observed
        self.refused = refused
        super().__init__(message)


class Prepared:
    """A prepare as it was made: the request's fields, and the timestamp once a header shows it."""

    __slots__ = ("checksum", "client", "operation", "parent", "request", "request_checksum", "timestamp")

    def __init__(self, checksum: str, parent: str, request: Message) -> None:
        self.checksum = checksum
        self.parent = parent
        self.client = request.string("client")
        self.request = request.number("request")
        self.operation = request.string("operation")
        self.request_checksum = request.checksum
        self.timestamp = -1


def _reply(message: Message) -> str:
    """What two copies of a reply share: in 2026 the view it is sent in is not part of it."""
    context = message.string("context").strip("0")
    if not context:
        return message.text
    return f"{context} {message.string('client')} {message.number('request')} {message.string('request_checksum')}"


class Run:
    """Bookkeeping of one log; its public methods are the helpers of the mapping."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.headers = Headers()
        self.ids: dict[str, int] = {}
        self.contents: dict[str, str] = {}
        self.checksums: dict[str, str] = {}
        self.messages: dict[int, Message] = {}
        self.labels: dict[int, str] = {}
        self.names: dict[str, int] = {}
        self.prepares: dict[int, Prepared] = {}
        self.clients: dict[str, int] = {}
        self.nonces: dict[str, int] = {}
        self.replies: dict[int, str] = {}
        self.requests: dict[tuple[str, int], str] = {}
        self.operations: dict[str, str] = {}
        self.due: list[list[tuple[tuple[str, ...], int]]] = [[] for _ in range(nodes)]
        self.writes: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        self.recovering = [-1] * nodes
        self.states = [""] * nodes
        self.lost_states = [""] * nodes
        self.first_state = ""
        self.state_after: dict[int, str] = {}
        self.coverage: Counter[str] = Counter()
        self.uses: list[str] = []
        self.store: Any = None
        self.program: Any = None
        self.request_of_checksum: dict[str, Message] = {}
        self.asked: dict[int, Message] = {}
        self.node_ids: dict[str, int] = {}
        self.new_disks: set[int] = set()
        self.opened = -1
        self.later: set[int] = set()
        self.to_clients: set[str] = set()
        self.walk: list[list[int]] = [[] for _ in range(nodes)]
        self.rows: dict[int, list[int]] = {}
        self.asked_top: dict[int, int] = {}
        self.outer = [0] * nodes
        self.last_sent: dict[int, tuple[int, int]] = {}

    # rejections

    def differs(self, field: str, expected: object, observed: object) -> Reject:
        """A field of the line does not agree with the state of the specification."""
        return Reject(f"line.{field}", f"{field} is {observed}, the specification says {expected}", expected, observed)

    def broken(self, event: str, message: str) -> Reject:
        """A condition of the mapping does not hold."""
        return Reject(f"{event}.condition", message)

    def refused(self, action: str, conjunct: int, args: Mapping[str, int]) -> Reject:
        """The action is not enabled."""
        message = f"the specification does not allow {action} here"
        return Reject(f"{action}/{conjunct}", message, refused=(action, conjunct, args))

    def overdue(self, node: int) -> Reject:
        """A line that had to come next did not."""
        events = " or ".join(self.due[node][0][0])
        return Reject(
            "line.missing", f"replica {node} had to go on with {events} before this line", events, "another line"
        )

    def unexpected(self, event: str) -> Reject:
        """A line came that no line before led to."""
        return Reject("line.unexpected", f"nothing before leads to {event}")

    def allowed(self, action: str) -> int:
        """Note the use of a permitted deviation; "taken"."""
        self.uses.append(action)
        return -1

    # messages

    def is_known(self, message: Message) -> bool:
        """Was this very header seen before, where it was sent?"""
        return message.text in self.ids

    def id_of(self, message: Message) -> int:
        """The message's number; a new one for a new header."""
        number = self.ids.get(message.text)
        if number is None:
            self._one_checksum(message)
            number = self.ids[message.text] = len(self.ids) + 1
            self.messages[number] = message
            if message.command == "request":
                self.request_of_checksum[message.checksum] = message
        return number

    def _one_checksum(self, message: Message) -> None:
        """A checksum stands for one header, and a header has one."""
        content = message.text.replace(message.checksum, "", 1)
        if self.contents.setdefault(message.checksum, content) != content:
            raise Reject("line.checksum", "another header had this checksum", self.contents[message.checksum], content)
        if self.checksums.setdefault(content, message.checksum) != message.checksum:
            raise Reject(
                "line.checksum", "the same header had another checksum", self.checksums[content], message.checksum
            )

    @staticmethod
    def are_zero(message: Message, fields: tuple[str, ...]) -> bool:
        """Are fields that have no meaning in a message 0?"""
        return not any(str(message.fields.get(field, "")).strip("0") for field in fields)

    def header_fits(self, checksum: str, op: int) -> bool:
        """Is the checksum, if it is one of a prepare, that of this op?"""
        e = self.names.get(checksum, 0)
        return e == 0 or self.store.v_p_op.get(e, 0) == op

    def current_message(self, node: int) -> Message:
        """The message that the replica handles."""
        message = self.messages.get(self.store.v_current[node])
        if message is None:
            raise Reject("line.unexpected", f"replica {node} has no message at hand")
        return message

    def handles(self, node: int, m: int) -> None:
        """The replica handles message m; one of its own is handled in the midst of another."""
        self.outer[node] = self.store.v_current[node] if self.messages[m].sender == node else m

    def resumed(self, node: int) -> int:
        """The message that a vote is counted for: its own, or, once that is counted, the one it was in the midst of."""
        current: int = self.store.v_current[node]
        own = self.messages[current].sender == node
        return self.outer[node] if own and self.store.v_join_of[node].get(node) == current else current

    def current_checksum(self, node: int) -> str:
        """Its checksum."""
        return self.current_message(node).checksum

    # prepares

    def prepare_of(self, checksum: str) -> int:
        """The prepare that the checksum names."""
        found = self.names.get(checksum)
        if found is None:
            raise Reject("line.checksum", f"no prepare with checksum {checksum} was made", "a prepare", checksum)
        return found

    def prepare_or_0(self, checksum: str) -> int:
        """The same; 0 for the checksum 0, which stands for any."""
        return 0 if not checksum.strip("0") else self.prepare_of(checksum)

    def new_prepare(self, checksum: str) -> int:
        """A number for a new prepare."""
        if checksum in self.names:
            raise Reject("line.checksum", f"a prepare with checksum {checksum} was made before")
        return len(self.prepares) + 2

    def prepared(self, e: int, node: int, checksum: str, parent: str) -> None:
        """Prepare e was made from the request that the replica handles."""
        self.names[checksum] = e
        self.labels[e] = checksum
        self.prepares[e] = Prepared(checksum, parent, self.current_message(node))

    def name_parent(self, e: int, checksum: str) -> None:
        """The root gets its checksum from the first prepare on top of it."""
        if e == 1 and 1 not in self.labels:
            self.labels[1] = checksum
            self.names[checksum] = 1

    def label_of(self, e: int) -> str:
        """The checksum of prepare e, "" if it is not known."""
        return self.labels.get(e, "")

    def named(self, e: int, checksum: str) -> bool:
        """Is that the checksum of prepare e? (The root's is not known before something stands on it.)"""
        known = self.labels.get(e)
        return known == checksum or (known is None and e == 1)

    def same_prepare(self, message: Message, e: int) -> bool:
        """Are the fields of a prepare's header those it was made with; does its timestamp rise above its parent's?"""
        prepare = self.prepares.get(e)
        if prepare is None:
            return e == 1
        return (
            message.parent == prepare.parent
            and message.string("client") == prepare.client
            and message.number("request") == prepare.request
            and message.string("operation") == prepare.operation
            and (message.string("request_checksum") or message.string("context")) == prepare.request_checksum
            and self._timestamp(prepare, message.number("timestamp"))
        )

    def _timestamp(self, prepare: Prepared, timestamp: int) -> bool:
        if prepare.timestamp < 0:
            prepare.timestamp = timestamp
        before = self.prepares.get(self.names.get(prepare.parent, 0))
        return prepare.timestamp == timestamp and (before is None or before.timestamp < timestamp)

    def same_request(self, message: Message, e: int) -> bool:
        """Are the fields of an acknowledgement those of its prepare?"""
        prepare = self.prepares.get(e)
        if prepare is None:
            return e == 1
        return (
            message.parent == prepare.parent
            and message.string("client") == prepare.client
            and message.number("request") == prepare.request
            and message.string("operation") == prepare.operation
            and self._timestamp(prepare, message.number("timestamp"))
        )

    def operation_fits(self, operation: str, e: int) -> bool:
        """Is it the operation of prepare e? (An operation without a name in headers has one name in such lines.)"""
        prepare = self.prepares.get(e)
        return prepare is not None and self.operations.setdefault(prepare.operation, operation) == operation

    # clients

    def client_id(self, client: str) -> int:
        """The client's number."""
        return self.clients.setdefault(client, len(self.clients) + 1)

    def client_of(self, node: int) -> int:
        """The client whose request the replica handles."""
        return self.client_id(self.current_message(node).string("client"))

    def request_of(self, node: int) -> int:
        """The number of that request."""
        return self.current_message(node).number("request")

    def is_register(self, node: int) -> int:
        """Does that request register a session?"""
        return int(self.current_message(node).string("operation").endswith(".register"))

    def request_agrees(self, message: Message) -> bool:
        """A client sends a request again as it was."""
        if message.command != "request":
            return True
        key = (message.string("client"), message.number("request"))
        return self.requests.setdefault(key, message.text) == message.text

    def sends_to_client(self, message: Message) -> None:
        """A replica sends this to a client."""
        self.to_clients.add(message.text)

    def was_sent_to_client(self, message: Message) -> bool:
        """Did one?"""
        return message.text in self.to_clients

    @staticmethod
    def is_own_request(message: Message) -> bool:
        """Is it a request of the cluster itself, and no client's?"""
        return not message.string("client").strip("0")

    def takes_request(self, node: int, checksum: str, client: str) -> None:
        """The primary takes up a request that reached it before, or that it makes itself."""
        message = self.request_of_checksum.get(checksum)
        if message is None or message.string("client") != client:
            raise Reject("line.checksum", "no client made this request", "a request", checksum)
        self.asked[node] = message

    def asked_client(self, node: int) -> int:
        """The client of the request taken up; 0: the cluster itself."""
        client = self.asked[node].string("client")
        return self.client_id(client) if client.strip("0") else 0

    def asked_number(self, node: int) -> int:
        """Its number."""
        return self.asked[node].number("request")

    def asked_register(self, node: int) -> int:
        """Does it register a session?"""
        return int(self.asked[node].string("operation").endswith(".register"))

    def prepared_request(self, e: int, node: int, checksum: str, parent: str) -> None:
        """Prepare e was made from the request taken up."""
        self.names[checksum] = e
        self.labels[e] = checksum
        self.prepares[e] = Prepared(checksum, parent, self.asked[node])

    def is_client(self, client: str, number: int) -> bool:
        """Is that the client's number?"""
        return self.clients.get(client) == number

    def reply_fits(self, message: Message, e: int) -> bool:
        """Does a reply answer the request of prepare e?"""
        prepare = self.prepares.get(e)
        return (
            prepare is not None
            and message.string("client") == prepare.client
            and message.number("request") == prepare.request
            and message.string("operation") == prepare.operation
            and (message.string("request_checksum") or message.parent) == prepare.request_checksum
        )

    def reply_agrees(self, message: Message) -> bool:
        """Is it the one reply of its op?"""
        return self.replies.setdefault(message.op, _reply(message)) == _reply(message)

    def reply_known(self, message: Message) -> bool:
        """Is a message that a client got a reply that a replica gave (other kinds are not looked at)?"""
        return message.command != "reply" or self.replies.setdefault(message.op, _reply(message)) == _reply(message)

    def state_agrees(self, node: int, op: int, before: str, after: str) -> bool:
        """The state machine's state after op is the same everywhere, and starts from that of the op before."""
        if not self.first_state:
            self.first_state = before
        expected = self.states[node] or self.first_state
        self.states[node] = after
        return before == expected and self.state_after.setdefault(op, after) == after

    def state_is_first(self, node: int, before: str, after: str) -> bool:
        """A replica that started again has the state of an empty log: noticed once, from the state it had."""
        lost, self.lost_states[node] = self.lost_states[node], ""
        return bool(lost) and before == lost and after == self.first_state

    # recovery

    def nonce_of(self, nonce: str) -> int:
        """The nonce's number."""
        return self.nonces.setdefault(nonce, len(self.nonces) + 1)

    def recovers_from(self, node: int, b: int) -> None:
        """The replica takes the log that b answered with; -1: no longer."""
        self.recovering[node] = b

    def recovering_from(self, node: int) -> int:
        """Whose answer the replica recovers from; -1: nobody's."""
        return self.recovering[node]

    def forget(self, node: int) -> None:
        """The replica died."""
        self.due[node].clear()
        self.recovering[node] = -1
        self.lost_states[node], self.states[node] = self.states[node], ""
        for key in [key for key in self.writes if key[0] == node]:
            del self.writes[key]

    # data files

    def formatted(self, node: int, id: str) -> None:
        """The replica's data file was made, under this id; a second one replaces the first."""
        if node in self.node_ids.values():
            self.new_disks.add(node)
        self.node_ids[id] = node

    def node_of_id(self, id: str) -> int:
        """Whose data file has this id."""
        node = self.node_ids.get(id)
        if node is None:
            raise Reject("line.id", f"no data file was made under the id {id}", "an id", id)
        return node

    def is_new_disk(self, node: int) -> bool:
        """Is the data file a new one (asked once)?"""
        new = node in self.new_disks
        self.new_disks.discard(node)
        return new

    def opens(self, node: int, checkpoint: int) -> None:
        """The replica's data file is opened."""
        self.opened = node
        if checkpoint:
            self.later.add(node)

    def opening(self) -> int:
        """The replica whose data file was opened last."""
        return self.opened

    def starts_later(self, node: int) -> None:
        """The replica's client table is that of a checkpoint, which the log does not show."""
        self.later.add(node)

    def started_later(self, node: int) -> bool:
        """Is it?"""
        return node in self.later

    def listed_prepare(self, checksum: str, op: int) -> int:
        """The prepare of a header in the superblock; 0 = blank, or the root, whose checksum it gives."""
        if op == 0:
            self.name_parent(1, checksum)
            return 1
        return self.names.get(checksum, 0)

    # sending

    def sends(self, node: int, m: int, to: int) -> None:
        """The replica is about to send message m."""
        self.last_sent[node] = (m, to)

    def sending(self, node: int) -> int:
        """The message it is about to send."""
        return self.last_sent[node][0]

    def sending_to(self, node: int) -> int:
        """To whom."""
        return self.last_sent[node][1]

    def take_bits(self, message: Message, m: int, node: int, low: int, high: int) -> None:
        """The bits of a join_view, head first: each is a step of its own."""
        nacks, present = message.number("nack_bitset"), message.number("present_bitset")
        for position in range(high - low + 1):
            o, b, p = high - position, nacks >> position & 1, present >> position & 1
            failed = self.program.replay.functions["join_view_bits"](self.store, node, m, o, b, p)
            if failed >= 0:
                raise self.refused("join_view_bits", failed, {"r": node, "m": m, "o": o, "b": b, "p": p})
            self.coverage["join_view_bits"] += 1

    @staticmethod
    def bits_of(bits: str) -> list[int]:
        """Positions of the ones in a binary number."""
        return [position for position, bit in enumerate(reversed(bits)) if bit == "1"]

    @staticmethod
    def all_in(members: list[int], row: Row) -> bool:
        """Are all of them set in the row?"""
        return all(row.get(member) for member in members)

    @staticmethod
    def marks(status: int, leads: bool) -> str:
        """The letter that a line shows for a replica."""
        letter = "nvrh"[status]
        return letter.upper() if leads else letter

    # disk

    def queue_write(self, node: int, slot: int, e: int) -> None:
        """Writes of a slot come one after the other."""
        self.writes[node, slot].append(e)

    def written(self, node: int, slot: int) -> int:
        """The write of that slot that is done."""
        queue = self.writes.get((node, slot))
        if not queue:
            raise Reject("line.unexpected", f"replica {node} wrote no prepare to slot {slot}")
        return queue.popleft()

    # headers that a message brings

    def walks(self, node: int, *messages: int) -> None:
        """The replica goes through the headers of these messages now, each from its head down."""
        ops: list[int] = []
        for m in messages:
            message = self.messages.get(m)
            if message is None:
                continue
            row = self.rows.get(m)
            if row is None:
                row = self.rows[m] = self._row(m)
            ops += row[:HEADERS_ASKED] or ([message.op] if message.command == "prepare" else [])
        self.walk[node] = ops[::-1]

    def walks_votes(self, node: int) -> None:
        """The same for the votes that it counted."""
        self.walks(node, *(m for _, m in sorted(self.store.v_dvc_of[node].items()) if m))

    def _row(self, m: int) -> list[int]:
        header = self.store.v_m_header
        top = self.store.v_m_op.get(m, 0) or max(self.asked_top.get(m, 0), 0)
        return [o for o in range(top, -1, -1) if header.get((m, o))]

    def answers(self, m: int, hi: int) -> None:
        """Message m carries headers up to op hi."""
        self.asked_top[m] = hi

    def next_header(self, node: int) -> int:
        """The op of the header that comes next; without any, that of the prepare which the primary repairs for itself."""
        walk = self.walk[node]
        return walk.pop() if walk else int(self.store.v_pipeline_lo[node])

    # rows of the store

    @staticmethod
    def ones(row: Row) -> int:
        """How many cells are set."""
        return sum(map(bool, row.values()))

    used = ones

    @staticmethod
    def held(row: Row, low: int, high: int) -> int:
        """How many cells from low to high are not 0."""
        return sum(1 for o in range(low, high + 1) if row.get(o))

    @staticmethod
    def newest(row: Row, top: int, limit: int) -> int:
        """The lowest of the `limit` highest cells up to top that are not 0."""
        found = top
        while limit and top >= 0:
            if row.get(top):
                found, limit = top, limit - 1
            top -= 1
        return found

    def best_vote(self, node: int) -> int:
        """The first replica whose vote has the largest (log_view, op)."""
        log_view, op = self.store.v_m_log_view, self.store.v_m_op
        votes: list[tuple[int, int]] = [(q, m) for q, m in sorted(self.store.v_dvc_of[node].items()) if m]
        if not votes:
            raise Reject("line.unexpected", f"replica {node} has no votes to merge")
        return max(votes, key=lambda vote: (log_view.get(vote[1], 0), op.get(vote[1], 0), -vote[0]))[0]

    def best_answer(self, node: int) -> int:
        """The primary of the highest view among the answers."""
        views: list[int] = [self.store.v_m_view.get(m, 0) for m in self.store.v_response_of[node].values() if m]
        if not views:
            raise Reject("line.unexpected", f"replica {node} has no answers to recover from")
        return max(views) % self.nodes


HELPERS = frozenset(name for name in vars(Run) if not name.startswith("_")) - {
    "differs",
    "broken",
    "refused",
    "overdue",
    "unexpected",
    "allowed",
}
