"""A compiler for a small subset of Python: functions over 64-bit integers and pointers, straight to LLVM.

The emitted sources of a model and the engines' own inner loops are written in it. It knows assignment, `if`, `while`,
`for … in range(…)`, `break`, `continue`, `return`, integer arithmetic, comparison, connectives, `min`, `max`, calls and
element access (`p[i]`, or `load` and `store` at an address). A parameter may be a record (a class of annotated fields,
`class Work(Record)`): it is passed as its fields, one after the other, and read as `work.s[c]`. There are no bounds
checks: who emits code proves or tests its indices. Every integer is signed and 64 bits wide; elements are as wide as
their pointer says and are read as unsigned unless 64 bits wide. Connectives and conditional expressions evaluate all
operands, so these must be free of side effects and safe to evaluate.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

I64 = int
"""A 64-bit integer argument."""
U8P = Any
U16P = Any
U32P = Any
I64P = Any
"""Pointers to elements of that width (arrays, for a reader)."""

BUILT_IN = frozenset(("external", "int64", "load", "lshr", "max", "min", "prefetch", "store"))
"""Names that no function of a source may have."""
_WORD, _BIT = ir.IntType(64), ir.IntType(1)
_WIDTHS = {"U8P": 8, "U16P": 16, "U32P": 32, "I64P": 64}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def lshr(value: int, count: int) -> int:
    """Shift right, filling with zeros."""
    return (value & (1 << 64) - 1) >> count


def external(name: str) -> int:
    """A number above 0 that is known when the code is linked."""
    raise NotImplementedError("only compiled")


def load(address: int) -> int:
    """The 64-bit word at an address, any one. There are no bounds: who writes it keeps to memory that it was given."""
    raise NotImplementedError("only compiled")


def store(address: int, value: int) -> None:
    """Put a 64-bit word at an address."""
    raise NotImplementedError("only compiled")


def prefetch(pointer: Any, index: int) -> None:
    """Ask for an element that will be needed soon."""


class Record:
    """Parameters that belong together. Instances hold arrays and numbers under the names of the annotated fields."""

    def __init__(self, **fields: Any) -> None:
        known = list(inspect.get_annotations(type(self)))
        if list(fields) != known:
            raise MachineError(f"{type(self).__name__} has the fields {known}, not {list(fields)}")
        self.__dict__.update(fields)

    def as_words(self) -> list[int]:
        """The fields as 64-bit words: addresses of arrays, and numbers."""
        return [v if isinstance(v, int) else v.ctypes.data for v in self.__dict__.values()]


class MachineError(Exception):
    """A construct outside the subset: a fault of the tool."""


@dataclass
class _Function:
    """What is known while one function is translated."""

    types: dict[str, int]
    args: dict[str, ir.Value]
    slots: dict[str, ir.Value] = field(default_factory=dict)
    records: set[str] = field(default_factory=set)
    params: list[str] = field(default_factory=list)
    loops: list[tuple[ir.Block, ir.Block]] = field(default_factory=list)


def records(tree: ast.Module) -> dict[str, list[tuple[str, str]]]:
    """The records that a source declares: their fields with their kinds, in order."""
    return {
        node.name: [(f.target.id, ast.unparse(f.annotation)) for f in node.body if _is_field(f)]  # type: ignore[attr-defined]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def parameters(node: ast.FunctionDef, known: dict[str, list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Names and kinds of a function's arguments; of a record `work` its fields: `work.s`, `work.t` …"""
    found: list[tuple[str, str]] = []
    for arg in node.args.args:
        kind = ast.unparse(arg.annotation).strip("'\"") if arg.annotation else "I64"
        if kind in known:
            found += [(f"{arg.arg}.{name}", of) for name, of in known[kind]]
        else:
            found.append((arg.arg, kind))
    return found


