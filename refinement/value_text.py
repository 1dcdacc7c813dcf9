"""Values of spec variables as a reader wants to see them, the same in every command."""

from __future__ import annotations

from viewproof.spec.lang import optional
from viewproof.spec.lang.schema import Var
from viewproof.spec.vsr.core.state import View


def show_value(var: Var, value: int) -> str:
    """Entries by the view that prepared them (`v0`, `none`), the rest by their labels."""
    if var.values == optional(View):
        return f"v{value - 1}" if value else "none"
    return var.values.show(value)
