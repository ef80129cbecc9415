"""Conversations with several peers: all asked before any answer is waited for."""

from __future__ import annotations

from taciturn.engine.driver import Driver, Outlet
from taciturn.engine.pair import run_star
from taciturn.errors import Deadlock, LocalProtocolError, RemoteProtocolError
from taciturn.protocol.codec import encode
from taciturn.protocol.messages import BudgetSpent, Hello, KeyOffer, PublicBytes
from taciturn.protocol.steps import Program, persist, receive, send, with_peer
from taciturn.protocol.steps import gather as together
from tests.expected import refused


def unheard(frame: bytes) -> None:
    """An outlet nobody listens at."""


def offer(number: int) -> KeyOffer:
    return KeyOffer(PublicBytes(bytes([number])))


def asks(turns: int, first: int = 0) -> Program[list[int]]:
    """Says a number, hears one, so many times."""
    heard = []
    for turn in range(turns):
        yield from send(offer(first + turn))
        heard.append((yield from receive(KeyOffer)).public_key[0])
    return heard


def answers(turns: int, more: int) -> Program[int]:
    total = 0
    for _ in range(turns):
        number = (yield from receive(KeyOffer)).public_key[0]
        yield from send(offer(number + more))
        total += number
    return total


def test_each_conversation_has_its_own_peer():
    alices = {f"a{more}": answers(turns=more, more=more) for more in (1, 2, 3)}
    totals, heard = run_star(
        alices, together({f"a{more}": asks(more, 10 * more) for more in (1, 2, 3)})
    )
    assert heard == {"a1": [11], "a2": [22, 23], "a3": [33, 34, 35]}
    assert totals == {"a1": 10, "a2": 41, "a3": 93}


def test_all_are_asked_before_any_answer_is_waited_for():
    said: list[str] = []

    def outlet(name: str) -> Outlet:
        return lambda frame: said.append(name)

    asked = together({name: asks(2) for name in "abc"})
    driver = Driver("bob", asked, {name: outlet(name) for name in "abc"})
    driver.start()
    assert said == ["a", "b", "c"]
    order = []
    while not driver.finished:
        order.append(driver.awaits)
        driver.feed(encode(offer(1)))
    # Round by round, whoever is fastest: the same frames give the same run.
    assert order == ["a", "b", "c", "a", "b", "c"]


def test_what_is_kept_is_kept_within_a_conversation():
    def keeps() -> Program[bytes]:
        kept = yield from persist(b"mine")
        yield from send(BudgetSpent(0))
        return kept

    both = together({"a": keeps(), "b": keeps()})
    driver = Driver("bob", both, dict.fromkeys("ab", unheard), keep=bytes.upper)
    driver.start()
    assert driver.result == {"a": b"MINE", "b": b"MINE"}


def test_an_error_says_whose_it_is():
    def wrong() -> Program[None]:
        yield from receive(KeyOffer)
        yield from send(Hello(1, "alice", "", 0, "", 0, 0))

    def right() -> Program[int]:
        return (yield from answers(1, 0))

    with refused(RemoteProtocolError, names=("a2", "KeyOffer")):
        run_star({"a1": right(), "a2": wrong()}, together({"a1": asks(1), "a2": asks(1)}))


def test_a_standstill_says_for_whom_bob_waits():
    def mute() -> Program[None]:
        yield from receive(BudgetSpent)

    with refused(Deadlock, names=("a1", "BudgetSpent")):
        run_star({"a1": mute()}, with_peer("a1", receive(Hello)))


def test_a_peer_that_is_not_there_is_a_bug():
    driver = Driver("bob", with_peer("nobody", send(BudgetSpent(0))), {"a": unheard})
    with refused(LocalProtocolError):
        driver.start()


def test_closing_ends_every_conversation():
    ended: list[str] = []

    def waits(name: str) -> Program[None]:
        try:
            yield from receive(Hello)
        finally:
            ended.append(name)

    driver = Driver("bob", together({"a": waits("a"), "b": waits("b")}), {})
    driver.start()
    driver.close()
    assert sorted(ended) == ["a", "b"]
