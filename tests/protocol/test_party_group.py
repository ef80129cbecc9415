"""Several Alices meet through Bob: what he alters is noticed, and what they add cancels."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.crypto.signatures import KeyIdentity
from taciturn.engine.driver import Driver
from taciturn.engine.pair import run_star
from taciturn.errors import AgreementError, LocalProtocolError, RemoteProtocolError
from taciturn.protocol.alice.group import join_group
from taciturn.protocol.bob.group import form_group
from taciturn.protocol.codec import decode, encode, kind_of
from taciturn.protocol.masks import PairwiseMasks, ZeroSum
from taciturn.protocol.messages import (
    Endorsement,
    Endorsements,
    Hello,
    Introduction,
    Message,
    PublicBytes,
    Roster,
)
from taciturn.protocol.party_group import Members
from taciturn.protocol.steps import Program
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.protocol.hostile import altered, only
from tests.protocol.parties import BOB
from tests.protocol.stars import entropy_of, identity_of, names, pins

TERMS = '{"agreed":1}'
Change = Callable[[str, Message], Message]


def hello(columns: int, bits: int) -> Hello:
    return Hello(4, "alice", "", 10, "", bits, columns)


HELLOS = {"alice-1": hello(3, 2), "alice-2": hello(5, 4), "alice-3": hello(1, 0)}


def alice(name: str, **changes: Any) -> Program[PairwiseMasks]:
    usual: dict[str, Any] = {
        "parties": pins(names(3)),
        "terms": TERMS,
        "identity": identity_of(name),
        "entropy": entropy_of(name),
        "columns": HELLOS[name].columns,
        "magnitude_bits": HELLOS[name].magnitude_bits,
    }
    return join_group(**(usual | changes))


def circles(
    alices: dict[str, Program[PairwiseMasks]] | None = None, said: list[type[Message]] | None = None
) -> dict[str, PairwiseMasks]:
    bob = form_group(pins(names(3)), TERMS, HELLOS, BOB)
    kinds = list[type[Message]]() if said is None else said
    met, (members, seed) = run_star(
        alices or {name: alice(name) for name in HELLOS},
        bob,
        tap=lambda _, __, frame: kinds.append(kind_of(frame)),
    )
    assert members.widths == (3, 5, 1)
    assert all(pairwise_masks.seed == seed for pairwise_masks in met.values())
    return met


class Relay:
    """Bob as a relay who alters messages on their way; Alices are honest."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._out: dict[str, list[bytes]] = {name: [] for name in HELLOS}
        self._bob_out: dict[str, list[bytes]] = {name: [] for name in HELLOS}
        self.alices = {
            name: Driver("alice", alice(name), self._out[name].append) for name in HELLOS
        }
        self.bob = Driver(
            "bob",
            form_group(pins(names(3)), TERMS, HELLOS, BOB),
            {name: box.append for name, box in self._bob_out.items()},
        )

    def run(self) -> None:
        for driver in self.alices.values():
            driver.start()
        self.bob.start()
        while not all(driver.finished for driver in self.alices.values()):
            while not self.bob.finished and self._out[self.bob.awaits]:
                self.bob.feed(self._out[self.bob.awaits].pop(0))
            for name, driver in self.alices.items():
                while self._bob_out[name]:
                    message = self._change(name, decode(self._bob_out[name].pop(0)))
                    driver.feed(encode(message))


def test_masks_cancel_in_the_sum_and_in_no_smaller_one():
    met = circles()
    zeros = np.zeros(2000, dtype=np.int64)
    masked = [pairwise_masks.masks.fork("scores 7").over(zeros) for pairwise_masks in met.values()]
    assert not np.any(masked[0] + masked[1] + masked[2])
    for pair in ((0, 1), (0, 2), (1, 2)):
        assert np.count_nonzero(masked[pair[0]] + masked[pair[1]]) == 2000
    # Uniform: each bit of 2,000 words is one in half of them, to within 6 deviations (1e-9 each).
    bits = np.unpackbits(masked[1].view(np.uint8))
    assert abs(bits.mean() - 0.5) < 6 * 0.5 / np.sqrt(len(bits))


