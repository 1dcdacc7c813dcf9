"""mTLS: who shows no certificate of the cluster, or another's, is nobody; certificates are renewed without a stop."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.impl.net.raw import RawConnection, replica_hello
from tests.impl.net.test_cluster import server
from tests.impl.net.test_recover import vsr
from tests.impl.net.waiting import wait_for, wait_for_log
from viewproof.impl.interface.messages import PrepareOk
from viewproof.impl.net import authority
from viewproof.impl.net.address import is_loopback
from viewproof.impl.net.authority import Authority, AuthorityError, issue_cluster
from viewproof.impl.net.client import RefusedError
from viewproof.impl.net.cluster import Cluster, free_ports
from viewproof.impl.net.connection import Connection, fetch_status
from viewproof.impl.net.framing import PROTOCOL_VERSION, Goodbye, Hello, Status, frame_message
from viewproof.impl.net.sync_client import SyncClient
from viewproof.impl.net.tls import Subject, Tls, TlsError
from viewproof.impl.storage.data_file import format_data_file


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of another authority for the same cluster."""
    directory = tmp_path_factory.mktemp("foreign")
    issue_cluster(directory, 7, [("127.0.0.1", 1)] * 3)
    return directory


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, cluster=7, tls=tmp_path / "tls") as running:
        issue_cluster(tmp_path / "tls", 7, running.addresses, client_ids=[5])
        running.format()
        running.start_all()
        asyncio.run(running.wait_ready())
        yield running


def tls_of(cluster: Cluster, name: str) -> Tls:
    assert cluster.tls is not None
    return Tls(cluster.tls / name)


def status_as(cluster: Cluster, tls: Tls | None, replica: int = 0) -> Status | None:
    return asyncio.run(fetch_status(cluster.addresses[replica], 7, tls=tls))


async def said_to(cluster: Cluster, tls: Tls, hello: Hello, *frames: bytes) -> str:
    """With what reason the first replica ends a connection on which this is said; "" if it answers the hello."""
    loop = asyncio.get_running_loop()
    address = cluster.addresses[0]
    async with asyncio.timeout(60):
        _, connection = await loop.create_connection(
            lambda: Connection(hello), *address, ssl=tls.dialling, server_hostname=address[0]
        )
        for frame in frames:
            connection.send(frame)
        answer = await connection.inbox.get()
        connection.close()
    return answer.reason if isinstance(answer, Goodbye) else ""


def test_who_has_a_certificate_speaks_for_its_subject_and_nobody_else(cluster: Cluster, foreign: Path) -> None:
    clients, replica, client = (tls_of(cluster, name) for name in ("clients", "replica-1", "client-5"))
    with SyncClient(cluster.addresses, 7, tls=clients) as any_client:
        any_client.put(b"a", b"1")
    with SyncClient(cluster.addresses, 7, 5, tls=client) as one_client:
        assert one_client.get(b"a") == b"1"
    for shown in (clients, replica, client):
        assert status_as(cluster, shown) is not None
    with (
        SyncClient(cluster.addresses, 7, 6, tls=client) as other,
        pytest.raises(RefusedError, match="its certificate is for viewproof:cluster/7/client/5"),
    ):
        other.get(b"a")
    forged = Hello(PROTOCOL_VERSION, 7, "replica", 2)
    acknowledged = frame_message(PrepareOk(0, 1, "0" * 32, 2))
    for shown in (clients, replica, client):
        reason = asyncio.run(said_to(cluster, shown, forged, acknowledged))
        assert reason.startswith("replica 2: its certificate is for viewproof:cluster/7/")
    for stranger in (Tls(foreign / "clients"), Tls(foreign / "replica-2")):
        with pytest.raises(RefusedError, match="not from an authority that"):
            status_as(cluster, stranger)
        stranger.dialling.check_hostname = False
        stranger.dialling.load_verify_locations((cluster.tls or foreign) / "ca.pem")
        assert nothing_said(cluster, stranger)
    wait_for_log(cluster, 0, "certificate verify failed")
    with SyncClient(cluster.addresses, 7, tls=clients) as any_client:
        assert any_client.get(b"a") == b"1"
    assert "Traceback" not in cluster.log_path(0).read_text()


def nothing_said(cluster: Cluster, shown: Tls) -> bool:
    """True if who shows this is told nothing: the connection ends, with an alert of TLS or without."""
    try:
        return status_as(cluster, shown) is None
    except RefusedError as error:
        return "certificate" in str(error) or "alert" in str(error)


