"""Certificates that end soon: while there is time `vsr status` names who shows one, and the log does so once a day."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from viewproof.impl.net.limits import LogBudget

__all__ = ["DAYS_BEFORE", "ExpiryWatch"]

DAYS_BEFORE = 14
"""So many days before its end a certificate is named."""

_DAY = 86_400.0


class ExpiryWatch:
    """Of the certificates that others show. Times are seconds of the system's clock."""

    def __init__(self, log: LogBudget, clock: Callable[[], float] = time.time) -> None:
        self._log = log
        self._clock = clock
        self._soon: list[tuple[float, str]] = []
        self._told: dict[tuple[float, str], float] = {}
        """When the log named it."""

    def look(self, certificates: Iterable[tuple[float, str]]) -> None:
        """The certificates of all connections: when each ends (infinity: there is none), and whose it is."""
        now = self._clock()
        self._soon = sorted({each for each in certificates if now < each[0] < now + DAYS_BEFORE * _DAY})
        self._told = {each: at for each, at in self._told.items() if each[0] > now}
        for each in self._soon:
            if now - self._told.get(each, 0.0) >= _DAY:
                self._told[each] = now
                self._log.note(_text(*each, now))

    def notices(self) -> tuple[str, ...]:
        """One line for each certificate in use that ends soon, the first to end first."""
        now = self._clock()
        return tuple(_text(*each, now) for each in self._soon)


def _text(ends_at: float, holder: str, now: float) -> str:
    left = max(0.0, ends_at - now)
    days, hours = int(left // _DAY), int(left // 3600)
    until = f"{days} days" if days > 1 else f"{hours} hours" if hours > 1 else f"{int(left // 60)} minutes"
    at = datetime.fromtimestamp(ends_at, UTC).strftime("%Y-%m-%d %H:%M")
    return f"the certificate of {holder} ends in {until}, at {at} UTC: renew it (docs/security.md)"
