"""What a client of the cluster may raise; each says whether the operation took effect."""

from __future__ import annotations

__all__ = [
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


class ClientError(Exception):
    """A request did not get an answer; the subclasses say why.

    ``executed``: False if the operation certainly was and will not be executed, True if it was, None if unknown.
    """

    def __init__(self, text: str, executed: bool | None = None) -> None:
        super().__init__(text)
        self.executed = executed


class RequestTimeoutError(ClientError):
    """No answer in time. Unless ``executed`` is False, it may be executed, also later; ``Client.retry`` asks again."""


class UnreachableError(ClientError):
    """For some time no replica accepted a connection. ``executed`` and ``retry`` as of RequestTimeoutError."""


class EvictedError(ClientError):
    """The cluster has forgotten the client's session, and a request that was sent more than once with it.

    The request was executed once or never, and cannot be asked for again. The client goes on: its next request
    registers anew. (A request that was sent once only is certainly not executed, and is sent again by itself.)
    """


class FencedError(ClientError):
    """Another client registered with this client's id, later: this one must not go on, and refuses every request."""


class RequestTooLargeError(ClientError):
    """The operation is larger than a request may be; nothing was sent."""


class UncertainError(ClientError):
    """The request before this one has no answer yet: call ``retry``, or use a new client."""


class ClientBusyError(ClientError):
    """Another request of this client is outstanding."""


class ClientClosedError(ClientError):
    """The client was closed."""


class RefusedError(ClientError):
    """More than half of the replicas refused the connection for good, for example as those of another cluster."""


class ReplyError(ClientError):
    """The answer does not decode or does not fit the operation."""
