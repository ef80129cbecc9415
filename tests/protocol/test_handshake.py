"""The first words: each difference between the two sides has its own message."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from taciturn.crypto import EncryptedVector
from taciturn.engine import run_pair
from taciturn.errors import AgreementError, RemoteProtocolError
from taciturn.protocol import (
    MAX_MAGNITUDE_BITS,
    MAX_TEXT,
    PROTOCOL_VERSION,
    EncryptedResidues,
    Hello,
    PeerTable,
    Program,
    compare,
    receive,
    send,
    shake_hands,
    wire_form,
)
from tests.protocol.parties import ByHand, Tables, agreement

TERMS = agreement().canonical()
OURS = Hello(PROTOCOL_VERSION, "bob", TERMS, 10, "aa", 3, 4)


def greet(hello: Hello) -> Program[Hello]:
    """A peer that says exactly this, and takes whatever it is wire_form."""
    yield from send(hello)
    return (yield from receive(Hello))


def answer_to(hello: Hello) -> Hello:
    """What Bob's side makes of Alice's greeting."""
    _, heard = run_pair(
        greet(wire_form(hello)),
        shake_hands(
            Hello(
                PROTOCOL_VERSION,
                "bob",
                OURS.terms,
                OURS.rows,
                OURS.ids_digest,
                OURS.magnitude_bits,
                4,
            )
        ),
    )
    return heard


ALIKE = replace(OURS, role="alice")


@pytest.mark.parametrize("version", [0, 1, 2, PROTOCOL_VERSION + 1])
def test_another_version_is_refused_plainly_before_anything_else_is_compared(version):
    """Version 2 had other ciphertexts: its keys and vectors would be taken for malformed ones."""
    with pytest.raises(AgreementError) as caught:
        answer_to(replace(ALIKE, version=version, terms="{}", rows=3))
    assert caught.value.message == (
        f"the peer speaks protocol {version}, this side {PROTOCOL_VERSION}"
    )
    assert "same version" in caught.value.hint


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        (PeerTable(), 1 << 20, None),
        (PeerTable(15), 15, None),
        (PeerTable(15), 14, "alice-columns is 15, and the peer's table has 14"),
        (PeerTable(2000, 1000), 2000, None),
        (PeerTable(None, 1000), 1000, None),
        (PeerTable(None, 1000), 1001, "1,001 columns, and at most 1,000 are accepted"),
    ],
)
def test_a_party_may_know_how_many_columns_to_expect(table, columns, message):
    hello = replace(ALIKE, columns=columns)
    if message is None:
        table.require(hello)
    else:
        with pytest.raises(AgreementError, match=message):
            table.require(hello)


def test_two_sides_that_are_alike_hear_each_other():
    alice, bob = run_pair(
        shake_hands(Hello(PROTOCOL_VERSION, "alice", TERMS, 10, "aa", 7, 4)),
        shake_hands(Hello(PROTOCOL_VERSION, "bob", TERMS, 10, "aa", 0, 4)),
    )
    assert alice == wire_form(Hello(PROTOCOL_VERSION, "bob", TERMS, 10, "aa", 0, 4))
    assert bob == wire_form(Hello(PROTOCOL_VERSION, "alice", TERMS, 10, "aa", 7, 4))


@pytest.mark.parametrize("version", [PROTOCOL_VERSION + 1, -1])
def test_another_version_is_named_with_both_numbers(version):
    with pytest.raises(
        AgreementError, match=f"speaks protocol {version}, this side {PROTOCOL_VERSION}"
    ) as raised:
        answer_to(replace(ALIKE, version=version))
    assert "same version" in raised.value.hint


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_two_of_the_same_role_are_refused(role):
    with pytest.raises(AgreementError, match=f"both sides are {role}"):
        run_pair(
            shake_hands(Hello(PROTOCOL_VERSION, role, TERMS, 10, "aa", 0, 4)),
            shake_hands(Hello(PROTOCOL_VERSION, role, TERMS, 10, "aa", 0, 4)),
        )


def test_a_role_that_does_not_exist_is_refused_without_repeating_it():
    with pytest.raises(AgreementError, match="neither alice nor bob") as raised:
        answer_to(replace(ALIKE, role="carol"))
    assert "carol" not in str(raised.value)


CHANGES = {
    "mechanism": "add",
    "epsilon": 0.5,
    "noise": "discrete",
    "variant": "mean-one",
    "b1": 0.125,
    "b2": 10.0,
    "subset_size": 40,
    "bob_update": "released",
    "over": "none",
    "reveal": True,
    "reveal_epsilon": 1.0,
    "reveal_delta": 1e-6,
    "fresh_keys": True,
    "reveal_bob": True,
    "score_range": 64.0,
    "sigmoid_error": 0.01,
    "scheme": "paillier",
    "key_bits": 2048,
    "solver": "newton",
    "epochs": 3,
    "batch_size": 5,
    "minimum_batch": 2,
    "evaluate": "epoch",
    "patience": 3,
    "held_out": 0.25,
    "split_salt": "x",
    "tell_alice": "quality",
    "tell_epsilon": 0.5,
    "learning_rate": 0.5,
    "schedule": "inverse",
    "decay": 0.125,
    "l1": 0.25,
    "l2": 0.75,
    "class_weight": [1.0, 0.5],
    "feature_bits": 17,
    "residue_bits": 21,
    "file_digest": "0f" * 32,
}


def test_every_setting_of_the_agreement_is_tried_below():
    # Of the parties each place is compared.
    assert {*CHANGES, "parties"} == set(type(agreement()).model_fields)


def test_each_party_that_differs_is_named():
    here, there = ({"alice-1": "0" * 64, name: "1" * 64} for name in ("alice-2", "alice-3"))
    ours = replace(ALIKE, terms=agreement(parties=here).canonical())
    theirs = agreement(parties=there).canonical()
    with pytest.raises(AgreementError, match="settings of the two sides differ") as raised:
        compare(ours, wire_form(replace(ours, role="bob", terms=theirs)))
    assert "alice-2" in raised.value.message
    assert "alice-3" in raised.value.message
    assert "alice-1" not in raised.value.message


@pytest.mark.parametrize("key", CHANGES)
def test_a_setting_that_differs_is_named_with_both_values(key):
    theirs = agreement(**{key: CHANGES[key]}).canonical()
    with pytest.raises(AgreementError, match="settings of the two sides differ") as raised:
        answer_to(replace(ALIKE, terms=theirs))
    assert raised.value.message.count(" here, ") == 1
    assert f"differ: {key}: " in raised.value.message
    shown = json.dumps(CHANGES[key])
    assert raised.value.message.endswith(f"here, {shown} there")


def test_several_differences_are_all_named():
    theirs = agreement(epochs=9, l2=0.5).canonical()
    with pytest.raises(AgreementError, match=r"epochs: 2 here, 9 there; l2: 0\.0 here, 0\.5 there"):
        answer_to(replace(ALIKE, terms=theirs))


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ("null", "not a JSON object"),
        (TERMS.replace(",", ", ", 1), "spelled differently"),
        (TERMS[:-1] + ',"extra":1}', "extra: absent here, 1 there"),
        ('{"purpose":"predict"}', 'purpose: absent here, "predict" there'),
        ("1" * 6000, "not JSON"),
    ],
    ids=["empty", "cut", "list", "null", "blanks", "more", "other-purpose", "endless-number"],
)
def test_terms_of_another_form_are_refused_by_name(terms, said):
    with pytest.raises(AgreementError, match=said):
        answer_to(replace(ALIKE, terms=terms))


def test_deeply_nested_terms_are_refused_by_name():
    with pytest.raises(AgreementError):
        answer_to(replace(ALIKE, terms="[" * MAX_TEXT))


def test_another_number_of_rows_is_named_with_both():
    with pytest.raises(AgreementError, match="this side has 10 rows, the peer 11"):
        answer_to(replace(ALIKE, rows=11))


def test_another_digest_of_the_ids_is_refused():
    with pytest.raises(AgreementError, match="row ids, or their order, differ"):
        answer_to(replace(ALIKE, ids_digest="ab"))


def test_the_same_ids_in_another_order_are_refused():
    ids = Tables.make(rows=10).alice.ids
    turned = ids.take(np.arange(10)[::-1])
    with pytest.raises(AgreementError, match="order"):
        run_pair(
            shake_hands(Hello(PROTOCOL_VERSION, "alice", TERMS, 10, ids.digest(), 0, 4)),
            shake_hands(Hello(PROTOCOL_VERSION, "bob", TERMS, 10, turned.digest(), 0, 4)),
        )


@pytest.mark.parametrize("bits", [-1, MAX_MAGNITUDE_BITS + 1, 2**62, -(2**63)])
def test_an_absurd_size_of_the_features_is_refused(bits):
    with pytest.raises(RemoteProtocolError, match=f"need {bits} bits") as raised:
        answer_to(replace(ALIKE, magnitude_bits=bits))
    assert not isinstance(raised.value, AgreementError)


@pytest.mark.parametrize("bits", [0, MAX_MAGNITUDE_BITS])
def test_the_ends_of_the_range_are_accepted(bits):
    assert answer_to(replace(ALIKE, magnitude_bits=bits)).magnitude_bits == bits


def test_alice_refuses_as_bob_does():
    side = ByHand("alice", shake_hands(Hello(PROTOCOL_VERSION, "alice", TERMS, 10, "aa", 0, 4)))
    assert side.said == [wire_form(Hello(PROTOCOL_VERSION, "alice", TERMS, 10, "aa", 0, 4))]
    with pytest.raises(AgreementError, match="this side has 10 rows, the peer 9"):
        side.feed(replace(OURS, rows=9))


def test_anything_but_a_greeting_is_refused_by_name():
    side = ByHand("alice", shake_hands(Hello(PROTOCOL_VERSION, "alice", TERMS, 10, "aa", 0, 4)))
    with pytest.raises(
        RemoteProtocolError, match="sent EncryptedResidues where Hello was expected"
    ):
        side.feed(EncryptedResidues(0, EncryptedVector(b"", 1)))


def test_a_greeting_cannot_be_sent_back():
    """Who does not know the ids cannot make the other role's digest of them."""
    ours = Hello(PROTOCOL_VERSION, "alice", TERMS, 10, "aa", 0, 4)
    wire = wire_form(ours)
    assert wire.ids_digest not in (ours.ids_digest, wire_form(replace(ours, role="bob")).ids_digest)
    echo = replace(wire, role="bob")
    with pytest.raises(AgreementError, match="row ids"):
        compare(ours, echo)
    compare(ours, wire_form(replace(ours, role="bob")))
