"""From settings to terms: each mechanism's defaults, what it does not use, what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from taciturn.errors import BudgetExceeded, ConfigError
from taciturn.jobs.train.simulation import simulate_training
from taciturn.privacy.batch_response import design
from taciturn.privacy.registry import MECHANISMS
from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import AGREED, agree, require_used
from taciturn.protocol.mutual import MOST_WAVES, Columns
from taciturn.protocol.mutual_table import TablePlan
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import (
    DATASET_DEFAULTS,
    DEFAULT_MECHANISM,
    DEFAULT_PASSES,
    Newton,
    Settings,
)
from taciturn.simulation import load_raw
from tests.expected import refused

COLUMNS, ROWS = 30, 455
EPSILONS: dict[str, dict[str, Any]] = {
    "none": {},
    "add": {"epsilon": 1.0},
    "mult": {"epsilon": 1.0},
    "hybrid": {},
    "label-rr": {"epsilon": 1.0},
    "sealed": {},
    "mutual": {},
}


def settings(**values: Any) -> Settings:
    return resolved(
        Settings.from_mapping({"dataset": "breast-cancer", "mechanism": "none", **values})
    )


def agreed(**values: Any) -> dict[str, Any]:
    return agree(settings(**values), COLUMNS, ROWS).agreement.model_dump()


def protection(**values: Any) -> dict[str, Any]:
    """What of the protection is settled."""
    settled = agreed(**values)
    return {name: settled[name] for name in AGREED if settled[name] is not None}


# --- defaults ------------------------------------------------------------------------------------


def test_every_mechanism_is_tried_here():
    assert set(EPSILONS) == set(MECHANISMS)


def test_mutual_takes_its_passes_and_range_from_the_number_of_rows():
    few, many = OPENING_ROWS - 1, OPENING_ROWS
    terms = {rows: agree(settings(mechanism="mutual"), COLUMNS, rows) for rows in (few, many)}
    assert {rows: (t.rounds, t.agreement.score_range) for rows, t in terms.items()} == {
        few: (56, 128.0),
        many: (28, 64.0),
    }
    plans = [
        TablePlan.from_terms(t, rows, Columns(COLUMNS, 5), Columns(5, 5))
        for rows, t in terms.items()
    ]
    assert all(plan.sigmoid.sigmoid.waves <= MOST_WAVES for plan in plans)
    given = agree(settings(mechanism="mutual", passes=9, score_range=32.0), COLUMNS, few)
    assert (given.rounds, given.agreement.score_range) == (9, 32.0)
    assert agree(settings(mechanism="sealed"), COLUMNS, few).rounds == DEFAULT_PASSES


@pytest.mark.parametrize(
    ("lacks", "setting"),
    [
        ({"parties": 2}, "parties"),
        ({"family": "poisson"}, "family"),
        ({"family": "gamma"}, "family"),
    ],
)
def test_without_a_mechanism_the_default_or_a_choice(lacks, setting):
    own = {"data": "own.csv", "label": "y"}
    chosen = resolved(Settings.from_mapping(own))
    assert agree(chosen, COLUMNS, ROWS).agreement.mechanism == DEFAULT_MECHANISM
    with refused(ConfigError, setting=setting) as caught:
        agree(resolved(Settings.from_mapping({**own, **lacks})), COLUMNS, ROWS)
    offered = {name for name in MECHANISMS if f'mechanism="{name}"' in caught.value.hint}
    assert {"sealed", "none"} <= offered
    assert "mutual" not in offered
    assert all(MECHANISMS[name].exposes() in caught.value.hint for name in offered)


SETTLED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "none": ({}, {}),
    "add": ({"epsilon": 0.5}, {"epsilon": 0.5, "noise": "discrete", "bob_update": "released"}),
    "mult": (
        {"epsilon": 0.5},
        {
            "epsilon": 0.5,
            "noise": "discrete",
            "variant": "printed",
            "b1": 0.1,
            "b2": 10.0,
            "bob_update": "released",
        },
    ),
    # The paper's L_RR.
    "hybrid": ({}, {"epsilon": 1.0, "subset_size": 111}),
    "label-rr": ({"epsilon": 0.5}, {"epsilon": 0.5, "base_mechanism": "none"}),
}


@pytest.mark.parametrize("name", SETTLED)
def test_what_is_not_given_has_the_mechanisms_default(name):
    given, expected = SETTLED[name]
    assert protection(mechanism=name, **given) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"noise": "continuous"},
        {"bob_update": "true"},
        {"variant": "mean-one"},
        {"b1": 0.5},
        {"b2": 3.0},
    ],
    ids=str,
)
def test_what_is_given_stands(given):
    usual = protection(mechanism="mult", epsilon=2.0)
    assert protection(mechanism="mult", epsilon=2.0, **given) == {**usual, **given}


@pytest.mark.parametrize("name", ["add", "mult", "label-rr"])
def test_an_epsilon_is_needed_where_there_is_no_default(name):
    with refused(ConfigError, setting="epsilon", names=name) as raised:
        agreed(mechanism=name)
    assert raised.value.hint


# --- the subset of hybrid ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "columns"),
    [("breast-cancer", 30), ("sklearn-digits", 64)],
)
def test_the_papers_l_rr_is_used_with_the_papers_batch_size(name, columns):
    """[Tan22, Table III]: the subset is the smallest that gives it on average."""
    rows = 1437
    usual = DATASET_DEFAULTS[name]
    assert usual.l_rr is not None
    terms = agree(settings(dataset=name, mechanism="hybrid"), columns, rows)
    expected = design(usual.batch_size, 1.0, columns, rows, l_rr=usual.l_rr)
    assert terms.agreement.subset_size == expected.subset
    assert usual.l_rr <= expected.asked_rows < usual.l_rr + 1


@pytest.mark.parametrize("batch_size", [8, 15, 20])
def test_with_another_batch_size_the_requirement_decides(batch_size):
    """A tenth more than the least, not the paper's."""
    subset_size = agreed(mechanism="hybrid", batch_size=batch_size)["subset_size"]
    assert subset_size == design(batch_size, 1.0, COLUMNS, ROWS).subset
    assert subset_size != design(batch_size, 1.0, COLUMNS, ROWS, l_rr=40).subset