def test_masks_of_another_purpose_and_another_session_are_others():
    met, zeros = circles()["alice-2"], np.zeros(50, dtype=np.int64)
    one = met.masks.fork("scores 1").over(zeros)
    assert np.count_nonzero(one == met.masks.fork("scores 2").over(zeros)) == 0
    fresh = {name: alice(name, entropy=entropy_of(name).fork("again")) for name in HELLOS}
    again = circles(fresh)["alice-2"].masks.fork("scores 1").over(zeros)
    assert np.count_nonzero(one == again) == 0


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_a_sum_of_masked_values_is_that_of_the_values(values):
    keys = {pair: KeyedEntropy.from_seed(hash(pair) % 1000) for pair in ((0, 1), (0, 2), (1, 2))}
    masks = [
        ZeroSum((keys[0, 1], keys[0, 2])),
        ZeroSum((keys[1, 2],), (keys[0, 1],)),
        ZeroSum((), (keys[0, 2], keys[1, 2])),
    ]
    numbers = np.array(values, dtype=np.int64)
    total = sum(mask.fork("x").over(numbers) for mask in masks)
    assert np.array_equal(total, 3 * numbers)


def test_all_know_the_same():
    met = circles()
    assert [pairwise_masks.place for pairwise_masks in met.values()] == [0, 1, 2]
    assert {pairwise_masks.widths for pairwise_masks in met.values()} == {(3, 5, 1)}
    assert {pairwise_masks.sizes for pairwise_masks in met.values()} == {((2, 0), (4, 0), (0, 0))}
    assert {pairwise_masks.magnitude_bits for pairwise_masks in met.values()} == {4}
    again = PairwiseMasks.from_json(json.loads(json.dumps(met["alice-3"].to_json())))
    assert again == met["alice-3"]
    assert "pair_keys" not in repr(met["alice-3"])


def test_what_bob_carries_does_not_tell_the_keys_of_a_pair():
    frames: list[bytes] = []
    bob = form_group(pins(names(3)), TERMS, HELLOS, BOB)
    met, _ = run_star(
        {name: alice(name) for name in HELLOS}, bob, tap=lambda *frame: frames.append(frame[2])
    )
    for secret in met["alice-1"].pair_keys[1:]:
        assert not any(secret in frame or secret.hex().encode() in frame for frame in frames)


def swapped_key(receiver: str) -> Change:
    """Bob puts an exchange key of his own into the roster of one Alice."""

    def change(name: str, message: Message) -> Message:
        if name != receiver or not isinstance(message, Roster):
            return message
        members = Members.from_text(message.text)
        his_own = "00" * 31 + "09"
        first, second, third = members.alices
        other = replace(third, exchange_key=his_own) if receiver != "alice-3" else third
        first = replace(first, exchange_key=his_own) if receiver == "alice-3" else first
        return Roster(replace(members, alices=(first, second, other)).to_text())

    return change


@pytest.mark.parametrize("receiver", ["alice-1", "alice-2", "alice-3"])
def test_a_bob_who_puts_his_own_key_between_two_alices_is_noticed(receiver):
    with pytest.raises((AgreementError, RemoteProtocolError)):
        Relay(swapped_key(receiver)).run()


def in_roster(**changes: Any) -> Change:
    def change(name: str, message: Message) -> Message:
        if name != "alice-2" or not isinstance(message, Roster):
            return message
        values = json.loads(message.text)
        values["alices"][changes["at"]] |= changes["values"]
        return Roster(json.dumps(values, sort_keys=True, separators=(",", ":")))

    return change


def in_endorsements(key: str, at: int, value: str) -> Change:
    def change(name: str, message: Message) -> Message:
        if not isinstance(message, Endorsements):
            return message
        values = json.loads(message.text)
        values[key][at] = value
        return replace(message, text=json.dumps(values))

    return change