def test_who_shows_no_certificate_gets_no_word(cluster: Cluster) -> None:
    assert status_as(cluster, None) is None
    with RawConnection(cluster.addresses[0], Hello(PROTOCOL_VERSION, 7, "client", 0)) as plain:
        assert plain.socket.recv(1 << 16)[:1] in (b"", b"\x15"), "the end, or an alert of TLS"
    wait_for(lambda: status_as(cluster, tls_of(cluster, "clients")) is not None, "others are answered")
    assert "Traceback" not in cluster.log_path(0).read_text()


def test_an_older_tls_is_not_spoken(cluster: Cluster) -> None:
    for newest, works in ((ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_3, True)):
        shown = tls_of(cluster, "clients").dialling
        shown.minimum_version, shown.maximum_version = ssl.TLSVersion.TLSv1_2, newest
        host, port = cluster.addresses[0]
        with socket.create_connection((host, port), timeout=60) as plain:
            if works:
                assert shown.wrap_socket(plain, server_hostname=host).version() == "TLSv1.3"
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    shown.wrap_socket(plain, server_hostname=host)


def test_a_replica_under_anothers_certificate_or_address_is_refused(cluster: Cluster) -> None:
    cluster.stop(2)
    assert cluster.tls is not None
    mine = cluster.tls / "replica-2"
    shutil.rmtree(mine)
    shutil.copytree(cluster.tls / "replica-1", mine)
    cluster.start(2)
    wait_for_log(cluster, 0, "its certificate is for viewproof:cluster/7/replica/1")
    wait_for_log(cluster, 2, "its certificate is for viewproof:cluster/7/replica/1")
    wait_problem(cluster, 0, "replica 2", "its certificate is for viewproof:cluster/7/replica/1")
    cluster.stop(2)
    Authority.open_or_make(cluster.tls).issue(mine, Subject(7, "replica", 2), "192.0.2.1")
    cluster.start(2)
    wait_problem(cluster, 0, "replica 2", "IP address mismatch")
    cluster.stop(2)
    Authority.open_or_make(cluster.tls).issue(mine, Subject(8, "replica", 2), "127.0.0.1")
    cluster.start(2)
    wait_problem(cluster, 0, "replica 2", "its certificate is for viewproof:cluster/8/replica/2")
    Authority.open_or_make(cluster.tls).issue(mine, Subject(7, "replica", 2), "127.0.0.1")
    wait_for(lambda: renewals(cluster, 2) > 0, "replica 2 takes the right certificate")
    asyncio.run(cluster.wait_ready(120))
    wait_for(lambda: peers_of(cluster, 0) == {1, 2}, "replica 2 is back")


def wait_problem(cluster: Cluster, replica: int, *texts: str) -> None:
    def reported() -> bool:
        status = status_as(cluster, tls_of(cluster, "clients"), replica)
        return status is not None and any(all(text in problem for text in texts) for problem in status.problems)

    wait_for(reported, f"replica {replica} reports {texts}")


def peers_of(cluster: Cluster, replica: int) -> set[int]:
    status = status_as(cluster, tls_of(cluster, "clients"), replica)
    return set() if status is None else set(status.peers)


def test_certificates_are_renewed_while_all_processes_run(cluster: Cluster) -> None:
    """Also those of the authority: for a while both are trusted."""
    assert cluster.tls is not None
    pids = [cluster.pid(replica) for replica in range(3)]
    client_tls = tls_of(cluster, "clients")
    with SyncClient(cluster.addresses, 7, tls=client_tls) as client:
        client.put(b"a", b"1")
        old = (cluster.tls / "ca.pem").read_bytes()
        new = cluster.tls.with_name("new")
        issue_cluster(new, 7, cluster.addresses)
        names = [*(f"replica-{replica}" for replica in range(3)), "clients"]
        both = old + (new / "ca.pem").read_bytes()
        steps = [("ca.pem", dict.fromkeys(names, both))]
        pair = ("key.pem", "certificate.pem")
        steps += [(file, {name: (new / name / file).read_bytes() for name in names}) for file in pair]
        steps.append(("ca.pem", dict.fromkeys(names, (new / "ca.pem").read_bytes())))
        renewed = [0]
        for number, (file, contents) in enumerate(steps):
            for name, content in contents.items():
                path = cluster.tls / name / file
                path.with_suffix(".new").write_bytes(content)
                path.with_suffix(".new").replace(path)
            if file == "key.pem":
                continue  # a key without its certificate: what was goes on, until both are there
            renewed.append(renewed[-1] + 1)
            for replica in range(3):
                wait_for(lambda r=replica: renewals(cluster, r) >= renewed[-1], f"replica {replica} took step {number}")
            client.put(b"a", b"%d" % number)
        assert client.get(b"a") == b"3"
    with pytest.raises(RefusedError):
        status_as(cluster, old_clients(old, cluster.tls.with_name("old")))
    assert [cluster.pid(replica) for replica in range(3)] == pids
    wait_for(lambda: all(peers_of(cluster, r) == {0, 1, 2} - {r} for r in range(3)), "all links are up again")
    assert set(cluster.stop_all().values()) == {0}


