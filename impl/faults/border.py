"""Mistakes at the border of a process: a check that is left out."""

from __future__ import annotations

from viewproof.impl.faults.stand_ins import StandIns
from viewproof.impl.interface.messages import Message
from viewproof.impl.net.configuration import Configuration
from viewproof.impl.net.framing import Control, Hello
from viewproof.impl.net.guard import Guard, Known, TooFar
from viewproof.impl.net.inbound import Inbound
from viewproof.impl.net.peers import Peers


class LetsAnyoneSpeak(Inbound):
    """What a frame says of its sender is believed."""

    def speaker_error(self, hello: Hello, frame: Message | Control) -> str | None:
        return None


class BelievesNumbers(Guard):
    """How far ahead a number is does not matter."""

    def too_far(self, message: Message, known: Known) -> TooFar | None:
        return None


class BelievesHellos(Peers):
    """Certificates are shown, and not compared with who says hello."""

    def certificate_error(self, transport: object, hello: Hello) -> str | None:
        return None


class IgnoresConfiguration(Peers):
    """Replicas speak with each other however they are configured."""

    def configuration_error(self, there: Configuration, number: int) -> str | None:
        return None


class IgnoresAge(Peers):
    """A data directory may hold less than its replica said before."""

    def age_error(self, hello: Hello) -> str | None:
        return None

    def own_age_error(self, hello: Hello) -> str | None:
        return None


class ForgetsAge:
    """That a directory is old is not written down: it is forgotten when the processes are started anew."""

    def keep_outdated(self, reason: str) -> None:
        """Nothing is kept."""


class ServesAlone(Peers):
    """Requests are taken before any other replica is known to be configured alike."""

    @property
    def has_majority(self) -> bool:
        return True


STAND_INS: StandIns = {
    "border.speaker": {"inbound": LetsAnyoneSpeak},
    "border.jump": {"guard": BelievesNumbers},
    "border.certificate": {"peers": BelievesHellos},
    "border.configuration": {"peers": IgnoresConfiguration},
    "border.age": {"peers": IgnoresAge},
    "border.age_forgotten": {"disk": ForgetsAge},
    "border.alone": {"peers": ServesAlone},
}