def whole_roster(text: str) -> Change:
    return lambda name, message: Roster(text) if isinstance(message, Roster) else message


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        # She hears of it herself, before she signs.
        (RemoteProtocolError, in_roster(at=1, values={"columns": 9}), ()),
        (AgreementError, in_roster(at=0, values={"name": "mallory"}), "alice-1"),
        (RemoteProtocolError, in_roster(at=0, values={"columns": "3"}), "alice-1"),
        (RemoteProtocolError, in_roster(at=0, values={"columns": 0}), "alice-1"),
        (RemoteProtocolError, in_roster(at=0, values={"columns": 1 << 30}), "alice-1"),
        (RemoteProtocolError, in_roster(at=0, values={"magnitude_bits": 99}), "alice-1"),
        (RemoteProtocolError, in_roster(at=0, values={"exchange_key": "zz"}), "alice-1"),
        (RemoteProtocolError, in_roster(at=0, values={"more": 1}), ()),
        (
            AgreementError,
            in_roster(at=2, values={"public_key": identity_of("alice-1").public_key.hex()}),
            "alice-3",
        ),
        (RemoteProtocolError, whole_roster("[]"), ()),
        (RemoteProtocolError, whole_roster("{"), ()),
        (AgreementError, in_endorsements("signatures", 1, "00" * 64), "alice-2"),
        (RemoteProtocolError, in_endorsements("nonces", 0, "11" * 32), "alice-1"),
        (RemoteProtocolError, in_endorsements("nonces", 3, "11" * 32), "bob"),
        (RemoteProtocolError, in_endorsements("nonces", 3, "1"), ()),
    ],
)
def test_what_bob_alters_on_its_way_is_refused(kind, change, named):
    with refused(kind, names=named):
        Relay(change).run()


class _Forger:
    """Shows the agreed key, and cannot sign with it."""

    name, public_key = "alice-2", identity_of("alice-2").public_key

    def sign(self, data: bytes) -> bytes:
        return identity_of("alice-1").sign(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"identity": KeyIdentity.simulated("alice-2", KeyedEntropy.from_seed(999))},
        {"identity": _Forger()},
        {"terms": '{"agreed":2}'},
    ],
    ids=["another key", "a forged signature", "other terms"],
)
def test_an_alice_who_did_not_sign_what_was_agreed_is_named_by_bob(changes):
    alices = {name: alice(name) for name in HELLOS} | {"alice-2": alice("alice-2", **changes)}
    with refused(AgreementError, names="alice-2"):
        circles(alices)


@pytest.mark.parametrize("identity", [None, identity_of("alice-9")])
def test_who_is_no_party_does_not_begin(identity):
    frames: list[bytes] = []
    with refused(LocalProtocolError):
        Driver("alice", alice("alice-1", identity=identity), frames.append).start()
    assert frames == []


@pytest.mark.parametrize(
    ("name", "kind", "changes", "by_bob"),
    [
        # The others notice: no key comes of it.
        ("alice-3", Introduction, {"exchange_key": PublicBytes(bytes(32))}, False),
        ("alice-3", Introduction, {"exchange_key": PublicBytes(b"1")}, True),
        ("alice-3", Introduction, {"spread_bits": 1000}, True),
        ("alice-2", Endorsement, {"nonce": PublicBytes(bytes(32))}, False),
        ("alice-2", Introduction, {"public_key": PublicBytes(b"")}, True),
    ],
)
def test_an_alice_who_says_something_else_is_named(name, kind, changes, by_bob):
    alices = {known: alice(known) for known in HELLOS}
    alices[name] = altered(alices[name], only(kind, lambda message: replace(message, **changes)))
    said: list[type[Message]] = []
    with pytest.raises(RemoteProtocolError) as raised:
        circles(alices, said)
    assert name in str(raised.value)
    # What Bob refuses himself he does not hand out.
    assert (Roster not in said) == by_bob
