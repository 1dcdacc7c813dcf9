"""What both families of logs count: replicas, ops, and the numbers that a reader gives to what has a long name."""

from __future__ import annotations

from viewproof.spec.lang import Index


class Replica(Index):
    """A member of the cluster, numbered from 0."""


class View(Index):
    """A view; its primary follows from it."""


class Op(Index):
    """Place of an entry in the log."""


class Prepare(Index):
    """Number of a checksum, and of the prepare that it names; 0 = none."""


class Message(Index):
    """Number of a message; 0 = none."""


class Client(Index):
    """A client; 0 = none, or the cluster itself."""


class Request(Index):
    """Number of a client's request."""


class Count(Index):
    """How many replicas did something: a number that an event shows."""


class Nonce(Index):
    """Number of a recovery, or of its questions; 0 = none."""


class Operation(Index):
    """Number of what a request asks for."""


class Time(Index):
    """A timestamp."""


class DataFile(Index, lo=1):
    """Number of the id of a replica's data file."""


class Digest(Index, lo=1):
    """Number of a state of the state machine."""


ROOT = 1
"""The prepare of op 0, which all know; its checksum is known once a line tells it."""
