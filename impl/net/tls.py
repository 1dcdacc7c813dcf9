"""TLS on both sides of every connection (mTLS): certificates say of which cluster, and which replica or client.

A directory holds ``ca.pem`` (whose certificates are trusted: one authority, or during a change two),
``certificate.pem`` and ``key.pem``. The subject is an alternative name of the certificate,
``viewproof:cluster/C/replica/I``, ``viewproof:cluster/C/client/N``, or ``viewproof:cluster/C/clients`` for clients of
any id. A replica's certificate also names its address, which who dials it compares with the one it dialled. Files that
change are read again, so certificates are renewed without a stop; files that cannot be read as a whole are left alone,
and what was, goes on.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "CA_NAME",
    "CERTIFICATE_NAME",
    "HANDSHAKE_SECONDS",
    "KEY_NAME",
    "Subject",
    "Tls",
    "TlsError",
    "accepting_options",
    "certificate_text",
    "dialling_options",
    "expiry_of",
    "subject_error",
    "subject_in",
]

CA_NAME = "ca.pem"
CERTIFICATE_NAME = "certificate.pem"
KEY_NAME = "key.pem"

HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 2.0

_URI = re.compile(r"viewproof:cluster/(\d{1,20})/(?:(replica|client)/(\d{1,20})|(clients))")


class TlsError(ValueError):
    """A directory does not hold a usable certificate, key and authority; the text names the file."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a certificate names. ``role`` is "replica", "client" or "clients" (then ``number`` is 0)."""

    cluster: int
    role: str
    number: int = 0

    @property
    def uri(self) -> str:
        """As it stands in the certificate."""
        name = self.role if self.role == "clients" else f"{self.role}/{self.number}"
        return f"viewproof:cluster/{self.cluster}/{name}"

    def may_be(self, cluster: int, role: str, number: int) -> bool:
        """True if who holds this certificate may say hello so. Anyone of the cluster may ask for the status."""
        if cluster != self.cluster:
            return False
        if role == "client":
            return number == 0 or self.role == "clients" or (self.role, self.number) == ("client", number)
        return (self.role, self.number) == (role, number)