def test_the_subset_may_be_given_either_way():
    assert agreed(mechanism="hybrid", subset_size=150)["subset_size"] == 150
    expected = design(16, 1.0, COLUMNS, ROWS, l_rr=60).subset
    assert agreed(mechanism="hybrid", l_rr=60)["subset_size"] == expected


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"l_rr": 60, "subset_size": 150}, None),
        ({"l_rr": 20}, "l_rr"),
        ({"subset_size": 40}, "l_rr"),
        ({"batch_size": 200, "l_rr": 210}, "l_rr"),
        ({"l_rr": 400}, "subset_size"),
        ({"epsilon": 8.0}, "subset_size"),
        ({"epsilon": 50.0}, "epsilon"),
    ],
    ids=str,
)
def test_the_papers_requirement_is_named_where_it_is_broken(given, setting):
    with refused(ConfigError, setting=setting) as raised:
        agreed(mechanism="hybrid", **given)
    assert raised.value.hint


# --- the scheme ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "mult"])
@pytest.mark.parametrize("scheme", ["bfv", "paillier", "clear"])
def test_residues_in_clear_have_no_scheme(name, scheme):
    terms = agree(settings(mechanism=name, epsilon=1.0, scheme=scheme), COLUMNS, ROWS)
    assert (terms.agreement.scheme, terms.agreement.key_bits) == ("clear", 0)
    assert terms.scheme.protects is False


@pytest.mark.parametrize("name", ["none", "hybrid"])
def test_gradients_have_the_one_that_was_asked_for(name):
    terms = agree(settings(mechanism=name), COLUMNS, ROWS)
    assert (terms.agreement.scheme, terms.agreement.key_bits) == ("bfv", 128)
    terms = agree(settings(mechanism=name, scheme="paillier", key_bits=2048), COLUMNS, ROWS)
    assert (terms.scheme.name, terms.agreement.key_bits) == ("paillier", 2048)
    with refused(ConfigError):
        agree(settings(mechanism=name, scheme="paillier", key_bits=1024), COLUMNS, ROWS)


@pytest.mark.parametrize("name", EPSILONS)
def test_the_terms_survive_the_handshake(name):
    agreement = agree(settings(mechanism=name, **EPSILONS[name]), COLUMNS, ROWS).agreement
    assert type(agreement).parse(agreement.canonical()) == agreement


# --- what is not used ----------------------------------------------------------------------------

GIVEN: dict[str, Any] = {
    "epsilon": 1.0,
    "noise": "discrete",
    "variant": "printed",
    "b1": 0.1,
    "b2": 10.0,
    "subset_size": 111,
    "l_rr": 40,
    "bob_update": "released",
    "reveal": True,
    "reveal_epsilon": 1.0,
    "reveal_delta": 1e-6,
    "fresh_keys": True,
}
USED: dict[str, set[str]] = {
    "none": set(),
    "add": {"epsilon", "noise", "bob_update"},
    "mult": {"epsilon", "noise", "bob_update", "variant", "b1", "b2"},
    "hybrid": {"epsilon", "subset_size", "l_rr"},
    "sealed": {"reveal", "reveal_epsilon", "reveal_delta", "fresh_keys"},
}


