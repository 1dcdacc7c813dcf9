"""Messages are declared once, sent and read as a whole; what is left out, or is not there, is refused by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from viewproof.spec.engines import interp
from viewproof.spec.lang import (
    BLANK,
    Bool,
    Cells,
    Fields,
    Index,
    Instance,
    Message,
    Number,
    Option,
    Part,
    Schema,
    Sent,
    Spec,
    SpecError,
    State,
    Values,
    action,
    at,
    between,
    compose,
    each,
    field,
    joined,
    message,
    only_if,
    require,
    same,
    some,
    unsent,
    variable,
    watermark,
    with_fields,
)
from viewproof.spec.lang import concrete as at_work
from viewproof.spec.lang.state import declare


class Node(Index):
    """A node."""


class Place(Index, lo=1):
    """A place."""


class Offer(Message):
    """A node offers what it has."""

    least: Place = field("the lowest place")
    goods: Cells[Place, Option[Node]] = field("who has it")


class Bid(Message):
    """A node bids for a place."""

    place: Place = field("what it bids for; 0 = not sent", marks=True)
    limit: Place = field("how far it goes", default=BLANK)


def by_node(cfg: Any, n: Node, *_: Any) -> Node:
    """the node"""
    return n


class Market(State):
    """Nodes, and what they sent."""

    at: Cells[Node, Place] = variable("where a node is")
    keeps: Cells[tuple[Node, Place], Option[Node]] = variable("whose it is")
    offer: Sent[Node, Offer] = message(by_node, to="all")
    bid: Sent[tuple[Node, Place], Bid] = message(by_node, to="the one who offers")
    heard: Cells[tuple[Node, Node], Bool] = message(by_node, to="all", title="hello")
    top: Cells[Node, Place] = watermark(by_node, to="all", title="news", doc="the highest place seen")
    count: Number = variable("how many", values=Values(0, 9))


class Price(Fields):
    """What a part adds to an offer."""

    price: Place = field("what it costs")


class PricedOffer(Offer, Price):
    """An offer with a price."""


class Priced(Market):
    """The market with prices."""

    offer: Sent[Node, PricedOffer]


@action
def offer_all(state: Market, r: Node, o: Place) -> None:
    """A node offers all that it has, up to o."""
    require(state.at[r] >= o)
    state.offer[r] = complete(state, o, Offer(least=o, goods=each(between(Place, 1, o), lambda p: state.keeps[r, p])))


@joined(with_fields)
def complete(state: Market, o: Place, message: Offer) -> Offer:
    """The offer with what parts add."""
    return message


MARKET = Part("market", lambda cfg: True, state=lambda cfg: (Market,), actions=lambda cfg: (offer_all,))
UNPRICED = Part("prices", lambda cfg: True, state=lambda cfg: (Priced,))
PRICES = Part(
    "prices",
    lambda cfg: True,
    state=lambda cfg: (Priced,),
    changes=lambda cfg: (at(complete, cost),),
)


def cost(o: Place) -> Price:
    """It costs as much as its place."""
    return Price(price=o)


def market(*parts: Part) -> Spec:
    """Two nodes, two places."""
    return compose((MARKET, *parts), None).spec("market", None, Instance({"Node": 1, "Place": 2}))


def updates(fn: Callable[..., None], *parts: Part) -> list[str]:
    """The variables that it writes, in order."""
    spec = market(*parts).with_actions({}, [action(fn)])
    return [update.var.name for update in spec.ir(fn.__name__).updates]


def test_the_body_of_a_state_is_the_declaration() -> None:
    schema = market().schema
    assert list(schema.vars) == [
        *("at", "keeps", "offer", "offer_least", "offer_goods", "bid_place", "bid_limit", "heard", "top", "count")
    ]
    assert [(v.kind, v.doc) for v in (schema.vars[n] for n in ("offer", "offer_goods", "heard", "top"))] == [
        ("register", "offer sent"),
        ("register", "offer: who has it"),
        ("register", "hello sent"),
        ("watermark", "the highest place seen"),
    ]
    assert schema.vars["offer_goods"].index == (Node, Place)
    assert schema.messages["bid"].flag is None
    assert schema.vars["keeps"].sender is None
    assert schema.vars["bid_place"].sender(1, 2) == 1  # type: ignore[misc]


def test_a_message_is_sent_and_read_as_a_whole_recorded_and_run() -> None:
    @action
    def take(state: Market, r: Node, o: Place) -> None:
        """A node takes what it was offered."""
        offer = state.received(r).offer[r]
        require(offer.sent)
        require(offer.goods[o] == some(r))
        state.at[r] = offer.least
        state.bid[r, o] = Bid(place=o, limit=BLANK)

    spec = market().with_actions({}, [take])
    assert spec.ir("take").reads() == {"offer", "offer_goods", "offer_least"}
    assert spec.ir("take").writes() == {"at", "bid_place"}
    start = at_work.State({"at": {(1,): 2}, "keeps": {(1, 1): 2}})
    offered = interp.step(spec, start, spec.action("offer_all"), {"r": 1, "o": 2})
    assert isinstance(offered, at_work.State)
    assert (offered.tables["offer"], offered.tables["offer_least"]) == ({(1,): True}, {(1,): 2})
    assert offered.tables["offer_goods"] == {(1, 1): 2}
    taken = interp.step(spec, offered, take, {"r": 1, "o": 1})
    assert isinstance(taken, at_work.State)
    assert taken.tables["bid_place"] == {(1, 1): 1}
    assert interp.step(spec, start, take, {"r": 1, "o": 1}) == interp.Blocked("take", 0)


def test_parts_add_fields_and_who_sends_gives_them_or_is_refused() -> None:
    with pytest.raises(SpecError, match=r"test_messages.py:\d+: offer is sent without price; a field .* is BLANK"):
        _ = market(UNPRICED).ir("offer_all")
    assert [u.var.name for u in market(PRICES).ir("offer_all").updates][-1] == "offer_price"
    assert market(PRICES).schema.messages["offer"].fields["price"].part == "prices"
    assert "offer_price" not in market().schema.vars


def test_what_is_decided_before_it_is_sent_and_what_is_sent_under_a_condition() -> None:
    def decide(state: Market, r: Node, o: Place) -> None:
        """The offer is fixed."""
        state.offer[r] = unsent(Offer(least=o, goods=BLANK))

    def sometimes(state: Market, r: Node, o: Place) -> None:
        """It is sent where the node is."""
        goods = each(between(Place, 1, o), lambda p: some(r))
        state.offer[r] = only_if(state.at[r] == o, Offer(least=o, goods=goods))

    assert updates(decide) == ["offer_least"]
    assert updates(sometimes) == ["offer", "offer_least", "offer_goods"]
    spec = market().with_actions({}, [action(sometimes)])
    there, elsewhere = (
        interp.step(spec, at_work.State({"at": {(1,): place}}), spec.action("sometimes"), {"r": 1, "o": 2})
        for place in (2, 1)
    )
    assert isinstance(there, at_work.State)
    assert isinstance(elsewhere, at_work.State)
    assert (there.tables["offer"], there.tables["offer_goods"]) == ({(1,): True}, {(1, 1): 2, (1, 2): 2})
    assert elsewhere == at_work.State({"at": {(1,): 1}})


def left_out(state: Any, r: Node, o: Place) -> None:
    state.offer[r] = Offer(goods=BLANK)  # type: ignore[call-arg]  # here


def another(state: Any, r: Node, o: Place) -> None:
    state.offer[r] = Bid(place=o)  # here


def field_by_field(state: Any, r: Node, o: Place) -> None:
    state.offer[r].least = o  # here


def unknown(state: Any, r: Node, o: Place) -> None:
    require(state.offer[r].price == o)  # here


def by_register(state: Any, r: Node, o: Place) -> None:
    require(state.offer_least[r] == o)  # here


def undeclared(state: Any, r: Node, o: Place) -> None:
    state.offer[r] = PricedOffer(least=o, goods=BLANK, price=o)  # here


def no_condition(state: Any, r: Node, o: Place) -> None:
    require(state.offer[r])  # here


def wrong_key(state: Any, r: Node, o: Place) -> None:
    require(state.offer[o].sent)  # here


def wrong_value(state: Any, r: Node, o: Place) -> None:
    state.offer[r] = Offer(least=r, goods=BLANK)  # type: ignore[arg-type]  # here


def received_is_sent(state: Any, r: Node, o: Place) -> None:
    state.received(r).bid[r, o] = Bid(place=o)  # here


def compares_logs(state: Any, r: Node, o: Place) -> None:
    require(same(state.offer[r], state.offer[r]))  # here


REFUSED = [
    (left_out, "offer is sent without least; a field that is left out is BLANK"), (another, "offer sends a Offer"),
    (field_by_field, "offer is sent as a whole"), (unknown, "offer has no price; it has least, goods"),
    (by_register, "offer_least is a field of a message: state.offer[…].least"),
    (undeclared, "offer has no price; it has least, goods"), (no_condition, "offer is a message"),
    (wrong_key, "index 1 of offer is Node, got Place"), (wrong_value, "offer_least is Place, got Node"),
    (received_is_sent, "cannot be assigned"), (compares_logs, "goods is one for each Place"),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "text"), REFUSED, ids=[fn.__name__ for fn, _ in REFUSED])
def test_a_mistake_is_refused_by_name_with_file_and_line(fn: Callable[..., None], text: str) -> None:
    lines, first = inspect.getsourcelines(fn)
    line = first + next(n for n, source in enumerate(lines) if "# here" in source)
    fn.__doc__ = "A mistake."
    with pytest.raises(SpecError) as caught:
        updates(fn)
    assert text in caught.value.message
    assert str(caught.value).startswith(f"tests/spec/lang/test_messages.py:{line}: ")


def test_a_message_says_the_same_if_each_field_does() -> None:
    def repeat(state: Market, r: Node, o: Place) -> None:
        """The bid stays."""
        require(same(state.bid[r, o], state.bid[r, o]))

    (guard,) = market().with_actions({}, [action(repeat)]).ir("repeat").guards
    assert {name for name in ("bid_place", "bid_limit") if name in repr(guard.cond.key())} == {"bid_place", "bid_limit"}


class Wrong(State):
    """It promises what is declared otherwise."""

    at: Cells[Place, Node]


class Again(State):
    """It declares a message that is there."""

    offer: Sent[Node, Offer] = message(by_node, to="all")


class Bare(State):
    """A number has no range of its own."""

    much: Cells[Node, Number] = variable("how much")


class Unindexed(State):
    """What is no sort is no index."""

    much: Cells[int, Place] = variable("how much")


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (Wrong, "at is annotated as .*, but declared with"),
        (Again, "offer is declared already"),
        (Bare, "much: the range of a Number has to be said"),
        (Unindexed, "an index is a sort, or a tuple of sorts"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(state: type[State], text: str) -> None:
    with pytest.raises(SpecError, match=text):
        market(Part("more", lambda cfg: True, state=lambda cfg: (state,)))


def test_a_field_is_blank_or_required_and_a_record_without_its_message_is_refused() -> None:
    with pytest.raises(SpecError, match="has no other default"):
        field("a place", default=0)
    with pytest.raises(SpecError, match="no message offer is declared"):
        declare(Schema(), Priced, None)


def test_a_field_without_a_sort_is_refused() -> None:
    with pytest.raises(SpecError, match="field price of Offer has to be annotated with its sort"):
        type("Offer", (Message,), {"price": field("what is asked")})


def test_a_parameter_without_a_sort_is_refused() -> None:
    def step(state: Market, n: int) -> None:
        """It takes a number."""

    with pytest.raises(SpecError, match="parameter n of step has to be annotated with its sort"):
        action(step)
