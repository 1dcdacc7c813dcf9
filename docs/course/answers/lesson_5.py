def same_request(state, e, o, f, p):
    """Are the entries e at op o and f at op p of one client, with one number?"""
    return all_of(
        client_of(state, e, o) == client_of(state, f, p),
        request_of(state, e, o) == request_of(state, f, p),
    )


@invariant("X1", "once")
def once(state: Core):
    """No replica executes one request at two ops."""

    def at_most_one(r, o, p):
        e, f = state.executed[r, o], state.executed[r, p]
        return implies(all_of(o < p, e != NONE, f != NONE), lambda: not_(same_request(state, e, o, f, p)))

    return forall(Replica, lambda r: forall(Op, lambda o: forall(Op, lambda p: at_most_one(r, o, p))))