class Tls:
    """The files of one directory, as contexts for both directions."""

    def __init__(self, directory: Path) -> None:
        """Raises TlsError."""
        self.directory = directory
        self._paths = [directory / name for name in (CA_NAME, CERTIFICATE_NAME, KEY_NAME)]
        self._seen = self._stamps()
        self._contents = self._read()
        self.accepting, self.dialling = self._load()

    def refresh(self) -> bool:
        """Reads the files if they changed; True if what they hold is in use now.

        Raises TlsError, each time until they are whole and fit together; all stays.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        contents = self._read()
        changed = contents != self._contents
        if changed:
            self.accepting, self.dialling = self._load()
            self._contents = contents
        self._seen = stamps
        return changed

    def authorities(self) -> list[tuple[float, str]]:
        """When the certificate of each authority that is trusted ends, and a name for it."""
        holder = f"the authority in {CA_NAME}"
        return [
            (float(ssl.cert_time_to_seconds(str(each["notAfter"]))), holder) for each in self.accepting.get_ca_certs()
        ]

    def _stamps(self) -> tuple[tuple[int, int, int], ...]:
        try:
            found = [path.stat() for path in self._paths]
        except OSError as error:
            raise TlsError(f"{error.filename}: {error.strerror}") from error
        return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in found)

    def _read(self) -> tuple[bytes, ...]:
        try:
            return tuple(path.read_bytes() for path in self._paths)
        except OSError as error:
            raise TlsError(f"{error.filename}: {error.strerror}") from error

    def _load(self) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        contexts = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authority, certificate, key = self._paths
        for context in contexts:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_REQUIRED
            try:
                context.load_verify_locations(authority)
            except (OSError, ValueError) as error:
                raise TlsError(f"{authority}: not the certificate of an authority: {error}") from error
            try:
                context.load_cert_chain(certificate, key, _no_password)
            except (OSError, ValueError) as error:
                raise TlsError(f"{certificate}, {key}: not a certificate and its key: {error}") from error
        return contexts


def _no_password() -> str:
    """Called for an encrypted key: without it OpenSSL would ask at the terminal, and wait."""
    raise ValueError("the key is encrypted; give one without a password")


def accepting_options(tls: Tls | None) -> dict[str, Any]:
    """What `connect_accepted_socket` is told."""
    if tls is None:
        return {}
    return {
        "ssl": tls.accepting,
        "ssl_handshake_timeout": HANDSHAKE_SECONDS,
        "ssl_shutdown_timeout": SHUTDOWN_SECONDS,
    }


def dialling_options(tls: Tls | None, host: str) -> dict[str, Any]:
    """What `create_connection` is told, to a host that the certificate there must name."""
    if tls is None:
        return {}
    return {"ssl": tls.dialling, "server_hostname": host, "ssl_shutdown_timeout": SHUTDOWN_SECONDS}


def subject_error(transport: asyncio.BaseTransport, cluster: int, role: str, number: int) -> str | None:
    """Why the certificate at the other end of a TLS connection does not let it be who it says, or None."""
    subject = _subject_of(_certificate_of(transport))
    if subject is None:
        return "its certificate names no replica and no client, or several"
    if not subject.may_be(cluster, role, number):
        return f"its certificate is for {subject.uri}"
    return None


def _certificate_of(transport: asyncio.BaseTransport) -> dict[str, Any] | None:
    """What the other end has shown; None without TLS, and of a connection that has ended."""
    try:
        found: dict[str, Any] | None = transport.get_extra_info("peercert")
    except AttributeError:  # asyncio's TLS transport has let go of its connection
        return None
    return found


def _subject_of(certificate: dict[str, Any] | None) -> Subject | None:
    """Whom a certificate (of ``ssl.SSLSocket.getpeercert``) names; None if it names nobody or several."""
    names = () if certificate is None else certificate.get("subjectAltName", ())
    return subject_in(name for kind, name in names if kind == "URI")


def subject_in(uris: Iterable[str]) -> Subject | None:
    """Whom the URIs of a certificate name; None if they name nobody or several."""
    found = [match for uri in uris if (match := _URI.fullmatch(uri)) is not None]
    if len(found) != 1:
        return None
    cluster, role, number, clients = found[0].groups()
    return Subject(int(cluster), role or clients, int(number or 0))


def certificate_text(error: ssl.SSLError) -> str:
    """Why there is no connection, in words of certificates if it is for one of them."""
    if isinstance(error, ssl.SSLCertVerificationError):
        foreign = error.verify_code in _OF_ANOTHER
        why = f"not from an authority that {CA_NAME} of --tls holds ({error.verify_message})" if foreign else ""
        return f"its certificate is {why}" if why else f"its certificate is refused: {error.verify_message}"
    if error.reason in _REFUSALS:
        return f"it refuses the certificate of --tls: {_REFUSALS[error.reason]}"
    return str(error)


_OF_ANOTHER = frozenset({2, 18, 19, 20, 21, 7})
"""OpenSSL's codes (X509_V_ERR_…) of chains that end at nobody who is trusted, and of signatures that are wrong."""

_REFUSALS = {
    "TLSV1_ALERT_UNKNOWN_CA": "another authority issued it",
    "TLSV1_ALERT_DECRYPT_ERROR": "another authority issued it",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it has expired",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it is missing",
}


def expiry_of(transport: asyncio.BaseTransport) -> float:
    """When the certificate at the other end of a connection ends, in seconds of the system's clock."""
    certificate = _certificate_of(transport)
    return float("inf") if not certificate else float(ssl.cert_time_to_seconds(certificate["notAfter"]))
