"""Addresses of replicas."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TypeAlias

__all__ = ["Address", "address_text", "is_loopback", "unknown_name"]

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


async def unknown_name(address: Address, timeout_seconds: float) -> str:
    """Why the host's name leads nowhere; "" where it has an address, or the name service does not say in time."""
    try:
        async with asyncio.timeout(timeout_seconds):
            await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return f"{address[0]}: {error.strerror}"
    except TimeoutError:
        pass
    return ""
