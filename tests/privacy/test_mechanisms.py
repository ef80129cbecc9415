"""The registry, and one contract for every mechanism in it."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from taciturn.errors import ConfigError
from taciturn.privacy import (
    EVENTS,
    MECHANISMS,
    EncryptedMechanism,
    MaskedProduct,
    Mechanism,
    NonPrivate,
    Released,
    Unprotected,
    mechanism,
    mechanism_class,
    price,
)
from taciturn.privacy import draw_noise as draw
from taciturn.protocol.alice import TRAININGS as ALICE
from taciturn.protocol.bob import TRAININGS as BOB
from taciturn.rng import KeyedEntropy
from taciturn.settings import Agreement, Settings
from tests.protocol.parties import agreement

_NOISY = {"epsilon": 1.0, "noise": "discrete", "bob_update": "released"}
_MULT = {"mechanism": "mult", **_NOISY, "b1": 0.1, "b2": 10.0}

# Every mechanism with what it takes; a mechanism with variants once for each.
MADE: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "add": {"mechanism": "add", **_NOISY},
    "mult printed": {**_MULT, "variant": "printed"},
    "mult one-sided": {**_MULT, "variant": "one-sided"},
    "mult mean-one": {**_MULT, "variant": "mean-one"},
    "hybrid": {"mechanism": "hybrid", "epsilon": 1.0, "subset_size": 37, "batch_size": 8},
    "label-rr": {"mechanism": "label-rr", "epsilon": 1.0, "over": "none"},
    "label-rr over sealed": {"mechanism": "label-rr", "epsilon": 1.0, "over": "sealed"},
    "sealed": {"mechanism": "sealed"},
    "sealed revealed": {"mechanism": "sealed", "reveal": True},
    "mutual": {"mechanism": "mutual", "score_range": 32.0, "sigmoid_error": 0.001},
}
UNPROTECTED = {"none", "mult one-sided", "hybrid", "sealed revealed"}


@pytest.fixture(params=sorted(MADE))
def name(request) -> str:
    return str(request.param)


@pytest.fixture
def agreed(name) -> Agreement:
    return agreement(**MADE[name])


@pytest.fixture
def method(agreed) -> Any:
    return mechanism(agreed)


@pytest.fixture
def releasing(method) -> Any:
    if method.conversation in ("sealed", "mutual"):
        pytest.skip(f"{method.conversation} returns nothing")
    return method


def secret(conversation: str) -> Any:
    """Something to release: a masked gradient, or the residues of a batch."""
    if conversation == "residues":
        return np.array([5, -7, 0, 1 << 20, -(1 << 20)])
    return (3, 1, 4)


def coins(conversation: str, seed: int) -> Any:
    entropy = KeyedEntropy.from_seed(seed)
    return draw(5, entropy) if conversation == "residues" else entropy


def listed(value: Any) -> list[Any]:
    return list(np.asarray(value).tolist())


# --- the registry ------------------------------------------------------------------------------


def test_the_registry_is_known_and_the_contract_covers_it():
    assert set(MECHANISMS) == {
        "none",
        "add",
        "mult",
        "hybrid",
        "sealed",
        "mutual",
        "label-rr",
    }
    assert {made["mechanism"] for made in MADE.values()} == set(MECHANISMS)


def test_a_mechanism_is_made_from_the_agreement_that_names_it(name, method):
    assert method.name == MADE[name]["mechanism"]


@pytest.mark.parametrize(
    ("wrong", "meant"), [("nome", "none"), ("ad", "add"), ("multi", "mult"), ("hybird", "hybrid")]
)
def test_an_unknown_name_is_refused_with_the_nearest_known(wrong, meant):
    for refuse in (
        lambda: mechanism_class(wrong),
        lambda: mechanism(agreement().model_copy(update={"mechanism": wrong})),
    ):
        with pytest.raises(ConfigError, match=f"unknown mechanism {wrong}") as raised:
            refuse()
        assert f"did you mean {meant}?" in raised.value.hint
        assert all(known in raised.value.hint for known in MECHANISMS)
        assert raised.value.setting == "mechanism"


def test_the_registry_cannot_be_written():
    with pytest.raises(TypeError):
        MECHANISMS["more"] = MECHANISMS["none"]  # type: ignore[index]


@pytest.mark.parametrize("known", sorted(MECHANISMS))
def test_what_it_takes_are_settings_of_the_agreement_and_defaults_are_among_them(known):
    chosen = mechanism_class(known)
    assert set(chosen.takes) <= set(Settings.model_fields)
    assert set(chosen.defaults) <= set(chosen.takes)
    # A default is a value that the agreement accepts.
    Agreement.of({**agreement(mechanism=known).model_dump(), **chosen.defaults})


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        ("add", "epsilon"),
        ("mult printed", "epsilon"),
        ("mult printed", "b1"),
        ("mult mean-one", "b2"),
        ("mult one-sided", "variant"),
        ("hybrid", "epsilon"),
        ("hybrid", "subset_size"),
        ("label-rr", "epsilon"),
        ("label-rr", "over"),
    ],
)
def test_a_missing_setting_is_named_with_its_option(made, missing):
    with pytest.raises(ConfigError, match=f"needs {missing.replace('_', '-')}") as raised:
        mechanism(agreement(**{**MADE[made], missing: None}))
    assert raised.value.setting == missing
    assert raised.value.message.startswith(MADE[made]["mechanism"])
    # The value that the hint names is accepted.
    (value,) = re.findall(f"^use {missing}=(.*), for example$", raised.value.hint)
    assert mechanism(agreement(**{**MADE[made], missing: json.loads(value)}))


@pytest.mark.parametrize("made", ["add", "mult printed", "label-rr"])
def test_epsilon_has_no_default_where_it_is_the_protection(made):
    chosen = mechanism_class(MADE[made]["mechanism"])
    assert "epsilon" in chosen.takes
    assert "epsilon" not in chosen.defaults


@pytest.mark.parametrize(
    ("made", "change", "setting"),
    [
        ("add", {"epsilon": 1e-12}, "epsilon"),
        ("mult printed", {"b1": 1.5}, "b1"),
        ("mult printed", {"b2": 1e14}, "b2"),
        ("hybrid", {"epsilon": 50.0}, "epsilon"),
        ("sealed", {"l1": 0.1}, "l1"),
        ("sealed", {"patience": 2, "evaluate": "epoch"}, "patience"),
    ],
)
def test_a_value_that_does_not_suit_it_is_refused_with_its_option(made, change, setting):
    with pytest.raises(ConfigError) as raised:
        mechanism(agreement(**{**MADE[made], **change}))
    assert raised.value.setting == setting
    assert raised.value.hint


# --- the contract ------------------------------------------------------------------------------


def test_what_it_releases_carries_its_own_event(releasing):
    kind = releasing.conversation
    released = releasing.release(secret(kind), coins(kind, 1))
    assert isinstance(released, Released)
    # Flipped labels were released before; their gradient is what follows from that.
    assert released.event == getattr(releasing, "gradient_event", releasing.event)


def test_the_value_has_the_form_of_what_came_in(releasing):
    kind = releasing.conversation
    before = secret(kind)
    released = releasing.release(secret(kind), coins(kind, 1)).value
    assert np.shape(released) == np.shape(before)
    assert np.asarray(released).dtype == np.int64
    # What came in is not changed.
    assert listed(before) == listed(secret(kind))


def test_the_same_coins_give_the_same_release(releasing):
    kind = releasing.conversation
    first, second = (releasing.release(secret(kind), coins(kind, 2)) for _ in range(2))
    assert listed(first.value) == listed(second.value)


def test_other_coins_give_another_release_where_there_is_noise(releasing):
    kind = releasing.conversation
    first, second = (releasing.release(secret(kind), coins(kind, seed)) for seed in (2, 3))
    assert (listed(first.value) != listed(second.value)) == (kind == "residues")


def test_its_event_is_priced(name, method):
    cost = price(method.event)
    least = min(cost.claimed, cost.residue, cost.label)
    assert least == 0 if name in ("sealed", "mutual") else least > 0
    assert (cost.label == float("inf")) == (name in UNPROTECTED)


def test_it_claims_the_epsilon_it_was_given(name, method):
    assert price(method.event).claimed == MADE[name].get(
        "epsilon", 0.0 if name in ("sealed", "mutual") else float("inf")
    )


def test_its_event_can_cross_the_wire(method):
    assert EVENTS[method.event.name] is type(method.event)


def test_it_says_what_it_rests_on_and_which_programs_use_it(name, method):
    conversation = f"{method.conversation}-table" if method.shares_weights else method.conversation
    assert conversation in ALICE
    assert conversation in BOB
    assert ("no protection" in method.assumption) == (name in UNPROTECTED)


def test_only_a_conversation_with_ciphertexts_encrypts(method):
    assert method.encrypts == (method.conversation != "residues")


def test_what_it_released_has_a_probability_and_a_density(method):
    """Only where residues are told; both are what an attack computes."""
    if method.conversation != "residues":
        return
    residues = secret("residues")
    on_grid = method.release(residues, draw(5, KeyedEntropy.from_seed(4))).value
    assert np.isfinite(method.log_probability(on_grid, residues)).all()
    assert (method.log_probability(on_grid, residues) <= 0).all()
    reals = residues / 2.0**20
    real = method.release_real(reals, KeyedEntropy.from_seed(4))
    assert real.event == method.event
    assert real.value.dtype == np.float64
    assert np.isfinite(method.log_density(real.value, reals)).all()


def test_a_label_moves_the_residue_up_wherever_gradients_are_released(method):
    """What attacks rely on: positive for a label of 1, negative for a 0, below 1 in size."""
    if method.conversation == "residues":
        return
    scores = np.linspace(-8, 8, 33)
    one, zero = (method.residue(scores, np.full(33, label, np.int8)) for label in (1, 0))
    assert ((0 < one) & (one < 1) & (-1 < zero) & (zero < 0)).all()


@pytest.mark.parametrize("weights", [None, (0.25, 1.0)])
def test_a_likelihood_has_the_residue_for_its_slope_and_others_refuse_by_name(name, weights):
    weighted = weights if mechanism_class(MADE[name]["mechanism"]).weighable else None
    method = mechanism(agreement(**MADE[name], class_weight=weighted))
    if not isinstance(method, EncryptedMechanism):
        assert not method.whole_table
        return
    scores, labels = np.linspace(-8, 8, 34), np.arange(34) % 2
    if not method.whole_table:
        with pytest.raises(ConfigError, match=f"{method.name} trains by batches") as raised:
            method.likelihood(scores, labels)
        assert raised.value.setting == "solver"
        return
    slope = method.likelihood(scores, labels).slope
    np.testing.assert_array_equal(slope, method.residue(scores, labels))


# What else is known of each, and asked of it elsewhere: the rows are what the papers and pages say.
LOSSLESS = {"none", "hybrid", "sealed", "sealed revealed", "mutual"}
SHARING = {"sealed", "sealed revealed", "label-rr over sealed", "mutual"}
FLIPPING = {"label-rr", "label-rr over sealed"}
WEIGHABLE = {"none", "hybrid", "sealed", "sealed revealed", "mutual"}
WHOLE_TABLE = {"none", "sealed", "sealed revealed", "mutual", "label-rr", "label-rr over sealed"}


def test_it_says_what_others_ask_of_it(name, method):
    assert method.lossless == (name in LOSSLESS)
    assert method.shares_weights == (name in SHARING)
    assert (method.label_flips is not None) == (name in FLIPPING)
    assert (method.hidden_batch is not None) == (name == "hybrid")
    assert method.weighable == (name in WEIGHABLE)
    assert method.sized_by_columns == (name == "hybrid")
    assert method.whole_table == (name in WHOLE_TABLE)
    assert method.claims_protection == (name not in ("none", "hybrid"))
    assert getattr(method, "keeps_signs", False) == (name == "mult one-sided")
    assert method.summary
    assert method.receives().rstrip(".") == method.receives()
    # Whoever must give a setting is shown it in a file to begin with.
    needed = {*type(method).takes} - {*type(method).defaults} - {"subset_size", "l_rr"}
    assert needed <= {*method.to_begin_with()}


# --- none --------------------------------------------------------------------------------------


def test_none_hands_the_value_out_as_it_is():
    method: Mechanism = Unprotected()
    value: MaskedProduct = (1, 2, 3)
    released = Unprotected().release(value, KeyedEntropy.from_seed(1))
    assert released.value == value
    assert released.event == method.event == NonPrivate()