@pytest.mark.parametrize("name", USED)
@pytest.mark.parametrize("setting", GIVEN)
def test_a_setting_is_used_or_refused_by_name(name, setting):
    asked = settings(mechanism=name, **{setting: GIVEN[setting]})
    if setting in USED[name]:
        require_used(asked)
        return
    with pytest.raises(ConfigError) as refused:
        require_used(asked)
    assert refused.value.setting == setting


# --- a model that is told ------------------------------------------------------------------------

TOLD: dict[str, Any] = {
    "mechanism": "sealed",
    "solver": "newton",
    "reveal": True,
    "reveal_epsilon": 1.0,
}


def test_a_told_model_has_a_delta_and_fewer_passes_unless_they_are_given():
    usual = agreed(**TOLD)
    assert (usual["reveal_delta"], usual["passes"]) == (1e-6, 4)
    given = agreed(**TOLD, reveal_delta=1e-9, passes=7)
    assert (given["reveal_delta"], given["passes"]) == (1e-9, 7)
    assert agreed(mechanism="sealed", solver="newton", reveal=True)["reveal_delta"] is None


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"reveal": None}, "reveal_epsilon"),
        ({"reveal_epsilon": None, "reveal_delta": 1e-6}, "reveal_delta"),
        ({"mechanism": "label-rr", "epsilon": 1.0, "base_mechanism": "sealed"}, "reveal_epsilon"),
    ],
    ids=str,
)
def test_what_a_told_model_cannot_have_is_refused_by_name(changes, setting):
    with refused(ConfigError, setting=setting):
        agreed(**{**TOLD, **changes})


def test_a_budget_pays_for_a_told_model():
    agreed(**TOLD, budget=1.0)
    with refused(BudgetExceeded):
        agreed(**TOLD, budget=0.5)


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "price"),
    [
        ({"mechanism": "none"}, "none"),
        ({"mechanism": "hybrid"}, "hybrid"),
        ({"mechanism": "mult", "epsilon": 1.0, "variant": "one-sided"}, "one-sided"),
        ({"mechanism": "mult", "epsilon": 0.01}, "2.3025"),
        ({"mechanism": "add", "epsilon": 10.0}, "5"),
    ],
    ids=str,
)
def test_a_budget_below_one_release_is_refused_before_anything_is_sent(given, price):
    asked = settings(**given, budget=1.0, scheme="clear", seed=1)
    events: list[object] = []
    with refused(BudgetExceeded, setting="budget", names=price):
        simulate_training(asked, load_raw(asked), observe=events.append)
    assert events == []


def test_a_budget_that_pays_for_one_release_is_not():
    agreed(mechanism="add", epsilon=2.0, budget=1.0)
    with pytest.raises(BudgetExceeded):
        agreed(mechanism="add", epsilon=2.0, budget=0.999)


def test_the_budget_is_bobs_own_and_not_agreed_on():
    with_one = agreed(mechanism="add", epsilon=1.0, budget=3.0)
    assert with_one == agreed(mechanism="add", epsilon=1.0)


# --- newton --------------------------------------------------------------------------------------


def newton(rows: int = 455, **given: Any) -> Agreement:
    settings = resolved(Settings.from_mapping({"mechanism": "sealed", "solver": "newton", **given}))
    return agree(settings, columns=30, rows=rows).agreement


def test_newton_has_passes_and_its_penalty_is_scikit_learns():
    agreed = newton(passes=7)
    assert agreed.solver == Newton(passes=7)
    assert agreed.l2 == 1 / 455
    assert newton(l2=0.5).l2 == 0.5


@pytest.mark.parametrize(
    ("given", "setting", "named"),
    [
        ({"mechanism": "add", "epsilon": 1.0}, "solver", "add"),
        ({"mechanism": "mult", "epsilon": 1.0}, "solver", "mult"),
        ({"mechanism": "hybrid"}, "solver", "hybrid"),
        ({"mechanism": "none", "scheme": "paillier"}, "scheme", "paillier"),
    ],
)
def test_what_has_no_newton_says_so_by_name(given, setting, named):
    with refused(ConfigError, setting=setting, names=named) as raised:
        newton(**given)
    assert raised.value.hint


@pytest.mark.parametrize(
    "given",
    [
        {"mechanism": "sealed"},
        {"mechanism": "mutual"},
        {"mechanism": "label-rr", "epsilon": 1.0, "base_mechanism": "sealed"},
    ],
    ids=str,
)
def test_where_weights_are_shared_there_is_no_sgd(given):
    """Whether defaults were filled in or not; the way out names what to use instead."""
    asked = Settings.from_mapping({**given, "solver": "sgd"})
    for ask in (lambda: resolved(asked), lambda: agree(asked, columns=30, rows=455)):
        with pytest.raises(ConfigError) as raised:
            ask()
        assert raised.value.setting == "solver"
        assert all(way in raised.value.hint for way in ("newton", "none"))
