"""Addresses of replicas."""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

__all__ = ["Address", "address_text", "is_loopback"]

Address: TypeAlias = tuple[str, int]
"""Host and port of one replica."""


def address_text(address: Address) -> str:
    """HOST:PORT, as it is given: a numeric address of version 6 in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """True if only this machine reaches this numeric address."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
