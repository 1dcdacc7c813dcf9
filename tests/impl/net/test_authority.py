"""What `vsr authority` does not do, and names; whom `vsr status` cannot ask; a cluster that runs already."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.impl.net.test_recover import vsr
from tests.impl.net.waiting import wait_for
from viewproof.impl.net.address import address_text
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.cluster import Cluster, ClusterError

THREE = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"


@pytest.fixture
def issued(tmp_path: Path) -> Path:
    """Certificates of cluster 7."""
    assert vsr("authority", tmp_path / "tls", "--addresses", THREE, "--cluster", 7)[0] == 0
    return tmp_path / "tls"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--addresses", THREE, "--cluster", 8), "this is of cluster 7, which could not go on"),
        (("--addresses", "127.0.0.1:1", "--cluster", 7), "this is of replica 1, and 1 addresses were given"),
        (("--addresses", "127.0.0.1:1,127.0.0.1:1"), "'127.0.0.1:1' is there twice"),
        (("--addresses", "ü:1"), "'ü:1': give the name in letters that DNS has"),
        (("--addresses", "a:²"), "'a:²' is not HOST:PORT"),
        (("--addresses", THREE, "--cluster", 1 << 64), "is not in the range"),
        (("--addresses", THREE, "--client", 1 << 63), "is not in the range"),
    ],
)
def test_what_it_is_not_asked_for_on_purpose(issued: Path, words: tuple[object, ...], said: str) -> None:
    before = {path: path.read_bytes() for path in issued.rglob("*.pem")}
    code, output = vsr("authority", issued, *words)
    assert (code, said in re.sub(r"\s+", " ", output)) == (2, True), output
    assert {path: path.read_bytes() for path in issued.rglob("*.pem")} == before


def test_a_certificate_that_names_nobody_is_replaced(issued: Path) -> None:
    (issued / "replica-1" / "certificate.pem").write_text("half")
    assert vsr("authority", issued, "--addresses", THREE, "--cluster", 7)[0] == 0
    assert "BEGIN" in (issued / "replica-1" / "certificate.pem").read_text()


@pytest.mark.parametrize(
    ("name", "said"),
    [("ca-key.pem", "ca-key.pem: not a private key in PEM"), ("ca.pem", "ca.pem: not a certificate in PEM")],
)
def test_the_file_that_cannot_be_read_is_named(issued: Path, name: str, said: str) -> None:
    content = (issued / name).read_bytes()
    (issued / name).write_bytes(content[: len(content) // 2])
    code, output = vsr("authority", issued, "--addresses", THREE, "--cluster", 7)
    assert (code, said in output) == (2, True), output


def test_whom_the_status_cannot_ask_is_one_line_and_the_others_are_shown(tmp_path: Path) -> None:
    with Cluster(tmp_path, cluster=7, tls=tmp_path / "tls") as cluster:
        issue_cluster(tmp_path / "tls", 7, cluster.addresses)
        issue_cluster(tmp_path / "other", 7, cluster.addresses)
        for name in ("ca.pem", "certificate.pem", "key.pem"):
            shutil.copy(tmp_path / "other" / "replica-2" / name, tmp_path / "tls" / "replica-2" / name)
        cluster.format()
        cluster.start_all()
        status = ["status", "--addresses", ",".join(map(address_text, cluster.addresses)), "--cluster", 7, "--tls"]

        def lines() -> list[str]:
            return vsr(*status, tmp_path / "tls" / "clients")[1].splitlines()

        wait_for(lambda: sum("normal" in line for line in lines()) == 2, "two replicas serve without the third")
        code, said = vsr(*status, tmp_path / "tls" / "clients")
        assert (code, said.count("  refuses")) == (1, 1), said
        assert "its certificate is not from an authority that ca.pem of --tls holds" in said
        code, said = vsr(*status, tmp_path / "other" / "clients")
        assert (code, said.count("  refuses")) == (1, 2), said
        code, said = vsr(*status[:3], "--cluster", 9, "--tls", tmp_path / "tls" / "clients")
        assert (code, "belongs to cluster 7 (--cluster 7)" in said) == (2, True), said


def test_a_cluster_that_runs_is_neither_started_again_nor_given_other_certificates(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.format()
        cluster.start(1)
        wait_for(lambda: "on 127.0.0.1" in cluster.log_path(1).read_text(), "the process has begun")
        with pytest.raises(ClusterError, match="replica-1: in use by another process: does the cluster run already"):
            Cluster(tmp_path).format_or_check()
        code, said = vsr("recover", cluster.data_path(1))
        assert (code, "a process runs on it" in said) == (0, True), said
