"""The client for code without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType

from viewproof.impl.machine.state_machine import Operation, Result
from viewproof.impl.net.address import Address
from viewproof.impl.net.client import Client
from viewproof.impl.net.tls import Tls

__all__ = ["SyncClient"]


class SyncClient:
    """The same client for code without an event loop: it runs its own in the calling thread."""

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: int,
        client_id: int | None = None,
        timeout_seconds: float = 30.0,
        unreachable_seconds: float | None = None,
        group: int = 0,
        tls: Tls | None = None,
    ) -> None:
        self.client = Client(
            addresses,
            cluster,
            client_id,
            timeout_seconds,
            unreachable_seconds=unreachable_seconds,
            group=group,
            tls=tls,
        )
        self._runner = asyncio.Runner()

    def execute(self, operation: Operation) -> Result:
        """As Client.execute."""
        return self._runner.run(self.client.execute(operation))

    def retry(self) -> Result:
        """As Client.retry."""
        return self._runner.run(self.client.retry())

    def abandon(self) -> None:
        """As Client.abandon."""
        self.client.abandon()

    def put(self, key: bytes, value: bytes) -> None:
        """As Client.put."""
        self._runner.run(self.client.put(key, value))

    def get(self, key: bytes) -> bytes | None:
        """As Client.get."""
        return self._runner.run(self.client.get(key))

    def delete(self, key: bytes) -> bool:
        """As Client.delete."""
        return self._runner.run(self.client.delete(key))

    def append(self, key: bytes, value: bytes) -> None:
        """As Client.append."""
        self._runner.run(self.client.append(key, value))

    def compare_and_set(self, key: bytes, expected: bytes | None, value: bytes) -> bool:
        """As Client.compare_and_set."""
        return self._runner.run(self.client.compare_and_set(key, expected, value))

    def close(self) -> None:
        """Close the connection and the loop."""
        if not self.client._closed:
            self._runner.run(self.client.close())
        self._runner.close()

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
