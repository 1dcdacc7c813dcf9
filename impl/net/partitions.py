"""A client of the partitions group: appends messages to partitions, polls them, keeps consumer offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from viewproof.impl.groups.group import PARTITIONS
from viewproof.impl.machine.namespaces import NamespaceLayout
from viewproof.impl.machine.partitions import Appended, AppendMessages, Offset, Poll, Polled, ReadOffset, StoreOffset
from viewproof.impl.machine.state_machine import Outcome, Result
from viewproof.impl.net.address import Address
from viewproof.impl.net.client import Client
from viewproof.impl.net.errors import ReplyError
from viewproof.impl.net.tls import Tls

__all__ = ["OffsetError", "PartitionsClient"]

_ResultT = TypeVar("_ResultT")


class OffsetError(ValueError):
    """A consumer offset above the end of its partition was not stored; the text names both."""


class PartitionsClient(Client):
    """As Client, but of the partitions group. ``layout`` is that of the cluster; a partition is named by its
    ``namespace``, which ``layout.pack`` makes of stream, topic and partition.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: int,
        client_id: int | None = None,
        timeout_seconds: float = 30.0,
        layout: NamespaceLayout | None = None,
        group: int = PARTITIONS.number,
        tls: Tls | None = None,
    ) -> None:
        super().__init__(addresses, cluster, client_id, timeout_seconds, group=group, tls=tls)
        self.layout = layout or NamespaceLayout()

    async def append_messages(self, namespace: int, messages: Sequence[bytes]) -> int:
        """Append at least one message; returns the offset of the first. Raises NamespaceError, or as ``execute``."""
        return self._expected(await self._ask_partition(AppendMessages(namespace, tuple(messages))), Appended).offset

    async def poll(self, namespace: int, offset: int, count: int) -> Polled:
        """Up to ``count`` messages from ``offset`` on, and the end of the partition."""
        return self._expected(await self._ask_partition(Poll(namespace, offset, count)), Polled)

    async def store_offset(self, namespace: int, consumer: int, offset: int, *, group: bool = False) -> None:
        """Remember that ``consumer``, with ``group`` that consumer group, has read everything below ``offset``.

        Raises OffsetError above the end.
        """
        operation = StoreOffset(namespace, consumer, offset, group)
        if not self._expected(await self._ask_partition(operation), Outcome).success:
            where, reader = self.layout.unpack(namespace), "group" if group else "consumer"
            raise OffsetError(f"offset {offset} of {reader} {consumer} is above the end of the partition {where}")

    async def read_offset(self, namespace: int, consumer: int, *, group: bool = False) -> int | None:
        """The stored offset of ``consumer``, or of that consumer group; None if there is none."""
        return self._expected(await self._ask_partition(ReadOffset(namespace, consumer, group)), Offset).offset

    async def _ask_partition(self, operation: AppendMessages | Poll | StoreOffset | ReadOffset) -> Result:
        self.layout.unpack(operation.namespace)
        return await self.execute(operation)

    @staticmethod
    def _expected(result: Result, kind: type[_ResultT]) -> _ResultT:
        if isinstance(result, kind):
            return result
        raise ReplyError(f"the answer is {result!r}; expected {kind.__name__}", True)
