"""Random small models: schema, actions, invariants and witnesses drawn by hypothesis, for comparing engines.

Expressions are trees that `evaluate` runs over the vocabulary, so the same drawn function runs concretely and is
recorded. Operands of connectives and branches are thunks, so that both ways look at the same parts. Most indices and
values are kept in range on purpose, and some are not, so that range errors are met too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from viewproof.spec import lang
from viewproof.spec.lang import BOOL, Action, Instance, Predicate, Schema, Sort, Spec, Values, Var, between, number_to
from viewproof.spec.lang.expr import Param

A, B = Sort("A"), Sort("B", lo=1)
INSTANCE = Instance({"A": 1, "B": 2})
SORTS = (A, B)
INTS = (Values(0, 2), Values(-1, 1), number_to(A, plus=1))
STATES_MAX = 600
Draw = Callable[[st.SearchStrategy[Any]], Any]
Tree = tuple[Any, ...]
Scope = tuple[tuple[str, Sort], ...]


def evaluate(tree: Tree, s: Any, env: dict[str, Any]) -> Any:
    """Run an expression tree over the vocabulary."""
    kind, *rest = tree
    if kind == "const":
        return rest[0]
    if kind == "name":
        return env[rest[0]]
    if kind == "read":
        name, index, how = rest
        space = s.after if how == "after" else s.received(0) if how == "received" else s
        cells = getattr(space, name)
        values = tuple(evaluate(i, s, env) for i in index)
        return cells[values if len(values) > 1 else values[0]] if values else cells
    if kind in ("forall", "exists", "count", "maximum"):
        name, domain, body = rest
        return getattr(lang, kind)(place(domain, s, env), lambda i: evaluate(body, s, {**env, name: i}))
    return _operation(kind, rest, s, env)


def _operation(kind: str, args: list[Any], s: Any, env: dict[str, Any]) -> Any:
    def value(n: int) -> Any:
        return evaluate(args[n], s, env)

    if kind in ("all_of", "any_of", "implies"):
        return getattr(lang, kind)(*((lambda a=a: evaluate(a, s, env)) for a in args))
    if kind == "where":
        return lang.where(lambda: value(0), lambda: value(1), lambda: value(2))
    if kind == "within":
        return lang.within(args[1], value(0))
    if kind == "not_":
        return lang.not_(value(0))
    if kind == "mod":
        return value(0) % args[1]
    if kind == "number":
        return lang.number_of(value(0))
    if kind == "member":
        return lang.as_index(args[1], value(0))
    operations: dict[str, Callable[[Any, Any], Any]] = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "largest": lang.largest, "smallest": lang.smallest,
    }  # fmt: skip
    return operations[kind](value(0), value(1))


def place(domain: Any, s: Any, env: dict[str, Any]) -> Any:
    """A sort, or a range of one with computed ends."""
    if isinstance(domain, Sort):
        return domain
    sort, lo, hi = domain
    return between(sort, evaluate(lo, s, env), evaluate(hi, s, env))


class Trees:
    """Draws expression trees over a schema."""

    def __init__(self, draw: Draw, schema: Schema, after: bool = False) -> None:
        self.draw = draw
        self.vars = list(schema.vars.values())
        self.after = after
        self.fresh = 0

    def pick(self, *options: Any) -> Any:
        """One of the options."""
        return self.draw(st.sampled_from(options))

    def read(self, scope: Scope, depth: int, is_bool: bool | None = None) -> Tree | None:
        """A read of some variable of the type; None if there is none."""
        fitting = [v for v in self.vars if is_bool is None or v.values.is_bool == is_bool]
        if not fitting:
            return None
        var: Var = self.pick(*fitting)
        how = "after" if self.after and self.pick(True, False) else "received" if var.is_message else "before"
        return ("read", var.name, tuple(self.index(sort, scope, depth) for sort in var.index), how)

    def index(self, sort: Sort, scope: Scope, depth: int) -> Tree:
        """Mostly a member of the sort, now and then not."""
        names = [("name", n) for n, of in scope if of == sort]
        safe = [*names, ("const", sort.lo), ("const", sort.lo + 1)]
        if self.draw(st.integers(0, 49)) == 0:
            others = [("number", ("name", n)) for n, _ in scope]
            return ("member", ("add", self.pick(*others), ("const", 1)), sort) if others else ("const", 3)
        if depth > 0 and self.draw(st.integers(0, 5)) == 0 and sort == A:
            return ("member", ("mod", self.integer(scope, depth - 1), 2), sort)
        return self.pick(*safe)

    def integer(self, scope: Scope, depth: int) -> Tree:
        """An integer expression that is not a constant, if there is anything to read."""
        leaf = self.read(scope, depth - 1, False)
        leaves: list[Tree] = [("number", ("name", n)) for n, _ in scope] + ([leaf] if leaf else [])
        if not leaves:
            return ("count", self.name(), A, self.boolean(scope, depth - 1)) if depth > 0 else ("const", 1)
        first = self.pick(*leaves)
        if depth <= 0:
            return first
        kind = self.pick("leaf", "leaf", "add", "sub", "mod", "largest", "smallest", "where", "count", "maximum")
        if kind in ("add", "sub", "largest", "smallest"):
            return (kind, first, self.pick(("const", 1), self.integer(scope, depth - 1)))
        if kind == "mod":
            return ("mod", self.integer(scope, depth - 1), self.pick(2, 3))
        if kind == "where":
            return ("where", self.boolean(scope, depth - 1), first, self.integer(scope, depth - 1))
        if kind in ("count", "maximum"):
            return self.quantifier(kind, scope, depth)
        return first

    def name(self) -> str:
        """A fresh bound name."""
        self.fresh += 1
        return f"b{self.fresh}"

    def domain(self, scope: Scope, depth: int) -> tuple[Any, Sort]:
        """A sort, or a range in it that rarely leaves it."""
        sort = self.pick(*SORTS)
        if self.pick(True, True, False):
            return sort, sort
        lo: Tree = ("const", sort.lo + self.pick(0, 1))
        end = self.integer(scope, depth - 1)
        if self.draw(st.integers(0, 19)) > 0:
            end = ("smallest", ("const", sort.lo + 1), end)
        return (sort, lo, ("member", end, sort)), sort

    def quantifier(self, kind: str, scope: Scope, depth: int) -> Tree:
        """A quantifier over a sort or range."""
        domain, sort = self.domain(scope, depth)
        name = self.name()
        inner = (*scope, (name, sort))
        body = self.integer(inner, depth - 1) if kind == "maximum" else self.boolean(inner, depth - 1)
        return (kind, name, domain, body)

    def boolean(self, scope: Scope, depth: int) -> Tree:
        """A Boolean expression that reads something."""
        leaf = self.read(scope, depth - 1, True)
        if depth <= 0:
            return leaf or (self.pick("eq", "le", "ne"), self.integer(scope, 0), ("const", self.pick(0, 1)))
        kinds = ["eq", "ne", "lt", "le", "all_of", "any_of", "implies", "not_", "within", "forall", "exists"]
        kind = self.pick(*kinds, *(["leaf"] if leaf else []))
        if kind in ("eq", "ne", "lt", "le"):
            return (kind, self.integer(scope, depth - 1), self.pick(("const", 1), self.integer(scope, depth - 1)))
        if kind in ("all_of", "any_of", "implies"):
            return (kind, self.boolean(scope, depth - 1), self.boolean(scope, depth - 1))
        if kind == "not_":
            return ("not_", self.boolean(scope, depth - 1))
        if kind == "within":
            sort = self.pick(*SORTS)
            return ("within", ("member", self.integer(scope, depth - 1), sort), sort)
        if kind in ("forall", "exists"):
            return self.quantifier(kind, scope, depth)
        assert leaf is not None
        return leaf


def _schema(draw: Draw) -> Schema:
    schema = Schema()
    states = 1
    for n in range(draw(st.integers(2, 4))):
        values = draw(st.sampled_from((BOOL, *INTS)))
        index = tuple(draw(st.lists(st.sampled_from(SORTS), min_size=int(draw(st.booleans())), max_size=2)))
        width = 2 if values.is_bool else 3
        while index and states * width ** (2 ** len(index)) > STATES_MAX:
            index = index[:-1]
        if n and states * width ** (2 ** len(index)) > STATES_MAX:
            break
        states *= width ** (2 ** len(index))
        if values.lo == 0 and draw(st.booleans()):
            schema.register(f"m{n}", index, values, sender=lambda *_: 1, doc="a message")
        else:
            init = 0 if values.is_bool else draw(st.integers(values.lo, values.lo + 1))
            schema.state(f"v{n}", index, values, init=init, doc="a variable")
    return schema


def _updates(draw: Draw, trees: Trees, schema: Schema, scope: Scope) -> list[tuple[Any, ...]]:
    """At most one update per variable: (variable, index, bound names, value)."""
    chosen = draw(st.lists(st.sampled_from(list(schema.vars.values())), min_size=1, max_size=3, unique=True))
    found = []
    for var in chosen:
        inner, index, names = scope, [], []
        for sort in var.index:
            if draw(st.integers(0, 2)) == 0:
                names.append(trees.name())
                index.append(sort)
                inner = (*inner, (names[-1], sort))
            else:
                index.append(trees.index(sort, scope, 1))
        if draw(st.booleans()):
            value = _next(var, index, names)
        elif var.values.is_bool:
            value = trees.boolean(inner, 2)
        else:
            top = var.values.upper(INSTANCE)
            value = trees.integer(inner, 2)
            if draw(st.integers(0, 15)) > 0:
                value = ("smallest", ("const", top), ("largest", ("const", var.values.lo), value))
        found.append((var, index, names, value))
    return found


def _next(var: Var, index: list[Any], names: list[str]) -> Tree:
    """The cell's next value, round and round: what makes long behaviours likely."""
    bound = iter(names)
    own = tuple(("name", next(bound)) if isinstance(i, Sort) else i for i in index)
    now: Tree = ("read", var.name, own, "before")
    if var.values.is_bool:
        return ("not_", now)
    top, lo = var.values.upper(INSTANCE), var.values.lo
    assert top is not None
    shifted: Tree = ("add", now, ("const", 1 - lo))
    return ("add", ("mod", shifted, top - lo + 1), ("const", lo))


