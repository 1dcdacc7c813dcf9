"""What the audit of one log remembers beside the spec state, first part: what is due, messages, prepares."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from typing import Any

from viewproof.refinement.tigerbeetle.headers import Headers, Message

Row = Mapping[int, int]
_INVARIANT = re.compile(r" \((I\d+)\)$")
"""What a condition of the mapping ends with that states an invariant of the catalogue."""

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


def reply_identity(message: Message) -> str:
    """What two copies of a reply share: in 2026 the view it is sent in is not part of it."""
    context = message.string("context").strip("0")
    if not context:
        return message.text
    return f"{context} {message.string('client')} {message.number('request')} {message.string('request_checksum')}"


class Names:
    """Bookkeeping of one log: rejections, messages, prepares."""

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
        self.announced: dict[int, str] = {}
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
        self.walk: list[Counter[int]] = [Counter() for _ in range(nodes)]
        self.rows: dict[int, list[int]] = {}
        self.asked_top: dict[int, int] = {}
        self.outer = [0] * nodes
        self.early: bool | None = None
        self.set_up: set[int] = set()
        self.last_sent: dict[int, tuple[int, int]] = {}

    # rejections

    def differs(self, field: str, expected: object, observed: object) -> Reject:
        """A field of the line does not agree with the state of the specification."""
        return Reject(f"line.{field}", f"{field} is {observed}, the specification says {expected}", expected, observed)

    def broken(self, event: str, message: str) -> Reject:
        """A condition of the mapping does not hold."""
        found = _INVARIANT.search(message)
        return Reject(found[1] if found else f"{event}.condition", message)

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
        self.announced[len(self.prepares) + 2] = checksum
        return len(self.prepares) + 2

    def is_new(self, checksum: str, e: int) -> bool:
        """Is that the checksum under which the new prepare was announced?"""
        return self.announced.get(e) == checksum

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
        store = self.store
        return (
            message.parent == prepare.parent
            and message.op == store.v_p_op.get(e, 0)
            and message.view == store.v_p_view.get(e, 0)
            and message.commit == store.v_p_commit.get(e, 0)
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
