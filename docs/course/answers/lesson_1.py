@action
def answer(state: Store, w: Write):
    """The leader tells the client: stored. Both nodes have the write by then."""
    require(forall(Node, lambda n: state.log[n, w]))
    require(not_(state.answered[w]))
    state.answered[w] = True
