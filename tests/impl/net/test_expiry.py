"""Certificates that end soon are named while there is time: in the log once a day, and by `vsr status`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.impl.net.test_recover import vsr
from tests.impl.net.waiting import wait_for
from viewproof.impl.net.address import address_text
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.expiry import DAYS_BEFORE, ExpiryWatch
from viewproof.impl.net.limits import LogBudget

DAY = 86_400.0
BEGIN = 1_800_000_000.0


class Told:
    """A watch at a clock that is set, and what the log has of it."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.lines: list[str] = []
        self.watch = ExpiryWatch(LogBudget(self.lines.append, clock=lambda: self.now), clock=lambda: self.now)

    def look(self, **days: float) -> tuple[str, ...]:
        """So many days after the beginning the certificates of replicas end; what the status says."""
        self.watch.look([(BEGIN + day * DAY, name) for name, day in days.items()])
        return self.watch.notices()


def test_who_ends_soon_is_named_first_to_end_first() -> None:
    told = Told()
    assert told.look(a=DAYS_BEFORE + 0.1, b=float("inf")) == ()
    found = told.look(a=DAYS_BEFORE + 0.1, b=5.5, c=0.5, d=-1)
    assert found == (
        "the certificate of c ends in 12 hours, at 2027-01-15 20:00 UTC: renew it (docs/security.md)",
        "the certificate of b ends in 5 days, at 2027-01-20 20:00 UTC: renew it (docs/security.md)",
    )
    assert tuple(told.lines) == found


def test_the_log_has_it_once_a_day_until_it_is_renewed() -> None:
    told = Told()
    for hour in range(49):
        told.now = BEGIN + hour * 3600
        told.look(a=5)
    assert len(told.lines) == 3
    assert told.look(a=365) == ()
    told.now += DAY
    told.look(a=365)
    assert len(told.lines) == 3


def test_two_certificates_of_one_holder_are_both_in_use() -> None:
    told = Told()
    told.watch.look([(BEGIN + 3 * DAY, "clients 0"), (BEGIN + 4 * DAY, "clients 0")] * 3)
    assert len(told.lines) == len(told.watch.notices()) == 2


def test_a_cluster_names_them_and_the_status_is_clean_otherwise(tmp_path: Path) -> None:
    with Cluster(tmp_path, cluster=7, tls=tmp_path / "tls") as cluster:
        issue_cluster(tmp_path / "tls", 7, cluster.addresses, days=3.5)
        cluster.format()
        cluster.start_all()
        primary = asyncio.run(cluster.wait_ready())
        addresses = ",".join(map(address_text, cluster.addresses))
        status = ["status", "--addresses", addresses, "--cluster", 7, "--tls", tmp_path / "tls" / "clients"]

        def named() -> int:
            return vsr(*status)[1].count("soon: the certificate of replica")

        wait_for(lambda: named() == 3, "each one is named")
        code, said = vsr(*status)
        assert code == 0, said
        lines = [line for line in said.splitlines() if line.startswith("replica ")]
        assert ["  primary" in line for line in lines] == [replica == primary for replica in range(3)]
        wait_for(lambda: "ends in 3 days" in cluster.log_path(0).read_text(), "the log names them")