class Translator:
    """Translates the functions of one source text into one LLVM module."""

    def __init__(self, name: str, source: str) -> None:
        self.module = ir.Module(name)
        self.tree = ast.parse(source)
        self.records = records(self.tree)
        self.build: Any = None
        self.now = _Function({}, {})

    def translate(self) -> str:
        """The module's text."""
        called = {n.func.id for n in ast.walk(self.tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                self._function(node)
                if node.name in called and self.now.records:
                    self.module.globals[node.name].attributes.add("alwaysinline")  # records cost nothing to pass
        return str(self.module)

    def _function(self, node: ast.FunctionDef) -> None:
        if node.name in BUILT_IN:
            raise MachineError(f"line {node.lineno}: {node.name} is built in")
        params = parameters(node, self.records)
        fn = self._declare(node.name, [_WIDTHS.get(kind, 0) for _, kind in params])
        self.now = _Function({}, {}, records={name.partition(".")[0] for name, _ in params if "." in name})
        self.build = ir.IRBuilder(fn.append_basic_block("entry"))
        for (name, kind), value in zip(params, fn.args, strict=True):
            value.name = name
            if kind in _WIDTHS:
                value.add_attribute("noalias")
                self.now.types[name] = _WIDTHS[kind]
                self.now.args[name] = value
            else:
                self.build.store(value, self._slot(name))
        self.now.params = [name for name, _ in params]
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                self._slot(child.id)
        self._body(node.body)
        if not self.build.block.is_terminated:
            self.build.ret(_WORD(0))

    def _declare(self, name: str, widths: list[int]) -> ir.Function:
        known = self.module.globals.get(name)
        if known is not None:
            return known
        kinds = [ir.IntType(width).as_pointer() if width else _WORD for width in widths]
        fn = ir.Function(self.module, ir.FunctionType(_WORD, kinds), name)
        fn.attributes.add("nounwind")
        return fn

    def _slot(self, name: str) -> ir.Value:
        """Where a local variable lives."""
        if name not in self.now.slots:
            entry = self.build.function.entry_basic_block
            with self.build.goto_block(entry):
                if entry.instructions:
                    self.build.position_before(entry.instructions[0])
                self.now.slots[name] = self.build.alloca(_WORD, name=f"v_{name}")
        return self.now.slots[name]

    def _body(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if self.build.block.is_terminated:
                return
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        handler = getattr(self, f"_do_{type(node).__name__.lower()}", None)
        if handler is None:
            raise MachineError(f"line {node.lineno}: {ast.unparse(node)[:60]}")
        handler(node)

    def _do_pass(self, node: ast.Pass) -> None:
        pass

    def _do_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _do_assign(self, node: ast.Assign) -> None:
        self._store(node.targets[0], self.word(node.value))

    def _do_augassign(self, node: ast.AugAssign) -> None:
        old = self.word(self._loaded(node.target))
        self._store(node.target, self._arithmetic(node.op, old, self.word(node.value), node))

    @staticmethod
    def _loaded(target: ast.expr) -> ast.expr:
        if isinstance(target, ast.Name):
            return ast.Name(target.id, ast.Load())
        assert isinstance(target, ast.Subscript)
        return ast.Subscript(target.value, target.slice, ast.Load())

    def _store(self, target: ast.expr, value: ir.Value) -> None:
        if isinstance(target, ast.Name):
            self.build.store(value, self._slot(target.id))
            return
        assert isinstance(target, ast.Subscript)
        width, pointer = self._element(target)
        self.build.store(self.build.trunc(value, ir.IntType(width)) if width < 64 else value, pointer)

    def _element(self, node: ast.Subscript) -> tuple[int, ir.Value]:
        name = ast.unparse(node.value)
        if name not in self.now.args:
            raise MachineError(f"line {node.lineno}: {name} is no pointer")
        return self.now.types[name], self.build.gep(self.now.args[name], [self.word(node.slice)], inbounds=True)

    def _do_return(self, node: ast.Return) -> None:
        self.build.ret(self.word(node.value) if node.value is not None else _WORD(0))

    def _do_if(self, node: ast.If) -> None:
        test = self.bit(node.test)
        then = self.build.append_basic_block("then")
        after = self.build.append_basic_block("after")
        other = self.build.append_basic_block("other") if node.orelse else after
        self.build.cbranch(test, then, other)
        for block, body in ((then, node.body), (other, node.orelse)):
            if block is after:
                continue
            self.build.position_at_end(block)
            self._body(body)
            if not self.build.block.is_terminated:
                self.build.branch(after)
        self.build.position_at_end(after)

    def _do_while(self, node: ast.While) -> None:
        head, body, after = (self.build.append_basic_block(n) for n in ("head", "body", "after"))
        self.build.branch(head)
        self.build.position_at_end(head)
        self.build.cbranch(self.bit(node.test), body, after)
        self._loop(body, node.body, head, after)
        self.build.position_at_end(after)

    def _do_for(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        ends = [self.word(arg) for arg in node.iter.args]
        first, last = (ends[0], ends[1]) if len(ends) == 2 else (_WORD(0), ends[0])
        counter = self._slot(f"{node.target.id}.{node.lineno}")
        self.build.store(first, counter)
        head, body, step, after = (self.build.append_basic_block(n) for n in ("head", "body", "step", "after"))
        self.build.branch(head)
        self.build.position_at_end(head)
        now = self.build.load(counter)
        self.build.cbranch(self.build.icmp_signed("<", now, last), body, after)
        self.build.position_at_end(body)
        self.build.store(now, self._slot(node.target.id))
        self._loop(body, node.body, step, after)
        self.build.position_at_end(step)
        self.build.store(self.build.add(self.build.load(counter), _WORD(1), flags=("nsw",)), counter)
        self.build.branch(head)
        self.build.position_at_end(after)

    def _loop(self, block: ir.Block, nodes: list[ast.stmt], repeat: ir.Block, after: ir.Block) -> None:
        self.build.position_at_end(block)
        self.now.loops.append((repeat, after))
        self._body(nodes)
        if not self.build.block.is_terminated:
            self.build.branch(repeat)
        self.now.loops.pop()

    def _do_break(self, node: ast.Break) -> None:
        self.build.branch(self.now.loops[-1][1])

    def _do_continue(self, node: ast.Continue) -> None:
        self.build.branch(self.now.loops[-1][0])

    def word(self, node: ast.expr) -> ir.Value:
        """Value of an expression as an integer."""
        value = self.value(node)
        return value if value.type == _WORD else self.build.zext(value, _WORD)

    def bit(self, node: ast.expr) -> ir.Value:
        """Truth of an expression."""
        value = self.value(node)
        return value if value.type == _BIT else self.build.icmp_signed("!=", value, _WORD(0))

    def value(self, node: ast.expr) -> ir.Value:
        """Value of an expression: a word, or a bit where it is a comparison or connective."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                return _BIT(int(node.value))
            return _WORD(node.value)
        if isinstance(node, ast.Name):
            return self.build.load(self._slot(node.id))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in self.now.slots:
            return self.build.load(self._slot(ast.unparse(node)))
        if isinstance(node, ast.Subscript):
            width, pointer = self._element(node)
            loaded = self.build.load(pointer)
            return self.build.zext(loaded, _WORD) if width < 64 else loaded
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node.op, self.word(node.left), self.word(node.right), node)
        if isinstance(node, (ast.Compare, ast.BoolOp)):
            return self._connective(node)
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Not):
                return self.build.not_(self.bit(node.operand))
            return self.build.neg(self.word(node.operand))
        if isinstance(node, ast.IfExp):
            return self.build.select(self.bit(node.test), self.word(node.body), self.word(node.orelse))
        if isinstance(node, ast.Call):
            return self._call(node)
        raise MachineError(f"line {node.lineno}: {ast.unparse(node)[:60]}")

    def _connective(self, node: ast.Compare | ast.BoolOp) -> ir.Value:
        bits: list[ir.Value] = []
        join = self.build.and_
        if isinstance(node, ast.BoolOp):
            bits = [self.bit(value) for value in node.values]
            join = self.build.and_ if isinstance(node.op, ast.And) else self.build.or_
        else:
            values = [self.word(v) for v in (node.left, *node.comparators)]
            for op, a, b in zip(node.ops, values, values[1:], strict=False):
                bits.append(self.build.icmp_signed(_COMPARISONS[type(op)], a, b))
        result = bits[0]
        for bit in bits[1:]:
            result = join(result, bit)
        return result

    def _arithmetic(self, op: ast.operator, a: ir.Value, b: ir.Value, node: ast.AST) -> ir.Value:
        build = self.build
        simple = {
            ast.Add: build.add, ast.Sub: build.sub, ast.Mult: build.mul, ast.BitAnd: build.and_,
            ast.BitOr: build.or_, ast.BitXor: build.xor, ast.LShift: build.shl,
        }  # fmt: skip
        if type(op) in simple:
            return simple[type(op)](a, b)
        if isinstance(op, ast.RShift):
            return build.ashr(a, b)
        if isinstance(op, ast.Mod):
            rest = build.srem(a, b)
            return build.select(build.icmp_signed("<", rest, _WORD(0)), build.add(rest, b), rest)
        raise MachineError(f"{ast.unparse(node)[:60]}")

    def _call(self, node: ast.Call) -> ir.Value:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name == "prefetch":
            return self._prefetch(node)
        if name == "int64":
            return self.word(node.args[0])
        if name == "external":
            return self._external(node.args[0])
        if name == "load":
            return self.build.load(self._address(node.args[0]), align=1)
        if name == "store":
            value = self.word(node.args[1])
            self.build.store(value, self._address(node.args[0]), align=1)
            return value
        if name in ("min", "max", "lshr"):
            a, b = self.word(node.args[0]), self.word(node.args[1])
            if name == "lshr":
                return self.build.lshr(a, b)
            return self.build.select(self.build.icmp_signed("<" if name == "min" else ">", a, b), a, b)
        given = [part for arg in node.args for part in self._fields(arg)]
        widths = [self.now.types.get(part, 0) if isinstance(part, str) else 0 for part in given]
        fn = self._declare(name, widths)
        values = [self._passed(part) for part in given]
        return self.build.call(fn, [self._as(arg.type, v) for arg, v in zip(fn.args, values, strict=True)])

    def _as(self, kind: ir.Type, value: ir.Value) -> ir.Value:
        """A word for a pointer is its address."""
        return self.build.inttoptr(value, kind) if value.type == _WORD != kind else value

    def _external(self, node: ast.expr) -> ir.Value:
        assert isinstance(node, ast.Constant)
        known = self.module.globals.get(node.value)
        symbol = known or ir.GlobalVariable(self.module, ir.IntType(8), node.value)
        return self.build.ptrtoint(symbol, _WORD)

    def _address(self, node: ast.expr) -> ir.Value:
        return self.build.inttoptr(self.word(node), _WORD.as_pointer())

    def _fields(self, arg: ast.expr) -> list[str | ast.expr]:
        """What an argument is passed as: a record as its fields, a pointer by its name, any other expression."""
        text = ast.unparse(arg)
        if text in self.now.records:
            return [name for name in self.now.params if name.startswith(f"{text}.")]
        return [text] if text in self.now.args else [arg]

    def _passed(self, arg: str | ast.expr) -> ir.Value:
        if not isinstance(arg, str):
            return self.word(arg)
        return self.now.args.get(arg) or self.build.load(self._slot(arg))

    def _prefetch(self, node: ast.Call) -> ir.Value:
        target = ast.Subscript(node.args[0], node.args[1], ast.Load())
        byte = ir.IntType(8).as_pointer()
        pointer = self.build.bitcast(self._element(target)[1], byte)
        small = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, small, small, small])
        fn = self.module.globals.get("llvm.prefetch.p0") or ir.Function(self.module, kind, "llvm.prefetch.p0")
        self.build.call(fn, [pointer, small(1), small(3), small(1)])
        return _WORD(0)
