"""The page of the specification language: each word, its declaration, and what the engines make of an example of it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from textwrap import dedent

from benchmarks.reference import examples
from benchmarks.reference.text import paragraphs, wrapped
from viewproof.spec import lang
from viewproof.spec.engines.explicit.emit import emit
from viewproof.spec.engines.replay.emit import Emitter
from viewproof.spec.engines.replay.store import Layout
from viewproof.spec.engines.smt.lower import Lowering
from viewproof.spec.engines.smt.terms import Term
from viewproof.spec.engines.tla.module import export
from viewproof.spec.lang import Spec

HEAD = """# The specification language

Every word of `viewproof.spec.lang`, from its declarations. `python -m benchmarks.reference --write docs/reference`
makes this page.

A specification is Python that is run in two ways. The reference interpreter calls its functions on numbers: that is
what they mean. All other engines look at what was *recorded* when they were called once, on symbols. So a condition is
said with these words, and not with Python's `if`, `and` or loops over symbols, which are refused with their line; `if`
may ask the configuration (`state.cfg`). [The tutorial](../changing-the-protocol.md) shows the words at work,
[the course](../course/README.md) teaches them.

Of each word of an expression the page shows what four engines make of an example, printed by these engines: the
*search*, a function over a row of bytes (`s`) that is compiled; the *proof*, a term over one variable for each cell,
which z3 is given; the *audit*, which replays traces, in Python over tables of the cells that are set; and *TLA+*, for
TLC. The examples are over the state at [the end](#the-state-of-the-examples), with nodes 0..2 and ops 1..2; in an audit
logs have no end.
"""
GROUPS: Mapping[str, tuple[str, str]] = {
    "State": (
        "The body of a class declares variables and messages.",
        "State variable ghost Cells schema_of Schema Var",
    ),
    "Sorts and values": (
        "Indices are members of sorts; an instance says how far each reaches.",
        "Sort Index Label Number Bool Option Values BOOL up_to optional number_to one_of Instance",
    ),
    "Messages": (
        "What was sent stays sent; a receiver may act on it now, later, again or never.",
        "Message Fields field Sent message watermark MessageType BLANK each only_if unsent same with_fields",
    ),
    "Actions and claims": (
        "An action has guards, then effects; what is not assigned does not change.",
        "action require tagged invariant witness Spec Action Predicate Goal",
    ),
    "Conditions": (
        "Conditions, and choice. Arguments may be `lambda: …`, which are looked at only where they count.",
        "all_of any_of not_ implies where Truth",
    ),
    "Quantifiers": (
        "Over all members of a sort, or a range of it.",
        "forall exists count maximum between Between",
    ),
    "Numbers and optionals": (
        "Members of sorts can be moved by a number and compared with their like.",
        "largest smallest within some value_of NONE number_of as_index",
    ),
    "Parts": (
        "A specification put together from a core and optional parts ([extending](../extending.md#an-optional-part)).",
        "Part Change Composition compose at before after replaces Point point joined cases instead without",
    ),
    "Errors": ("What is refused is refused with its line.", "SpecError RangeError Disabled Source"),
}
"""Heading → what is said under it, and its words."""
_INFIX = {"and": "and", "or": "or", "eq": "=", "le": "≤", "add": "+", "sub": "-"}


def page() -> str:
    """The document."""
    made = Engines(examples.example_spec())
    parts = [HEAD]
    for heading, (said, words) in GROUPS.items():
        parts += [f"## {heading}\n\n{said}\n", *(_entry(word, made) for word in words.split())]
    source = inspect.getsource(examples)
    start, end = source.index("class Node("), source.index("@action")
    parts.append(made.action())
    parts.append(f"## The state of the examples\n\n```python\n{source[start:end].strip()}\n```\n")
    return "\n".join(parts)


class Engines:
    """What the engines make of the examples."""

    def __init__(self, spec: Spec) -> None:
        self._search = {unit.title: unit.source for unit in emit(spec).units}
        self._module = "\n".join(export(spec).text.splitlines())
        self._lowering = Lowering(spec)
        self._replay = Emitter(Layout(spec.schema, examples.UNBOUNDED), examples.UNBOUNDED)
        self._conditions = {ir.name: ir.cond for ir in spec.invariant_irs}

    def shown(self, word: str) -> Iterator[tuple[str, str]]:
        """Engine → its text."""
        yield "search", re.sub(r"\bf_[0-9a-f]+", word, self._search[word]).strip()
        yield "proof", wrapped(self._term(self._lowering.expr(self._conditions[word], {}).term), "  ")
        yield "audit", wrapped(self._replay.text(self._conditions[word], {}), "  ")
        yield "TLA+", self._definition(word)

    def action(self) -> str:
        """A section: an action, and what TLA+ makes of it."""
        source = inspect.getsource(examples)
        text = source[source.index("@action") : source.index("EXAMPLES:")].strip()
        shown = self._definition("take")
        return f"## An action\n\n```python\n{text}\n```\n\n*TLA+*\n\n```text\n{shown}\n```\n"

    def _term(self, term: Term, *, inner: bool = False) -> str:
        """A term as text; a cell by its name."""
        if term.kind == "const":
            return str(bool(term.lo)) if term.is_bool else str(term.lo)
        if term.kind == "cell":
            var, index = self._lowering.places[term.args[0]]
            return f"{var}[{', '.join(map(str, index))}]" if index else var
        infix = _INFIX.get(term.kind)
        parts = [self._term(arg, inner=bool(infix)) if isinstance(arg, Term) else str(arg) for arg in term.args]
        if infix:
            text = f" {infix} ".join(parts)
            return f"({text})" if inner else text
        return f"{term.kind}({', '.join(parts)})"

    def _definition(self, word: str) -> str:
        found = re.search(
            rf"^({re.escape(word)}(?:_{word})?(?:\(.*\))?) ==((?:\n|.)*?)\n\n", self._module, re.MULTILINE
        )
        assert found is not None, word
        return dedent(found[2].removeprefix(" ")).strip("\n")


def _entry(word: str, made: Engines) -> str:
    """One word: its declaration, its docstring, an example."""
    found = getattr(lang, word)
    lines = [f"### {word}\n", f"```python\n{_declaration(word, found)}\n```\n"]
    if doc := _doc(word, found):
        lines.append(paragraphs(doc) + "\n")
    if word in examples.EXAMPLES:
        lines.append(f"`{_written(word)}`\n")
        for engine, text in made.shown(word):
            lines.append(f"*{engine}*\n\n```{'python' if engine in ('search', 'audit') else 'text'}\n{text}\n```\n")
    return "\n".join(lines)


def _declaration(word: str, found: object) -> str:
    """How the word is called, as its source declares it."""
    home = inspect.getmodule(found)
    if isinstance(found, type) and is_dataclass(found):
        told = (f"    {one.name}: {one.type}" for one in fields(found) if one.init and not one.name.startswith("_"))
        return "\n".join((f"class {word}", *told))
    if isinstance(found, type) and home is not None:
        bases = ", ".join(base.__name__ for base in found.__bases__ if base is not object)
        return f"class {word}({bases})" if bases else f"class {word}"
    if inspect.isfunction(found):
        tree = ast.parse(dedent(inspect.getsource(found)).split(f"def {word}", 1)[1].join((f"def {word}", "")))
        [declared] = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        returns = f" -> {ast.unparse(declared.returns)}" if declared.returns else ""
        return f"{word}({ast.unparse(declared.args)}){returns}"
    return word


def _doc(word: str, found: object) -> str:
    """The docstring; of a value the text below it."""
    if isinstance(found, type) or inspect.isfunction(found):
        own = found.__dict__.get("__doc__") if isinstance(found, type) else found.__doc__
        text = inspect.cleandoc(own or "")
        return "" if text.startswith(f"{word}(") else text
    for module in (lang.terms, lang.sorts, lang.messages, lang.vocabulary):
        for node, below in pairwise(ast.parse(inspect.getsource(module)).body):
            if isinstance(below, ast.Expr) and isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                if isinstance(target, ast.Name) and target.id == word:
                    return inspect.cleandoc(str(ast.literal_eval(below.value)))
    return ""


def _written(word: str) -> str:
    """The example as it is written."""
    tree = ast.parse(inspect.getsource(examples))
    [table] = [n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == "EXAMPLES"]
    assert isinstance(table, ast.Dict)
    texts = {ast.literal_eval(key): value for key, value in zip(table.keys, table.values, strict=True) if key}
    example = texts[word]
    assert isinstance(example, ast.Lambda)
    return ast.unparse(example.body)
