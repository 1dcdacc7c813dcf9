"""A certificate authority for development and tests: one command makes it, and certificates for a cluster.

For a cluster of which more depends, any authority will do whose certificates name their subjects as
`viewproof.impl.net.tls` says.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from viewproof.impl.net.address import Address
from viewproof.impl.net.tls import CA_NAME, CERTIFICATE_NAME, KEY_NAME, Subject, subject_in

__all__ = ["CA_KEY_NAME", "Authority", "AuthorityError", "issue_cluster"]

CA_KEY_NAME = "ca-key.pem"

BACKDATED = timedelta(minutes=5)
"""Clocks of machines differ."""

AUTHORITY_DAYS = 3650


class AuthorityError(ValueError):
    """The authority's files cannot be read or written, or do not belong together; the text names them."""


class Authority:
    """Issues certificates; ``certificate`` and key lie in ``directory``."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key

    @classmethod
    def open_or_make(cls, directory: Path, days: float = 0.0) -> Authority:
        """The authority in a directory, made if there is none, for certificates of so many days. Raises AuthorityError,
        also if it has ended.
        """
        certificate_path, key_path = directory / CA_NAME, directory / CA_KEY_NAME
        try:
            if certificate_path.exists() != key_path.exists():
                raise AuthorityError(f"{directory}: {CA_NAME} and {CA_KEY_NAME} belong together; one is missing")
            if certificate_path.exists():
                found = cls(_certificate_in(certificate_path), _key_in(key_path))
                found._require_going_on(certificate_path)
                return found
            authority = cls._make(max(AUTHORITY_DAYS, days))
            directory.mkdir(parents=True, exist_ok=True)
            _write(key_path, _key_bytes(authority._key), 0o600)
            _write(certificate_path, authority.certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        except OSError as error:
            raise AuthorityError(f"{error.filename or directory}: {error.strerror or error}") from error
        return authority

    @classmethod
    def _make(cls, days: float) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Viewproof development authority")])
        usage = _usage(signs_certificates=True)
        builder = _builder(name, name, key.public_key(), datetime.now(UTC) + timedelta(days=days))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(usage, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return cls(builder.add_extension(identifier, critical=False).sign(key, hashes.SHA256()), key)

    def _require_going_on(self, path: Path) -> None:
        ends = self.certificate.not_valid_after_utc
        if ends <= datetime.now(UTC):
            raise AuthorityError(
                f"{path}: the authority ended at {ends:%Y-%m-%d %H:%M} UTC, and nobody takes what it issues: make"
                " another in another directory (a change of the authority: docs/security.md)"
            )

    def issue(self, directory: Path, subject: Subject, host: str | None = None, days: float = 365.0) -> None:
        """A new key and certificate in a directory, with the authority's. ``host``: where a replica is dialled. The
        certificate ends with the authority, if that is before so many days.

        Raises AuthorityError if the directory cannot be written.
        """
        ends = datetime.now(UTC) + timedelta(days=days)
        key = ec.generate_private_key(ec.SECP256R1())
        text = subject.uri.removeprefix("viewproof:")
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(subject.uri)]
        if host is not None:
            names.append(_host_name(host))
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if subject.role == "replica":
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            _builder(name, self.certificate.subject, key.public_key(), min(ends, self.certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _write(directory / CA_NAME, self.certificate.public_bytes(serialization.Encoding.PEM), 0o644)
            _write(directory / KEY_NAME, _key_bytes(key), 0o600)
            _write(directory / CERTIFICATE_NAME, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        except OSError as error:
            raise AuthorityError(f"{error.filename or directory}: {error.strerror or error}") from error


def issue_cluster(
    directory: Path, cluster: int, addresses: Sequence[Address], client_ids: Sequence[int] = (), days: float = 365.0
) -> list[Path]:
    """Certificates for all replicas, for clients of any id, and for each of ``client_ids``; returns their directories.

    The authority in ``directory`` is made if there is none; certificates that are there are replaced, as a running
    cluster notices; not those of another cluster, or of more replicas. Raises AuthorityError.
    """
    _require_same_cluster(directory, cluster, len(addresses))
    authority = Authority.open_or_make(directory, days)
    made: list[Path] = []
    for index, (host, _) in enumerate(addresses):
        made.append(directory / f"replica-{index}")
        authority.issue(made[-1], Subject(cluster, "replica", index), host, days)
    made.append(directory / "clients")
    authority.issue(made[-1], Subject(cluster, "clients"), None, days)
    for client_id in client_ids:
        made.append(directory / f"client-{client_id}")
        authority.issue(made[-1], Subject(cluster, "client", client_id), None, days)
    return made


def _require_same_cluster(directory: Path, cluster: int, replicas: int) -> None:
    """Raises AuthorityError if renewing would leave a certificate that is there, or its holder, without the others."""
    for path in sorted(directory.glob(f"*/{CERTIFICATE_NAME}")):
        try:
            names = _certificate_in(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (AuthorityError, OSError, x509.ExtensionNotFound):
            continue  # it names nobody, and is replaced
        subject = subject_in(names.get_values_for_type(x509.UniformResourceIdentifier))
        if subject is None:
            continue
        if subject.cluster != cluster:
            raise AuthorityError(
                f"{path}: this is of cluster {subject.cluster}, which could not go on with certificates of cluster "
                f"{cluster}: give --cluster {subject.cluster}, or another directory"
            )
        if subject.role == "replica" and subject.number >= replicas:
            raise AuthorityError(
                f"{path}: this is of replica {subject.number}, and {replicas} addresses were given: give those of all "
                "replicas, or another directory"
            )


def _certificate_in(path: Path) -> x509.Certificate:
    """Raises AuthorityError, OSError."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError as error:
        raise AuthorityError(f"{path}: not a certificate in PEM") from error


def _key_in(path: Path) -> ec.EllipticCurvePrivateKey:
    """Raises AuthorityError, OSError."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise AuthorityError(f"{path}: not a private key in PEM without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise AuthorityError(f"{path}: not an elliptic curve key")
    return key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - BACKDATED)
        .not_valid_after(ends)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    """Replaces the file as a whole."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    new.replace(path)