def renewals(cluster: Cluster, replica: int) -> int:
    assert cluster.alive(replica), cluster.log_tail(replica, 40)
    return cluster.log_path(replica).read_text().count("new certificates are in use")


def old_clients(authority: bytes, directory: Path) -> Tls:
    """A client that trusts and shows what was before."""
    issue_cluster(directory, 7, [("127.0.0.1", 1)])
    (directory / "clients" / "ca.pem").write_bytes(authority)
    return Tls(directory / "clients")


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    address = ("127.0.0.1", free_ports(1)[0])
    issue_cluster(tmp_path / "tls", 7, [address])
    Authority.open_or_make(tmp_path / "tls").issue(tmp_path / "old", Subject(7, "clients"), days=-0.001)
    with Cluster(tmp_path, 1, cluster=7, tls=tmp_path / "tls") as cluster:
        cluster.format()
        cluster.start(0)
        asyncio.run(cluster.wait_ready())
        assert nothing_said(cluster, Tls(tmp_path / "old"))
        wait_for_log(cluster, 0, "certificate has expired")


def test_certificates_that_cannot_be_taken_are_a_problem_until_they_can(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1, cluster=7, tls=tmp_path / "tls") as cluster:
        issue_cluster(tmp_path / "tls", 7, cluster.addresses)
        cluster.format()
        cluster.start(0)
        asyncio.run(cluster.wait_ready())
        key = tmp_path / "tls" / "replica-0" / "key.pem"
        before = key.read_bytes()
        key.write_text("half")
        wait_for(lambda: "not a certificate and its key" in problems(cluster), "the status says what is wrong")
        assert status_as(cluster, tls_of(cluster, "clients")) is not None, "what was goes on"
        key.write_bytes(before)
        wait_for(lambda: problems(cluster) == "", "the status is clean again")
        assert cluster.log_path(0).read_text().count("the certificates before go on") == 1


def problems(cluster: Cluster) -> str:
    status = status_as(cluster, tls_of(cluster, "clients"))
    return "no answer" if status is None else "; ".join(status.problems)


# Without TLS


def test_without_tls_only_this_machine_is_served(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    format_data_file(tmp_path / "d", 7, 0, 1)
    base = ["--data", str(tmp_path / "d"), "--replica", "0"]
    for host in ("0.0.0.0", "[::]"):
        finished = server(*base, "--addresses", f"{host}:{port}")
        assert finished.returncode == 2, finished
        assert "can be reached from other machines" in finished.stderr
        assert "--without-tls" in finished.stderr


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("::", False), ("192.0.2.1", False)],
)
def test_which_addresses_are_of_this_machine_alone(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_a_forged_peer_without_tls_is_what_tls_is_for(tmp_path: Path) -> None:
    """What docs/security.md does not promise: on the loopback interface anyone may say that he is a replica."""
    with Cluster(tmp_path, cluster=7) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        cluster.kill(2)
        with RawConnection(cluster.addresses[0], replica_hello(cluster.addresses[0], 2)) as forged:
            assert isinstance(forged.next(), Hello)


# The authority's command, and files that are not what they should be


def test_the_command_makes_what_every_other_command_takes(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1, tls=tmp_path / "tls") as cluster:
        addresses = ("--addresses", cluster.address_list())
        code, output = vsr("authority", tmp_path / "tls", *addresses, "--client", 9, "--json", tmp_path / "made.json")
        assert code == 0, output
        assert (tmp_path / "tls" / "replica-0" / "key.pem").stat().st_mode & 0o077 == 0
        assert (tmp_path / "tls" / "ca-key.pem").stat().st_mode & 0o077 == 0
        cluster.format()
        cluster.start(0)
        asyncio.run(cluster.wait_ready())
        assert "--tls" in cluster.start_command(0)
        assert vsr("status", *addresses, "--tls", tmp_path / "tls" / "client-9")[0] == 0
        code, output = vsr("status", *addresses)
        assert code == 4
        assert "nobody answers without TLS; if the replicas have it: --tls DIRECTORY" in output
        before = (tmp_path / "tls" / "replica-0" / "certificate.pem").read_bytes()
        assert vsr("authority", tmp_path / "tls", *addresses)[0] == 0
        assert (tmp_path / "tls" / "replica-0" / "certificate.pem").read_bytes() != before
        wait_for(lambda: renewals(cluster, 0) >= 1, "the process takes the renewed certificate")
        assert vsr("status", *addresses, "--tls", tmp_path / "tls" / "clients")[0] == 0


def test_files_that_are_no_certificates_are_named(tmp_path: Path) -> None:
    issue_cluster(tmp_path, 7, [("localhost", 1)])
    whole = tmp_path / "clients"
    for name, text in (("ca.pem", "authority"), ("certificate.pem", "its key"), ("key.pem", "its key")):
        broken = tmp_path / f"broken-{name}"
        shutil.copytree(whole, broken)
        (broken / name).write_text("nothing")
        with pytest.raises(TlsError, match=f"{name}.*{text}"):
            Tls(broken)
        (broken / name).unlink()
        with pytest.raises(TlsError, match=f"{name}: No such file"):
            Tls(broken)
    (tmp_path / "ca-key.pem").unlink()
    with pytest.raises(AuthorityError, match="belong together"):
        Authority.open_or_make(tmp_path)
    assert vsr("authority", tmp_path, "--addresses", "a:1")[0] == 2


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(tmp_path: Path) -> None:
    issue_cluster(tmp_path, 7, [("localhost", 1)])
    path = tmp_path / "clients" / "key.pem"
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    encrypted = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encrypted))
    with pytest.raises(TlsError, match="the key is encrypted"):
        Tls(tmp_path / "clients")


