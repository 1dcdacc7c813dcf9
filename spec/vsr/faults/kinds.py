"""What a known mistake is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from viewproof.spec.lang import Action
from viewproof.spec.vsr.config import Config


@dataclass(frozen=True)
class Fault:
    """One mistake: `actions` replace those of the same name, `added` come on top, `configure` changes the
    configuration. `refuses` says why it cannot show under a configuration ("" if it can). `unshown`: what its steps
    read that no trace shows ("": nothing).
    """

    id: str
    doc: str
    actions: tuple[Action, ...] = ()
    added: tuple[Action, ...] = ()
    configure: Callable[[Config], Config] = field(default=lambda cfg: cfg)
    refuses: Callable[[Config], str] = field(default=lambda cfg: "")
    unshown: str = ""

    @property
    def is_configuration(self) -> bool:
        """Is it a wrong configuration, with all actions as they should be?"""
        return not self.actions and not self.added


def named(name: str, act: Action) -> Action:
    """The action under another name."""
    return replace(act, name=name)
