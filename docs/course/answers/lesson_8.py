@invariant("lemma", "both had it")
def lemma(state: Store):
    """A write that was answered is in both logs."""
    return forall(Write, lambda w: implies(state.answered[w], forall(Node, lambda n: state.log[n, w])))


lemmas = [lemma]
