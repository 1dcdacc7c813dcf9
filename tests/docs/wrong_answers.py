"""Wrong answers to the exercises of the course: for each lesson the answer, and words of what is said to it."""

ACTION = '''
@action
def {name}(state: {state}, {params}):
    """Wrong."""
'''
ANSWER = ACTION.format(name="answer", state="Store", params="w: Write")
PREPARE = ACTION.format(name="on_prepare", state="Core", params="r: Replica, o: Op")
RULE = """
def no_larger(state, r, v, q, b):
    theirs, best = state.received(r).dvc[v, q], state.received(r).dvc[v, b]
"""
ONCE = '''
@invariant("X1", "once")
def once(state: Core):
    """Wrong."""
'''
LEMMA = '''
@invariant("lemma", "wrong")
def lemma(state: Store):
    """Wrong."""
    return forall(Write, lambda w: {})


lemmas = [lemma]
'''
TO_VIEW_1 = """
steps = [
    ("start_view_change", {"r": 1, "v": 1}),
    ("start_view_change", {"r": 2, "v": 1}),
    ("do_view_change", {"r": 1}),
    ("do_view_change", {"r": 2}),
    ("start_view", {"r": 1, "b": 1}),
    ("on_start_view", {"r": 2, "v": 1, "n": 0}),
    ("on_request", {"r": 1, "c": 1, "s": 1}),
    ("append", {"r": 1, "o": 1}),
    ("on_prepare", {"r": 2, "o": 1}),
    ("append", {"r": 2, "o": 1}),
    ("commit", {"r": 1, "o": 1}),
    ("execute", {"r": 1}),
]
"""
"""Replica 1 executes op 1 in view 1: an entry of view 1, and not the one of view 0."""

WRONG: dict[int, list[tuple[str, str]]] = {
    1: [
        (ANSWER + "    require(exists(Node, lambda n: state.log[n, w]))\n    state.answered[w] = True", "K1"),
        (
            ANSWER + "    require(all_of(state.leader == 1, state.log[1, w]))\n    state.answered[w] = True",
            "too little",
        ),
        (ANSWER + "    require(state.log[state.leader, w + 5])\n    state.answered[w] = True", "outside"),
        ("def answer(state, w): ...", "@action"),
        (
            ANSWER
            + "    require(state.log[state.leader, w])\n    state.log[1, w] = True\n    state.answered[w] = True",
            "answer changes log, too",
        ),
        (
            ANSWER + "    require(state.log(1, w))\n    state.answered[w] = True",
            "line 5, require(state.log(1, w)): TypeError",
        ),
        (ANSWER + "    require(state.log[leader, w])\n    state.answered[w] = True", "NameError: name 'leader'"),
    ],
    2: [
        ("write, read = 3, 2", "Q1"),
        ("write, read = 5, 1", "4 are enough"),
        ("write, read = 5, 2", "4 are enough"),
        ("write, read = 1, 5", "nobody can read"),
    ],
    3: [
        ("steps = []", "no steps"),
        ('steps = [("on_request", {"r": 0, "c": 1, "s": 1}), ("commit", {"r": 0, "o": 1})]', "step 2, commit"),
        ('steps = [("on_requests", {"r": 0, "c": 1, "s": 1})]', "on_requests"),
        (TO_VIEW_1, "as view 0 prepared it"),
    ],
    4: [
        (
            RULE + "    return all_of(theirs.sent, theirs.log_view <= best.log_view, theirs.op <= best.op)",
            "neither is the better",
        ),
        (RULE + "    return theirs.log_view * 10 <= best.log_view * 10", "TypeError: unsupported operand"),
        (RULE + "    return theirs.sent", "I2"),
        (RULE + "    return all_of(theirs.sent, theirs.log_view <= best.log_view)", "I2"),
        (RULE + "    return all_of(theirs.sent, theirs.commit <= best.commit)", "I2"),
        (RULE + "    return all_of(theirs.sent, theirs.log_view < best.log_view)", "too little"),
    ],
    5: [
        (ONCE + "    return not_(exists(Replica, lambda r: state.executed[r, 2] != NONE))", "does not hold"),
        (ONCE + "    return forall(Replica, lambda r: state.table[r, 1] <= 2)", "executed"),
        (
            ONCE + "    some = lambda r: any_of(state.executed[r, 1] == NONE, state.table[r, 1] > 0)\n"
            "    return forall(Replica, some)",
            "client table",
        ),
        (ONCE + "    return forall(Replica, lambda r: state.executed[r, 3] == NONE)", "outside"),
        (
            ONCE + "    client = lambda r, o: client_of(state, state.executed[r, o], o)\n"
            "    return forall(Replica, lambda r: client(r, 1) != client(r, 2))",
            "nobody to ask for",
        ),
    ],
    6: [
        (
            PREPARE + "    require_next(state, r, o)\n    take_prepare(state, r, o)\n    state.written[r, o] = True",
            "twice",
        ),
        (
            PREPARE
            + "    require_next(state, r, o)\n    state.op[r] = o\n    state.entry[r, o] = some(state.view[r])\n"
            "    state.written[r, o] = True",
            "too little",
        ),
        (
            PREPARE + "    require_next(state, r, o)\n    state.op[r] = o\n    state.written[r, o] = True\n"
            "    state.ack[state.view[r], r, o] = some(state.view[r])",
            "I3",
        ),
    ],
    7: [
        (
            "first = audit(traces).violations[0]\nfile, line, mistake = Path(first.file).name, 1, MISTAKES[1]",
            "not the first",
        ),
        (
            "first = audit(traces).violations[0]\nfile, line, mistake = Path(first.file).name, first.line, MISTAKES[0]",
            "does not write this",
        ),
        (
            "first = audit(traces).violations[0]\nfile, line, mistake = Path(first.file).name, first.line, '?'",
            "none of",
        ),
    ],
    8: [
        (LEMMA.format("all_of(state.log[0, w], state.log[1, w])"), "at the start"),
        (LEMMA.format("not_(state.answered[w])"), "so lemma is not true"),
        (
            LEMMA.format("implies(state.answered[w], state.log[0, w])"),
            "K1 is not inductive: fail() breaks it in a state",
        ),
        (LEMMA.format("implies(state.log[0, w], state.log[1, w])"), "write(w=1) breaks it in a state with"),
        ("lemmas = []", "no such state is reached"),
        (LEMMA.format("state.log[0, w]").replace("[lemma]", "lemma"), "is a list"),
    ],
}
