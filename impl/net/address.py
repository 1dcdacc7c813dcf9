"""Addresses of replicas."""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

__all__ = ["Address", "address_text", "is_loopback"]

Address: TypeAlias = tuple[str, int]
"""Host and port of one replica."""


def address_text(address: Address) -> str:
    """HOST:PORT."""
    return f"{address[0]}:{address[1]}"


def is_loopback(host: str) -> bool:
    """True if only this machine reaches this numeric address."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
