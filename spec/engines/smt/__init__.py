"""Proofs with z3: inductive proofs that hold at any depth, and bounded search for a break.

**Proved** (`induction`) means: the initial state satisfies every listed invariant and lemma, and each action instance,
from any state at all that satisfies them, leads to a state that does, leaving no declared range. So they hold in every
reachable state of the bounded instance, however long the behaviour. Nothing is said about larger instances.
**Not proved** means: some step from a state that satisfies the lemmas breaks one; that state need not be reachable.
**Unknown** (a time limit of the solver) is never counted as proved.

Bounded search (`chain`): **violated** is a behaviour that was replayed in the reference interpreter. *Nothing found*
says only that no behaviour of the shape searched (rounds of all actions in one order) breaks an invariant.
"""
