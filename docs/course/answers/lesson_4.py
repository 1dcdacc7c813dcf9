def no_larger(state, r, v, q, b):
    """r has the offer of q, and it is no better than that of b."""
    theirs, best = state.received(r).dvc[v, q], state.received(r).dvc[v, b]
    return all_of(
        theirs.sent,
        any_of(
            theirs.log_view < best.log_view,
            all_of(theirs.log_view == best.log_view, theirs.op <= best.op),
        ),
    )
