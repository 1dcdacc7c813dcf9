"""A client of the cluster: finds the primary, registers, retries under one number, carries the Lamport clock.

One request is outstanding at a time (the protocol allows no more per client; use more clients instead). A request is
sent again, with its number, until it is answered or its time is up; after that its outcome is unknown: it may
be executed later. The client then takes no new operation, only ``retry`` of the same one.

Where the cluster has sessions, the client registers before its first request (docs/clients-and-control.md). If its
session is evicted, it registers with the next incarnation; it sends the request again if it is certain that it was not
executed, and raises EvictedError if it is not. If another client registers with its id, it is fenced for good.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from viewproof.impl.interface.messages import Eviction, Reply, Request, register_result
from viewproof.impl.interface.ranges import BODY_SIZE_MAX, CLIENT_CLOCK_MAX, NUMBER_MAX
from viewproof.impl.machine.state_machine import (
    Append,
    CompareAndSet,
    Delete,
    Done,
    Get,
    Operation,
    Outcome,
    Put,
    Result,
    Value,
    decode_result,
    encode_operation,
)
from viewproof.impl.net.address import Address, address_text
from viewproof.impl.net.connection import Connection, fetch_status, open_connection
from viewproof.impl.net.errors import (
    ClientBusyError,
    ClientClosedError,
    ClientError,
    EvictedError,
    FencedError,
    RefusedError,
    ReplyError,
    RequestTimeoutError,
    RequestTooLargeError,
    UncertainError,
    UnreachableError,
)
from viewproof.impl.net.framing import Goodbye, NotPrimary, Status, frame_message
from viewproof.impl.net.tls import Tls

__all__ = [
    "Client",
    "ClientBusyError",
    "ClientClosedError",
    "ClientError",
    "EvictedError",
    "FencedError",
    "RefusedError",
    "ReplyError",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "UncertainError",
    "UnreachableError",
]

_ResultT = TypeVar("_ResultT")

CLIENT_ID_MAX = (1 << 62) - 1

CONNECT_SECONDS = 1.0


@dataclass(slots=True)
class _Pending:
    """The operation that waits for its answer; ``doubtful``: copies sent that are not known to be void."""

    body: bytes
    request: Request | None = None
    doubtful: int = 0

    @property
    def executed(self) -> bool | None:
        """False if it certainly was not and will not be executed, else unknown."""
        return None if self.doubtful else False


class Client:
    """Asyncio client. Times are in seconds. Use within one event loop; ``async with`` closes it.

    ``session``: that of the client, 0 before it has registered and where the cluster has no sessions;
    ``incarnation``: how often it has begun anew, by the clock: it rises also across restarts of the program.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: int,
        client_id: int | None = None,
        timeout_seconds: float = 30.0,
        retry_seconds: float = 0.4,
        retry_seconds_max: float = 2.0,
        unreachable_seconds: float | None = None,
        group: int = 0,
        send_twice: float = 0.0,
        may_be_copied: bool = False,
        tls: Tls | None = None,
    ) -> None:
        """``client_id`` None: a random one of 62 bits. Without sessions, one must never have been used before.

        With sessions a client that uses the id of another fences it: the later one to register goes on.
        ``unreachable_seconds``: give up, with UnreachableError, once no replica has accepted a connection for so long
        (None: only when the time of the request is up). ``group``: number of the consensus group it talks to
        (impl/groups/group.py); a process that does not run it refuses. ``send_twice``: chance that a message is sent
        twice, for tests. ``may_be_copied``: something on the way, as a proxy that tries again, may copy requests; then
        no refusal of one says that it was not executed. ``tls``: certificate of the client, and whom it trusts.
        """
        if not addresses:
            raise ValueError("a client needs at least one address")
        self.addresses = tuple(addresses)
        self.client_id = client_id if client_id is not None else 1 + secrets.randbelow(CLIENT_ID_MAX)
        if not 1 <= self.client_id <= CLIENT_ID_MAX:
            raise ValueError(f"client_id must be in 1..{CLIENT_ID_MAX}, got {self.client_id}")
        self.clock = 0
        self.request_number = 0
        self.session = 0
        self.incarnation = time.time_ns() // 1000
        self.evictions = 0
        self.view = 0
        self.retries = 0
        self._cluster = cluster
        self._timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._retry_seconds_max = retry_seconds_max
        self._unreachable_seconds = unreachable_seconds
        self._send_twice = send_twice
        self._may_be_copied = may_be_copied
        self._group = group
        self._tls = tls
        self._target = 0
        self._connection: Connection | None = None
        self._pending: _Pending | None = None
        self._refusals: dict[int, RefusedError] = {}
        self._silent: set[int] = set()
        self._fenced = ""
        self._registered = False
        self._busy = False
        self._closed = False

    async def execute(self, operation: Operation) -> Result:
        """Send one operation and return its result.

        Raises RequestTimeoutError, UnreachableError, EvictedError, FencedError, RequestTooLargeError, UncertainError,
        ClientBusyError, ClientClosedError, ReplyError, or RefusedError once more than half of the replicas refuse.
        """
        self._check_usable()
        if self._pending is not None:
            text = f"request {self.request_number + 1} of client {self.client_id} has no answer yet: retry() asks again"
            raise UncertainError(text, False)
        body = encode_operation(operation)
        if len(body) > BODY_SIZE_MAX:
            text = f"the operation takes {len(body)} bytes; at most {BODY_SIZE_MAX} are allowed"
            raise RequestTooLargeError(text, False)
        self._pending = _Pending(body)
        return await self.retry()

    async def retry(self) -> Result:
        """Ask again for the request that had no answer. Raises as ``execute``; ClientError if there is none."""
        self._check_usable()
        pending = self._pending
        if pending is None:
            raise ClientError("there is no unanswered request to retry", False)
        self._busy = True
        try:
            async with asyncio.timeout(self._timeout_seconds):
                reply = await self._converse(pending)
        except TimeoutError as error:
            raise RequestTimeoutError(self._timeout_text(pending), pending.executed) from error
        except (UnreachableError, RefusedError) as error:
            error.executed = pending.executed
            raise
        finally:
            self._busy = False
            if not pending.doubtful:
                self._pending = None
        self._pending = None
        self.request_number = reply.request
        self.view = max(self.view, reply.view)
        try:
            return decode_result(reply.body)
        except msgspec.DecodeError as error:
            raise ReplyError(f"the answer to request {reply.request} does not decode: {error}", True) from error

    def abandon(self) -> None:
        """Give up the request that had no answer: it is executed once or never, and never after the next operation.

        The next operation registers anew, which fences the session of the one given up. Raises ClientError if there is
        none, or the cluster has no sessions: there nothing can keep a copy from being executed later.
        """
        self._check_usable()
        if self._pending is None:
            raise ClientError("there is no unanswered request to give up", False)
        if not self.session:
            raise ClientError("without sessions a request cannot be given up: retry() asks for its answer", False)
        self._pending = None
        self.session = 0
        self.incarnation = max(self.incarnation + 1, time.time_ns() // 1000)
        self._drop()

    async def put(self, key: bytes, value: bytes) -> None:
        """Set ``key`` to ``value``."""
        _expect(await self.execute(Put(key, value)), Done)

    async def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, None if it is absent."""
        return _expect(await self.execute(Get(key)), Value).value

    async def delete(self, key: bytes) -> bool:
        """Remove ``key``; True if it was there."""
        return _expect(await self.execute(Delete(key)), Outcome).success

    async def append(self, key: bytes, value: bytes) -> None:
        """Append ``value`` to the value of ``key``; an absent one counts as empty."""
        _expect(await self.execute(Append(key, value)), Done)

    async def compare_and_set(self, key: bytes, expected: bytes | None, value: bytes) -> bool:
        """Set ``key`` to ``value`` if its value is ``expected`` (None: absent); True if that was so."""
        return _expect(await self.execute(CompareAndSet(key, expected, value)), Outcome).success

    async def is_feature_enabled(self, feature: int) -> bool:
        """True if the replica that it talks to has the feature enabled, at what it has executed."""
        return bool((await self._status()).features >> feature - 1 & 1)

    async def database_checksum(self) -> tuple[int, str]:
        """commit_min of the replica that it talks to, and the database checksum there, "" without the feature."""
        answer = await self._status()
        return answer.commit_min, answer.checksum

    async def _status(self) -> Status:
        self._check_usable()
        address = self.addresses[self._target]
        answer = await fetch_status(address, self._cluster, CONNECT_SECONDS, self._group, self._tls)
        if answer is None:
            raise UnreachableError(f"the replica at {address_text(address)} does not answer", False)
        return answer

    async def close(self) -> None:
        """Close the connection. An outstanding request is left without an answer."""
        self._closed = True
        self._drop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise ClientClosedError("the client is closed", False)
        if self._fenced:
            raise FencedError(self._fenced, False)
        if self._busy:
            text = f"client {self.client_id} has a request outstanding; use one client per task"
            raise ClientBusyError(text, False)

    def _timeout_text(self, pending: _Pending) -> str:
        name = f"of client {self.client_id} had no answer within {self._timeout_seconds} s"
        if pending.request is None:
            return f"the register {name}; the operation was not sent{self._refusals_text()}"
        fate = "it may still be executed" if pending.doubtful else "it was not executed"
        return f"request {pending.request.request} {name}; {fate}{self._refusals_text()}"

    # The conversation

    async def _converse(self, pending: _Pending) -> Reply:
        """Register if need be, then send until the reply is here; wait longer, and turn to the next, each time."""
        wait = self._retry_seconds
        attempts = 0
        accepted = time.monotonic()
        while True:
            self.retries += attempts > 0
            attempts += 1
            connection = await self._connect()
            if connection is not None:
                self._silent.discard(self._target)
                accepted = time.monotonic()
            else:
                self._silent.add(self._target)
                self._check_reachable(time.monotonic() - accepted)
            message = None if connection is None else self._send(connection, pending)
            if connection is None or message is None:
                self._next_target()
                await asyncio.sleep(min(0.02 * attempts, 0.2))
                continue
            try:
                async with asyncio.timeout(wait):
                    answer = await self._await_answer(connection, message, pending)
            except TimeoutError:
                answer = None
                self._next_target()
                wait = min(wait * 1.5, self._retry_seconds_max)
            if answer is None:
                await asyncio.sleep(min(0.005 * attempts, 0.1))
                continue
            if isinstance(answer, Reply) and message.request:
                return answer
            attempts, wait = 0, self._retry_seconds
            if isinstance(answer, Eviction) and message.request == 0:
                self._on_older_incarnation(answer.incarnation)
            elif isinstance(answer, Eviction):
                self._on_eviction(answer, pending)
            else:
                self.session = answer.session
                self._registered = True
                self.request_number = 0

    def _send(self, connection: Connection, pending: _Pending) -> Request | None:
        """Send what is due, and return it; None if the connection is gone."""
        if connection.sessions and not self.session:
            message = Request(self.client_id, 0, b"", 0, self.incarnation, self.clock)
        else:
            if pending.request is None:
                number = self.request_number + 1
                pending.request = Request(self.client_id, number, pending.body, self.session, clock=self.clock)
            message = pending.request
        if not connection.send(frame_message(message, self._group)):
            return None
        pending.doubtful += message.request > 0
        if random.random() < self._send_twice and connection.send(frame_message(message, self._group)):
            pending.doubtful += message.request > 0
        return message

    def _check_reachable(self, seconds: float) -> None:
        if self._unreachable_seconds is None or seconds < self._unreachable_seconds:
            return
        if len(self._silent) == len(self.addresses):
            addresses = ", ".join(map(address_text, self.addresses))
            spoken = "without" if self._tls is None else "with"
            text = f"nobody accepts connections at {addresses} {spoken} TLS; are the replicas running, and {spoken} it?"
            raise UnreachableError(text + self._refusals_text())

    def _refusals_text(self) -> str:
        return "".join(f"; {error}" for error in self._refusals.values())

    def _on_refusal(self, error: RefusedError) -> None:
        """One replica may be set up wrongly; if more than half refuse, this client is. Raises the error then."""
        self._refusals[self._target] = error
        self._silent.add(self._target)
        if 2 * len(self._refusals) > len(self.addresses):
            raise error

    async def _await_answer(
        self, connection: Connection, message: Request, pending: _Pending
    ) -> Reply | Eviction | None:
        """The answer, or None if this replica cannot give it; the target is then another one."""
        while True:
            frame = await connection.inbox.get()
            if isinstance(frame, Reply | Eviction | NotPrimary):
                self._refusals = {}
            if isinstance(frame, Reply):
                self.clock = max(self.clock, min(frame.clock, CLIENT_CLOCK_MAX))
                if _answers(frame, message):
                    return frame
            elif isinstance(frame, Eviction):
                self.clock = max(self.clock, min(frame.clock, CLIENT_CLOCK_MAX))
                late = message.request == 0 and frame.request == 0 and frame.session == 0
                if late and frame.client == self.client_id and frame.incarnation >= self.incarnation:
                    return frame
                if message.request and frame.client == self.client_id and frame.session == self.session:
                    self._refused(pending, frame.request == message.request)
                    return frame
            elif isinstance(frame, NotPrimary):
                if frame.request == message.request:
                    self._refused(pending, message.request > 0)
                    self._follow(frame)
                    return None
            elif isinstance(frame, Goodbye):
                if not frame.temporary:
                    at = address_text(self.addresses[self._target])
                    self._on_refusal(RefusedError(f"replica at {at} refused: {frame.reason}"))
            elif frame is None:
                self._drop()
                self._next_target()
                return None

    def _refused(self, pending: _Pending, certain: bool) -> None:
        """A replica has not taken a copy of the request, and will not."""
        if certain and not self._may_be_copied:
            pending.doubtful -= 1

    def _on_eviction(self, eviction: Eviction, pending: _Pending) -> None:
        """The session is gone: for good if another instance has taken over, else until the next incarnation.

        Raises FencedError or EvictedError; returns if the request was certainly not executed and is to be sent again.
        """
        executed = pending.executed
        self.evictions += 1
        self.session = 0
        self._drop()
        pending.doubtful = 0
        if eviction.reason == "fenced" and eviction.incarnation > self.incarnation:
            self._fenced = (
                f"client {self.client_id} is fenced: another one registered with its id, with incarnation "
                f"{eviction.incarnation} after {self.incarnation}"
            )
            raise FencedError(self._fenced, executed)
        self.incarnation = max(self.incarnation + 1, time.time_ns() // 1000)
        if executed is None:
            number = 0 if pending.request is None else pending.request.request
            raise EvictedError(
                f"the session of client {self.client_id} was evicted; request {number} was executed once or never",
                executed,
            )
        pending.request = None

    def _on_older_incarnation(self, incarnation: int) -> None:
        """The id has an incarnation that is not below this client's: its clock was once ahead, or it is another's.

        A client that begins goes on above it, and so fences what was there: the later one to register goes on. One that
        had a session before has been fenced. Raises FencedError.
        """
        if self._registered or incarnation == NUMBER_MAX:
            self._fenced = (
                f"client {self.client_id} is fenced: another one registered with its id, with incarnation {incarnation}"
            )
            raise FencedError(self._fenced, False)
        self.incarnation = incarnation + 1

    def _follow(self, hint: NotPrimary) -> None:
        """To the primary of the view that this replica is in, unless nobody was there; then to the next replica."""
        primary = hint.view % len(self.addresses)
        tried = hint.view == self.view and primary in self._silent
        if hint.view >= self.view and primary != self._target and not tried:
            self.view = hint.view
            self._turn_to(primary)
        else:
            self._next_target()

    def _next_target(self) -> None:
        self._turn_to((self._target + 1) % len(self.addresses))

    def _turn_to(self, target: int) -> None:
        if target != self._target:
            self._drop()
            self._target = target

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _check_place(self, connection: Connection | None) -> None:
        """Raises RefusedError if a replica is not where the addresses say: the primary is found by its index."""
        if connection is None or connection.replica_count != len(self.addresses):
            return
        if connection.replica != self._target:
            at = address_text(self.addresses[self._target])
            text = f"the replica at {at} is {connection.replica}, not {self._target}: give the addresses by index"
            raise RefusedError(text, None if self._pending is None else self._pending.executed)

    async def _connect(self) -> Connection | None:
        if self._connection is None or not self._connection.alive:
            address = self.addresses[self._target]
            try:
                self._connection = await open_connection(
                    address, self._cluster, self.client_id, CONNECT_SECONDS, self._group, self._tls
                )
            except RefusedError as error:
                self._connection = None
                self._on_refusal(error)
            self._check_place(self._connection)
        return self._connection


def _answers(reply: Reply, message: Request) -> bool:
    """True if the reply is to this request or register."""
    if message.request == 0:
        return (reply.client, reply.request, reply.body) == (message.client, 0, register_result(message.incarnation))
    return (reply.client, reply.session, reply.request) == (message.client, message.session, message.request)


def _expect(result: Result, kind: type[_ResultT]) -> _ResultT:
    if isinstance(result, kind):
        return result
    raise ReplyError(f"the answer is {result!r}; expected {kind.__name__}")
