"""Values of spec variables, and sizes, as a reader wants to see them, the same in every command."""

from __future__ import annotations

from viewproof.spec.lang import Sort, Spec, optional
from viewproof.spec.lang.schema import Var
from viewproof.spec.vsr.core.state import View


def show_value(var: Var, value: int) -> str:
    """Entries by the view that prepared them (`v0`, `none`), the rest by their labels."""
    if var.values == optional(View):
        return f"v{value - 1}" if value else "none"
    return var.values.show(value)


def sorts_of(spec: Spec) -> dict[str, Sort]:
    """The sorts of a specification, by name."""
    of_vars = (sort for var in spec.schema.vars.values() for sort in (*var.index, var.values.sort) if sort)
    of_params = (param.sort for action in spec.actions for param in action.params)
    return {sort.name: sort for sort in (*of_vars, *of_params)}


def show_sizes(spec: Spec) -> str:
    """`Node=3 (0 to 2), Op=2 (1 to 2)`: how many members each sort has, as `--size` is told it, and which."""
    sorts = sorts_of(spec)
    firsts = {name: sorts[name].lo if name in sorts else 0 for name in spec.instance.bounds}
    tops = spec.instance.bounds
    return ", ".join(f"{name}={tops[name] - lo + 1} ({lo} to {tops[name]})" for name, lo in firsts.items())
