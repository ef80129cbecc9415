"""One contract for every mechanism of the registry; a new one joins by a line of ``CASES``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError
from taciturn.privacy.base import (
    ClassWeighted,
    EncryptedMechanism,
    PaidModel,
    Released,
    Sharing,
    SignPreserving,
    SizedByColumns,
)
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.noise import draw
from taciturn.privacy.prices import EVENTS, price
from taciturn.privacy.registry import MECHANISMS, mechanism, mechanism_class
from taciturn.protocol.alice.party import TRAININGS as ALICE
from taciturn.protocol.bob.party import TRAININGS as BOB
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Settings
from tests.expected import refused
from tests.privacy.odds import FALSE_ALARM, fits, happens
from tests.protocol.parties import agreement


@dataclass(frozen=True)
class Case:
    """A mechanism with its settings, and what must hold of it.

    Args:
        settings: What an agreement says.
        label: The price of a label.
        facts: Of ``FACTS`` and ``INTERFACES`` those that it has.
        needs: Settings without which it is refused.
        refuses: A value that does not suit it, by setting; further settings come with it.
    """

    settings: dict[str, Any]
    label: float
    facts: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    refuses: Mapping[str, dict[str, Any]] = field(default_factory=dict)


def case(settings: dict[str, Any], label: float, facts: str, *needs: str, **refuses: Any) -> Case:
    together = {
        name: value if isinstance(value, dict) else {name: value} for name, value in refuses.items()
    }
    return Case(settings, label, frozenset(facts.split()), needs, together)


FACTS = (
    "lossless",
    "label_flips",
    "hidden_batch",
)
INTERFACES = (PaidModel, SignPreserving, SizedByColumns)
NOISY = {"epsilon": 1.0, "noise": "discrete", "bob_update": "released"}
MULT = {"mechanism": "mult", **NOISY, "b1": 0.125, "b2": 8.0}
FLIPS = {"mechanism": "label-rr", "epsilon": 1.0}
SEALED = "lossless"
# b1 and b2 are on the grid: the prices of one known answer each.
CASES = {
    "none": case({"mechanism": "none"}, math.inf, "lossless"),
    "add": case(
        {"mechanism": "add", **NOISY}, 0.5, "PaidModel",
        "epsilon", epsilon=1e-12,
    ),
    "mult printed": case(
        {**MULT, "variant": "printed"}, math.log(8), "PaidModel",
        "epsilon", "b1", b1=1.5, b2=1e14,
    ),
    "mult one-sided": case(
        {**MULT, "variant": "one-sided"}, math.inf,
        "PaidModel SignPreserving", "variant",
    ),
    "mult mean-one": case(
        {**MULT, "variant": "mean-one"}, math.log(8) + 1.125 / 128,
        "PaidModel", "b2",
    ),
    "hybrid": case(
        {"mechanism": "hybrid", "epsilon": 1.0, "subset_size": 37, "batch_size": 8}, math.inf,
        "lossless hidden_batch SizedByColumns", "epsilon", "subset_size",
        epsilon=50.0,
    ),
    "label-rr": case(
        {**FLIPS, "base_mechanism": "none"}, 1.0, "label_flips PaidModel",
        "epsilon", "base_mechanism",
    ),
    "label-rr over sealed": case(
        {**FLIPS, "base_mechanism": "sealed"}, 1.0,
        "label_flips PaidModel",
    ),
    "sealed": case(
        {"mechanism": "sealed"}, 0.0, SEALED,
        patience={"patience": 2, "evaluate": "epoch"},
    ),
    "sealed revealed": case({"mechanism": "sealed", "reveal": True}, math.inf, SEALED),
    "mutual": case(
        {"mechanism": "mutual", "score_range": 32.0, "sigmoid_error": 0.001}, 0.0, SEALED
    ),
}  # fmt: skip


def made(name: str, **changes: Any) -> Any:
    return mechanism(agreement(**{**CASES[name].settings, **changes}))


@pytest.fixture(params=sorted(CASES))
def name(request) -> str:
    return str(request.param)


@pytest.fixture
def method(name) -> Any:
    return made(name)


@pytest.fixture
def releasing(method) -> Any:
    if method.conversation in ("sealed", "mutual"):
        pytest.skip(f"{method.conversation} returns nothing")
    return method


# --- the registry ------------------------------------------------------------------------------


def test_the_contract_covers_the_registry_which_cannot_be_written():
    assert {one.settings["mechanism"] for one in CASES.values()} == set(MECHANISMS)
    with pytest.raises(TypeError):
        MECHANISMS["more"] = MECHANISMS["none"]  # type: ignore[index]


@pytest.mark.parametrize(("wrong", "meant"), [("nome", "none"), ("hybird", "hybrid")])
def test_an_unknown_name_is_refused_with_the_nearest_known(wrong, meant):
    for refuse in (
        lambda: mechanism_class(wrong),
        lambda: mechanism(agreement().model_copy(update={"mechanism": wrong})),
    ):
        with refused(ConfigError, setting="mechanism", names=(wrong, meant, *MECHANISMS)):
            refuse()


@pytest.mark.parametrize("known", sorted(MECHANISMS))
def test_what_it_takes_are_settings_of_the_agreement_and_defaults_are_among_them(known):
    chosen = mechanism_class(known)
    assert set(chosen.takes) <= set(Settings.model_fields)
    assert set(chosen.defaults) <= set(chosen.takes)
    # A default is a value that the agreement accepts; where noise is the protection there is none.
    Agreement.from_mapping({**agreement(mechanism=known).model_dump(), **chosen.defaults})
    assert "epsilon" not in chosen.defaults or known == "hybrid"
    # Whoever must give a setting is shown it in a file to begin with.
    needed = {*chosen.takes} - {*chosen.defaults} - {"subset_size", "l_rr"}
    assert needed <= {*chosen.required_settings()}


@pytest.mark.parametrize(("name", "missing"), [(n, m) for n in CASES for m in CASES[n].needs])
def test_a_missing_setting_is_named_with_a_value_that_is_accepted(name, missing):
    with refused(ConfigError, setting=missing, names=CASES[name].settings["mechanism"]) as raised:
        made(name, **{missing: None})
    (value,) = re.findall(rf"{missing}=([^,\s]+)", raised.value.hint)
    assert made(name, **{missing: json.loads(value)})


@pytest.mark.parametrize(("name", "setting"), [(n, s) for n in CASES for s in CASES[n].refuses])
def test_a_value_that_does_not_suit_it_is_refused_by_its_setting(name, setting):
    with refused(ConfigError, setting=setting) as raised:
        made(name, **CASES[name].refuses[setting])
    assert raised.value.hint


# --- price, ledger and disclosure ----------------------------------------------------------------


def test_its_event_has_its_price_crosses_the_wire_and_is_charged(name, method):
    expected = CASES[name]
    cost, ledger = price(method.event), Ledger(3, method.assumption)
    assert cost.label == pytest.approx(expected.label)
    free = 0.0 if expected.label == 0 else math.inf
    assert cost.claimed == expected.settings.get("epsilon", free)
    assert EVENTS[method.event.name] is type(method.event)
    ledger.charge(method.event, np.arange(3))
    statement = ledger.statement()
    assert statement.label_epsilon_total == cost.label
    assert statement.releases_per_row == (cost.label > 0)


def test_it_says_what_others_ask_of_it(name, method):
    assert method.name == CASES[name].settings["mechanism"]
    facts = {fact for fact in FACTS if getattr(method, fact, None)}
    facts |= {kind.__name__ for kind in INTERFACES if isinstance(method, kind)}
    assert facts == CASES[name].facts
    conversation = f"{method.conversation}-table" if method.sharing else method.conversation
    assert conversation in ALICE
    assert conversation in BOB
    assert isinstance(method, EncryptedMechanism) == (method.conversation != "residues")
    # Texts that stand in tables, notes and statements.
    assert method.summary
    assert method.assumption
    assert method.receives().rstrip(".") == method.receives()


SHARING = {
    "sealed": Sharing.WEIGHTS,
    "sealed revealed": Sharing.WEIGHTS,
    "label-rr over sealed": Sharing.WEIGHTS,
    "mutual": Sharing.SCORES,
}


def test_it_says_what_the_parties_hold_as_shares(name, method):
    assert method.sharing is SHARING.get(name, Sharing.NOTHING)
    assert (method.sharing is Sharing.SCORES) == ("alice" not in method.unprotected)


def test_a_bob_who_deviates_chooses_weights_unless_scores_are_shared_or_residues_sent(name, method):
    forms = {"revealed": "real", "hidden-batch": "real", "sealed": "integer"}
    assert method.chosen_scores == forms.get(method.conversation)


UNPROTECTED = {"none": {"alice", "bob"}, "hybrid": {"alice", "bob"}, "mutual": set()}


def test_it_says_whose_data_no_setting_protects(name, method):
    assert method.unprotected == UNPROTECTED.get(name, {"alice"})
    # exact: what the consent is about
    assert ("reconstruct Alice's columns" in method.exposes()) == ("alice" in method.unprotected)
    if "bob" in method.unprotected:
        assert math.isinf(price(method.event).label)


# --- releases ------------------------------------------------------------------------------------


def secret(conversation: str) -> Any:
    """Something to release: a masked gradient, or the residues of a batch."""
    if conversation == "residues":
        return np.array([5, -7, 0, 1 << 20, -(1 << 20)])
    return (3, 1, 4)


def entropy(conversation: str, seed: int) -> Any:
    entropy = KeyedEntropy.from_seed(seed)
    return draw(5, entropy) if conversation == "residues" else entropy


def test_a_release_has_its_event_the_form_of_what_came_in_and_noise_by_its_coins(releasing):
    kind = releasing.conversation
    before = secret(kind)
    first, again, other = (releasing.release(before, entropy(kind, seed)) for seed in (2, 2, 3))
    assert isinstance(first, Released)
    # Flipped labels were released before; their gradient is what follows from that.
    assert first.event == getattr(releasing, "gradient_event", releasing.event)
    assert np.shape(first.value) == np.shape(before)
    assert np.asarray(first.value).dtype == np.int64
    assert np.array_equal(before, secret(kind))
    assert np.array_equal(first.value, again.value)
    assert np.array_equal(first.value, other.value) == (kind != "residues")


def test_a_label_moves_the_residue_up_wherever_gradients_are_released(method):
    """What attacks rely on: positive for a label of 1, negative for a 0, below 1 in size."""
    if method.conversation == "residues":
        return
    scores = np.linspace(-8, 8, 33)
    one, zero = (method.residue(scores, np.full(33, label, np.int8)) for label in (1, 0))
    assert ((0 < one) & (one < 1) & (-1 < zero) & (zero < 0)).all()


@pytest.mark.parametrize("weights", [None, (0.25, 1.0)])
def test_a_likelihood_has_the_residue_for_its_slope_and_others_refuse(name, weights):
    method = made(name, class_weight=weights if isinstance(made(name), ClassWeighted) else None)
    if not isinstance(method, EncryptedMechanism):
        assert method.solvers == ("sgd",)
        return
    scores, labels = np.linspace(-8, 8, 34), np.arange(34) % 2
    if "newton" not in method.solvers:
        with refused(ConfigError, setting="solver", names=method.name):
            method.likelihood(scores, labels)
        return
    slope = method.likelihood(scores, labels).slope
    np.testing.assert_array_equal(slope, method.residue(scores, labels))


# --- the exact law of released residues ----------------------------------------------------------

RESIDUES = [name for name in CASES if made(name).conversation == "residues"]
BITS = 8
ONE = 1 << BITS
# Wide bounds; an output that is nearly always clipped; next to no noise.
LAWS = [
    {"epsilon": 4.0},
    {"epsilon": 4.0, "b1": 0.05, "b2": 0.08},
    {"epsilon": 30.0, "b1": 0.25, "b2": 0.5},
]


def noisy(name: str, bits: int = BITS, **changes: Any) -> Any:
    known = CASES[name].settings
    taken = {key: value for key, value in changes.items() if key in known}
    return made(name, residue_bits=bits, **taken)


def reach(method: Any, changes: dict[str, Any]) -> float:
    """As far as outputs go, but for one in e^40."""
    return float(getattr(method.event, "b2", 1 + 80 / changes["epsilon"])) * 1.01


def log_law(law: Any, outputs: Any, residue: float) -> FloatArray:
    logs: FloatArray = law(outputs, np.full_like(outputs, residue))
    return logs


@pytest.mark.parametrize("changes", LAWS, ids=str)
@pytest.mark.parametrize("name", RESIDUES)
def test_probabilities_sum_to_one_and_releases_fit_them_with_false_alarm_rate_1e_minus_6(
    name, changes
):
    method, size = noisy(name, **changes), 20_000
    far = math.ceil(reach(method, changes) * ONE)
    outputs = np.arange(-far, far + 1)
    for residue in (0, 1, -1, 12, -13, 100, -ONE, ONE):
        masses = np.exp(log_law(method.log_probability, outputs, residue))
        assert masses.sum() == pytest.approx(1.0, rel=1e-12)
        drawn = method.draw(size, KeyedEntropy.from_seed(2024).fork(f"{name} {changes} {residue}"))
        released = method.release(np.full(size, residue), drawn).value
        counts = np.bincount(released + far, minlength=len(outputs))
        assert fits(counts, masses / masses.sum())


@pytest.mark.parametrize("changes", LAWS, ids=str)
@pytest.mark.parametrize("name", RESIDUES)
def test_continuous_releases_fit_their_density_with_false_alarm_rate_1e_minus_6(name, changes):
    """Atoms by the binomial test, the rest by Kolmogorov and Smirnov's."""
    from scipy.stats import kstest

    method, size = noisy(name, **changes), 10_000
    far = reach(method, changes)
    at, step = np.linspace(-far, far, 80_001, retstep=True)
    for residue in (0.0, 0.25, -0.6, 1.0):
        entropy = KeyedEntropy.from_seed(2024).fork(f"{name} {residue}")
        released = method.release_real(np.full(size, residue), entropy)
        assert released.event == method.event
        inside, atoms = np.full(size, True), 0.0
        for atom in (-getattr(method.event, "b2", math.inf), getattr(method.event, "b2", math.inf)):
            mass = float(np.exp(log_law(method.log_density, np.array([atom]), residue))[0])
            assert happens(int((released.value == atom).sum()), size, mass)
            inside &= released.value != atom
            atoms += mass
        density = np.exp(log_law(method.log_density, at, residue))
        # Corners and jumps cost the sum about a step each.
        assert density.sum() * step + atoms == pytest.approx(1.0, abs=2e-3)
        if inside.sum() > 100:
            # By its own distribution function the law is uniform.
            ranks = np.interp(released.value[inside], at, np.cumsum(density) / density.sum())
            assert kstest(ranks, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", RESIDUES)
def test_the_grid_approaches_the_reals(name):
    """Masses over the step are densities, and atoms are atoms, as the grid gets finer."""
    bits = 20
    method = noisy(name, bits, epsilon=2.0, b1=0.25, b2=2.0)
    outputs, residue = np.array([-1.5, -0.3, 0.01, 0.3, 1.9]), 0.6
    on_grid = np.round(outputs * 2**bits).astype(np.int64)
    masses = log_law(method.log_probability, on_grid, round(residue * 2**bits))
    densities = log_law(method.log_density, on_grid / 2**bits, residue)
    np.testing.assert_allclose(masses + bits * math.log(2), densities, atol=1e-4)
    if hasattr(method.event, "b2"):
        atoms = np.array([-2.0, 2.0])
        on_grid = (atoms * 2**bits).astype(np.int64)
        masses = log_law(method.log_probability, on_grid, round(residue * 2**bits))
        np.testing.assert_allclose(masses, log_law(method.log_density, atoms, residue), atol=1e-4)


@pytest.mark.parametrize("name", RESIDUES)
def test_an_epsilon_that_is_no_protection_is_no_crash(name):
    method, residues = noisy(name, epsilon=1e12, b1=0.125, b2=0.5), np.array([5, -70, 200])
    outputs = method.release(residues, draw(3, KeyedEntropy.from_seed(7))).value
    assert method.log_probability(outputs, residues).tolist() == pytest.approx([0.0] * 3)