def test_what_is_issued_ends_with_its_authority_and_one_that_has_ended_issues_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authority, "AUTHORITY_DAYS", 2)
    issue_cluster(tmp_path / "t", 7, [("localhost", 1)], days=1)
    issue_cluster(tmp_path / "t", 7, [("localhost", 1)], days=365)
    ca, issued = (
        x509.load_pem_x509_certificate((tmp_path / "t" / "clients" / name).read_bytes())
        for name in ("ca.pem", "certificate.pem")
    )
    assert issued.not_valid_after_utc == ca.not_valid_after_utc
    assert [end for end, _ in Tls(tmp_path / "t" / "clients").authorities()] == [ca.not_valid_after_utc.timestamp()]
    monkeypatch.setattr(authority, "AUTHORITY_DAYS", -0.0005)
    Authority.open_or_make(tmp_path / "old")
    code, said = vsr("authority", tmp_path / "old", "--addresses", "localhost:1")
    assert code == 2
    assert "the authority ended at" in said


def test_files_that_change_are_read_again_and_broken_ones_change_nothing(tmp_path: Path) -> None:
    issue_cluster(tmp_path, 7, [("localhost", 1)])
    tls = Tls(tmp_path / "clients")
    assert not tls.refresh()
    before = tls.accepting
    (tmp_path / "clients" / "key.pem").write_text("half")
    for _ in range(2):  # what is wrong is said until it is right: status shows it as long
        with pytest.raises(TlsError):
            tls.refresh()
    assert tls.accepting is before
    issue_cluster(tmp_path, 7, [("localhost", 1)])
    assert tls.refresh()
    assert tls.accepting is not before


@pytest.mark.parametrize(
    ("subject", "role", "number", "allowed"),
    [
        (Subject(7, "replica", 1), "replica", 1, True),
        (Subject(7, "replica", 1), "replica", 2, False),
        (Subject(7, "replica", 1), "client", 0, True),
        (Subject(7, "replica", 1), "client", 5, False),
        (Subject(7, "replica", 1), "clients", 0, False),
        (Subject(7, "client", 5), "client", 5, True),
        (Subject(7, "client", 5), "client", 6, False),
        (Subject(7, "client", 1), "replica", 1, False),
        (Subject(7, "client", 5), "clients", 0, False),
        (Subject(7, "clients"), "client", 6, True),
        (Subject(7, "clients"), "clients", 0, True),
        (Subject(7, "clients"), "replica", 0, False),
        (Subject(8, "replica", 1), "replica", 1, False),
        (Subject(8, "clients"), "client", 0, False),
    ],
)
def test_whom_a_certificate_lets_one_be(subject: Subject, role: str, number: int, allowed: bool) -> None:
    assert subject.may_be(7, role, number) is allowed
