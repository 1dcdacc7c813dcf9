"""Lemmas about the client table: why no request is executed twice."""

from __future__ import annotations

from viewproof.spec.lang import Bool, any_of, between, forall, invariant, not_
from viewproof.spec.vsr.core.lemmas.words import each_view_entry
from viewproof.spec.vsr.core.normal import is_request
from viewproof.spec.vsr.core.state import Core, Op, client_of, entry_of_view, request_of


@invariant("clients.requests_rise", "a client's request numbers rise along a log")
def requests_rise(s: Core) -> Bool:
    """Of two entries of one client in a view's log the later one has the larger request number."""
    return each_view_entry(
        lambda v, o: forall(
            between(Op, 1, o - 1),
            lambda p: any_of(
                o > s.sv[v].op,
                lambda: not_(is_request(s, s.sv[v].entry[o], o)),
                lambda: client_of(s, s.sv[v].entry[o], o) != client_of(s, s.sv[v].entry[p], p),
                lambda: request_of(s, s.sv[v].entry[p], p) < request_of(s, s.sv[v].entry[o], o),
            ),
        )
    )


@invariant("clients.new_requests_rise", "a prepared request is new in its view's log")
def new_requests_rise(s: Core) -> Bool:
    """A prepared request is larger than all of its client before it in the view's log."""
    return each_view_entry(
        lambda v, o: forall(
            between(Op, 1, o - 1),
            lambda p: any_of(
                s.prepare[v, o].client == 0,
                lambda: client_of(s, entry_of_view(s, v, p), p) != s.prepare[v, o].client,
                lambda: request_of(s, entry_of_view(s, v, p), p) < s.prepare[v, o].request,
            ),
        )
    )


LEMMAS = (requests_rise, new_requests_rise)
