@action
def on_prepare(state: Core, r: Replica, o: Op):
    """A backup has the next prepare of its view on its disk, and acknowledges it: in one step."""
    require_next(state, r, o)
    state.op[r] = o
    state.entry[r, o] = some(state.view[r])
    state.written[r, o] = True
    state.ack[state.view[r], r, o] = some(state.view[r])
