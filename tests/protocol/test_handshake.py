"""The first words: each difference between the two sides has its own message."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from taciturn.engine.pair import run_pair
from taciturn.errors import AgreementError, RemoteProtocolError
from taciturn.protocol.codec import MAX_TEXT
from taciturn.protocol.handshake import PeerTable, compare, shake_hands, wire_form
from taciturn.protocol.messages import MAX_MAGNITUDE_BITS, Hello
from taciturn.protocol.steps import Program, receive, send
from taciturn.setting_syntax import hyphenated
from taciturn.settings.agreement import AGREEMENT_KEYS
from taciturn.version import PROTOCOL_VERSION
from tests.expected import refused
from tests.protocol.parties import ByHand, agreement

TERMS = agreement().canonical()
OURS = Hello(PROTOCOL_VERSION, "bob", TERMS, 10, "aa", 3, 4)


def greet(hello: Hello) -> Program[Hello]:
    """A peer that says exactly this, and takes whatever it is wire_form."""
    yield from send(hello)
    return (yield from receive(Hello))


def answer_to(hello: Hello) -> Hello:
    """What Bob's side makes of Alice's greeting."""
    return run_pair(greet(wire_form(hello)), shake_hands(OURS))[1]


ALIKE = replace(OURS, role="alice")


@pytest.mark.parametrize("version", [-1, 0, 1, 2, PROTOCOL_VERSION + 1])
def test_another_version_is_refused_before_anything_else_is_compared(version):
    """Version 2 had other ciphertexts: its keys and vectors would be taken for malformed ones."""
    with refused(AgreementError, names=(version, PROTOCOL_VERSION)) as raised:
        answer_to(replace(ALIKE, version=version, terms="{}", rows=3))
    assert raised.value.hint
    assert "rows" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "columns", "limit"),
    [
        (PeerTable(), 1 << 20, None),
        (PeerTable(15), 15, None),
        (PeerTable(15), 14, 15),
        (PeerTable(2000, 1000), 2000, None),
        (PeerTable(None, 1000), 1000, None),
        (PeerTable(None, 1000), 1001, "1,000"),
    ],
)
def test_a_party_may_know_how_many_columns_to_expect(table, columns, limit):
    hello = replace(ALIKE, columns=columns)
    if limit is None:
        table.require(hello)
    else:
        with refused(AgreementError, names=(f"{columns:,}", limit)):
            table.require(hello)


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_two_of_the_same_role_are_refused(role):
    with refused(AgreementError, names=role):
        run_pair(shake_hands(replace(OURS, role=role)), shake_hands(replace(OURS, role=role)))


def test_a_role_that_does_not_exist_is_refused_without_repeating_it():
    with refused(AgreementError) as raised:
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
    "base_mechanism": "none",
    "reveal": True,
    "reveal_epsilon": 1.0,
    "reveal_delta": 1e-6,
    "fresh_keys": True,
    "reveal_bob": True,
    "score_range": 64.0,
    "sigmoid_error": 0.01,
    "scheme": "paillier",
    "key_bits": 2048,
    "epochs": 3,
    "batch_size": 5,
    "minimum_batch": 2,
    "evaluate": "epoch",
    "patience": 3,
    "held_out": 0.25,
    "split_seed": "x",
    "share_metrics": "quality",
    "metrics_epsilon": 0.5,
    "learning_rate": 0.5,
    "schedule": "inverse",
    "decay": 0.125,
    "l1": 0.25,
    "l2": 0.75,
    "class_weight": [1.0, 0.5],
    "family": "gaussian",
    "feature_bits": 17,
    "residue_bits": 21,
    "intercept": True,
    "file_digest": "0f" * 32,
    "penalties": [0.25, 0.5],
    "few_labels": "accepted",
    "rarest_value": 100,
}


def test_every_setting_of_the_agreement_is_tried_below():
    # Of the parties each place is compared, and of a mechanism's own settings each of them.
    compared = {*CHANGES, "parties", "mechanism_settings"}
    assert compared == set(AGREEMENT_KEYS) - {"solver", "passes"}


def test_each_party_that_differs_is_named():
    here, there = ({"alice-1": "0" * 64, name: "1" * 64} for name in ("alice-2", "alice-3"))
    ours = replace(ALIKE, terms=agreement(parties=here).canonical())
    theirs = agreement(parties=there).canonical()
    with refused(AgreementError, names=("alice-2", "alice-3")) as raised:
        compare(ours, wire_form(replace(ours, role="bob", terms=theirs)))
    assert "alice-1" not in raised.value.message


@pytest.mark.parametrize("key", CHANGES)
def test_a_setting_that_differs_is_named_with_both_values_and_no_other(key):
    theirs = agreement(**{key: CHANGES[key]}).canonical()
    ours = json.loads(TERMS).get(key)
    with refused(AgreementError, names=(hyphenated(key), json.dumps(CHANGES[key]))) as raised:
        answer_to(replace(ALIKE, terms=theirs))
    assert ours is None or json.dumps(ours) in raised.value.message
    others = [name for name in CHANGES if f" {hyphenated(name)}: " in raised.value.message]
    assert others == [key]


@pytest.mark.parametrize(
    ("changes", "named", "not_named"),
    [
        ({"solver": "newton"}, ("solver", "newton", "sgd"), ("passes", "epochs")),
        ({"mechanism": "sealed", "reveal": False}, ("mechanism", "sealed"), ("reveal",)),
        ({"held_out": 0.5, "l2": 0.25}, ("held-out", 0.5), ("l2",)),
    ],
)
def test_of_settings_that_follow_from_another_only_that_one_is_named(changes, named, not_named):
    with refused(AgreementError, names=named) as raised:
        answer_to(replace(ALIKE, terms=agreement(**changes).canonical()))
    assert not any(f"{name}: " in raised.value.message for name in not_named)


@pytest.mark.parametrize(("l2", "named"), [(1 / 11, (10, 11)), (0.5, ("l2", 0.5))])
def test_a_penalty_that_follows_from_the_rows_is_not_the_reason(l2, named):
    """By default it is 1 / rows: with other rows it differs, and the rows are what is wrong."""
    ours = replace(ALIKE, terms=agreement(l2=1 / 10).canonical())
    theirs = replace(ours, role="bob", terms=agreement(l2=l2).canonical(), rows=11)
    with refused(AgreementError, names=named):
        compare(ours, wire_form(theirs))


def test_an_equal_number_of_rows_excuses_no_other_penalty():
    ours = replace(ALIKE, terms=agreement(l2=1 / 10).canonical())
    near = agreement(l2=(1 / 10) * (1 + 1e-12)).canonical()
    with refused(AgreementError, names="l2"):
        compare(ours, wire_form(replace(ours, role="bob", terms=near)))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"terms": ""}, ()),
        ({"terms": "{"}, ()),
        ({"terms": "[1]"}, ()),
        ({"terms": "null"}, ()),
        ({"terms": TERMS.replace(",", ", ", 1)}, ()),
        ({"terms": TERMS[:-1] + ',"extra":1}'}, "extra"),
        ({"terms": '{"purpose":"predict"}'}, ("purpose", "predict")),
        ({"terms": "1" * 6000}, ()),
        ({"terms": "[" * MAX_TEXT}, ()),
        ({"rows": 11}, (10, 11)),
        ({"ids_digest": "ab"}, ()),
    ],
    ids=str,
)
def test_what_is_not_alike_is_refused_by_either_side(changes, named):
    with refused(AgreementError, names=named):
        answer_to(replace(ALIKE, **changes))
    with refused(AgreementError, names=named):
        ByHand("alice", shake_hands(ALIKE)).feed(wire_form(replace(OURS, **changes)))


@pytest.mark.parametrize("bits", [-1, MAX_MAGNITUDE_BITS + 1, 2**62, -(2**63)])
def test_an_absurd_size_of_the_features_is_refused(bits):
    with refused(RemoteProtocolError, names=bits):
        answer_to(replace(ALIKE, magnitude_bits=bits))


def test_a_greeting_cannot_be_sent_back():
    """Who does not know the ids cannot make the other role's digest of them."""
    wire = wire_form(ALIKE)
    assert wire.ids_digest not in (ALIKE.ids_digest, wire_form(OURS).ids_digest)
    with refused(AgreementError):
        compare(ALIKE, replace(wire, role="bob"))
    compare(ALIKE, wire_form(OURS))
