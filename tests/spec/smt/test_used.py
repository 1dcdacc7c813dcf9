"""Which lemmas a proof used: they are enough, none can be left out, and a run that is not asked records none."""

from __future__ import annotations

from functools import cache

from viewproof.spec.engines.smt.certificate import certificate
from viewproof.spec.engines.smt.induction import lemmas_used
from viewproof.spec.engines.smt.proof import Proof, prove
from viewproof.spec.engines.smt.solve import Session
from viewproof.spec.lang import Spec
from viewproof.spec.vsr import model
from viewproof.spec.vsr.lemmas import lemmas_of


def small() -> Spec:
    """A core that is proved in a second."""
    return model("core", replicas=2, views=2, ops=1, requests=1)


@cache
def proof(used: bool) -> Proof:
    """Its proof."""
    return prove(small(), lemmas_of(small().cfg), used=used)


def test_only_a_run_that_is_asked_records_what_was_used() -> None:
    plain, asked = proof(used=False), proof(used=True)
    assert plain.verdict == asked.verdict == "proved"
    assert not plain.used
    solved = {name for name, tally in asked.lemmas.items() if tally.solved}
    assert set(asked.used) == solved
    assert certificate(asked, lemmas_of(small().cfg))["used"]["I4"]


def test_what_was_used_is_enough_and_none_of_it_can_be_left_out() -> None:
    found = proof(used=True)
    problem = found.problem
    low = problem.low
    number = next(n for n, (ir, _) in enumerate(problem.work) if ir.name == "execute")
    step = problem.step(number)

    def session() -> Session:
        return Session(low.terms, low.number.values(), (), 0, problem.by_lemma)

    used = lemmas_used(problem, number, session)
    open_goals = [(g, term) for g, term in problem.goals(step) if not problem.is_known(term)]
    assert any(names for names in used.values())
    for lemma, names in used.items():
        goal = low.terms.and_(term for g, term in open_goals if g.lemma == lemma)
        for left_out in (None, *names):
            rest = [problem.by_lemma[name] for name in names if name != left_out]
            with Session(low.terms, low.number.values(), rest).assuming(step.guard) as solver:
                assert (solver.refute(goal).status == "unsat") == (left_out is None), (lemma, left_out)
