"""How clients are remembered: the options `client_table` of a configuration (docs/clients-and-control.md)."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.lang import SpecError
from viewproof.spec.vsr.options import Options, option


@dataclass(frozen=True)
class ClientTable(Options):
    """The client table. At its defaults it is the core's."""

    slots: int = option(0, "how many clients it remembers (0: all)", least=0)
    sessions: bool = option(False, "clients register")
    gaps: bool = option(False, "request numbers may skip")
    in_flight: int = option(1, "requests that a client sends without an answer (0: any number; for traces)", least=0)
    cached: int = option(
        0,
        "how many replies a slot keeps, and its client's largest number over all its sessions "
        "(0: the last reply, and its number; Iggy has 5)",
        least=0,
    )
    forgets: bool = option(
        False,
        "by design a client whose slot was taken begins anew, and a request that comes again is executed again: I8 is "
        "said of a client only while it has its slot",
    )

    @property
    def weakness(self) -> str:
        """What such a table does not promise, whoever builds it right; "" if nothing."""
        if self.sessions or not self.slots:
            return ""
        return (
            "by design: slots without sessions forget a client whose slot is taken, and a request of it that comes "
            "again is executed again; I8 (exactly once) is said of a client only while it keeps its slot"
        )

    def go_together(self) -> None:
        """Several replies are kept by sessions only; slots without sessions forget."""
        if self.forgets and (self.sessions or not self.slots):
            raise SpecError("only a table of slots without sessions forgets clients")
        if self.cached and not (self.sessions and self.gaps):
            raise SpecError("a table that keeps several replies has sessions, and numbers with gaps")


@dataclass(frozen=True)
class ClientOptions(Options):
    """The option of the client table."""

    client_table: ClientTable = option(ClientTable(), "how clients are remembered")