def _function(guards: list[Tree], updates: list[tuple[Any, ...]]) -> Callable[..., None]:
    def act(state: Any, **args: Any) -> None:
        for guard in guards:
            lang.require(evaluate(guard, state, args))
        for var, index, names, value in updates:
            if not var.index:
                setattr(state, var.name, evaluate(value, state, args))
                continue
            full = tuple(i if isinstance(i, Sort) else evaluate(i, state, args) for i in index)
            if names:
                cells = getattr(state, var.name)
                cells.update(full, _bound(names, value, state, args))
            else:
                getattr(state, var.name)[full if len(full) > 1 else full[0]] = evaluate(value, state, args)

    return act


def _bound(names: list[str], value: Tree, state: Any, args: dict[str, Any]) -> Callable[..., Any]:
    if len(names) == 1:
        return lambda i: evaluate(value, state, {**args, names[0]: i})
    return lambda i, j: evaluate(value, state, {**args, names[0]: i, names[1]: j})


@st.composite
def models(draw: Draw) -> Spec:
    """A random specification with its instance."""
    schema = _schema(draw)
    actions = []
    for n in range(draw(st.integers(2, 4))):
        scope: Scope = tuple((f"p{k}", draw(st.sampled_from(SORTS))) for k in range(draw(st.integers(0, 2))))
        trees = Trees(draw, schema)
        guards = [trees.boolean(scope, 2) for _ in range(draw(st.sampled_from((0, 0, 1, 2))))]
        fn = _function(guards, _updates(draw, trees, schema, scope))
        actions.append(Action(f"a{n}", fn, tuple(Param(name, sort) for name, sort in scope), "An action.", None))
    invariants = [_predicate(draw, schema, f"I{n}") for n in range(draw(st.integers(0, 2)))]
    witnesses = [_predicate(draw, schema, f"W{n}", step=False) for n in range(draw(st.integers(0, 1)))]
    return Spec("random", schema, None, tuple(actions), tuple(invariants), tuple(witnesses), INSTANCE)


def _predicate(draw: Draw, schema: Schema, id: str, step: bool | None = None) -> Predicate:
    trees = Trees(draw, schema, after=draw(st.booleans()) if step is None else step)
    tree = trees.boolean((), 3)
    for _ in range(draw(st.integers(0, 3))):
        tree = ("any_of", trees.boolean((), 2), tree)
    return Predicate(id, "drawn", lambda s: evaluate(tree, s, {}), "A predicate.")
