"""What the audit of one log remembers beside the state of the specification; its methods are the mapping's helpers."""

from __future__ import annotations

from collections import Counter

from viewproof.refinement.tigerbeetle.headers import Message
from viewproof.refinement.tigerbeetle.names import HEADERS_ASKED, Names, Prepared, Reject, Row, reply_identity

__all__ = ["HELPERS", "Bookkeeping", "Reject"]


class Bookkeeping(Names):
    """Bookkeeping of one log; its public methods are the helpers of the mapping."""

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

    def asked_session(self, node: int) -> int:
        """Its session."""
        return self.asked[node].number("session")

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
        return self.replies.setdefault(message.op, reply_identity(message)) == reply_identity(message)

    def reply_known(self, message: Message) -> bool:
        """Is a message that a client got a reply that a replica gave (other kinds are not looked at)?"""
        return message.command != "reply" or self.replies.setdefault(
            message.op, reply_identity(message)
        ) == reply_identity(message)

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

    def nonce_or_0(self, nonce: str) -> int:
        """The same; 0 for the nonce 0, which is none."""
        return self.nonce_of(nonce) if nonce.strip("0") else 0

    def recovers_from(self, node: int, b: int) -> None:
        """The replica takes the log that b answered with; -1: no longer."""
        self.recovering[node] = b

    def recovering_from(self, node: int) -> int:
        """Whose answer the replica recovers from; -1: nobody's."""
        return self.recovering[node]

    def was_set_up(self, node: int) -> bool:
        """Was the replica's memory set up before? It is once at the start, and again whenever it crashes."""
        before = node in self.set_up
        self.set_up.add(node)
        return before

    def is_early(self, label: str, decision: str) -> bool:
        """Is the table of cases that of the first week of June? The labels of sound slots tell, which come first."""
        if self.early is None and decision in ("eql", "nil"):
            self.early = label in ("@L", "@H")
        return bool(self.early)

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
        """The replica goes through the headers of these messages now, in whatever order."""
        ops: Counter[int] = Counter()
        for m in messages:
            message = self.messages.get(m)
            if message is None:
                continue
            row = self.rows.get(m)
            if row is None:
                row = self.rows[m] = self._row(m)
            ops.update(row[:HEADERS_ASKED] or ([message.op] if message.command == "prepare" else []))
        self.walk[node] = ops

    def walks_votes(self, node: int) -> None:
        """The same for the votes that it counted."""
        self.walks(node, *filter(None, self.store.v_dvc_of[node].values()))

    def _row(self, m: int) -> list[int]:
        header = self.store.v_m_header
        top = self.store.v_m_op.get(m, 0) or max(self.asked_top.get(m, 0), 0)
        return [o for o in range(top, -1, -1) if header.get((m, o))]

    def answers(self, m: int, hi: int) -> None:
        """Message m carries headers up to op hi."""
        self.asked_top[m] = hi

    def takes_header(self, node: int, op: int) -> bool:
        """Does it go through a header of this op: one of those messages, or (with none left) that of the prepare which
        the primary repairs for itself?
        """
        walk = self.walk[node]
        if not walk:
            return op == int(self.store.v_pipeline_lo[node])
        if op not in walk:
            return False
        walk[op] -= 1
        if not walk[op]:
            del walk[op]
        return True

    def takes_header_above(self, node: int, op: int) -> bool:
        """Does it go through one above that op?"""
        top = max(self.walk[node], default=self.store.v_pipeline_lo[node])
        return int(top) > op and self.takes_header(node, top)

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


HELPERS = frozenset(name for name in dir(Bookkeeping) if not name.startswith("_")) - {
    "differs",
    "broken",
    "refused",
    "overdue",
    "unexpected",
    "allowed",
}
