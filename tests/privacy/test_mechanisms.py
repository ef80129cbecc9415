"""The registry, and one contract for every mechanism in it."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.errors import ConfigError
from tacit.privacy.base import Released
from tacit.privacy.events import EVENTS, NonPrivate
from tacit.privacy.ledger import Price, price
from tacit.privacy.registry import MECHANISMS, mechanism, require_mechanism
from tacit.privacy.unprotected import Unprotected
from tacit.protocol.alice.registry import TRAININGS as ALICE
from tacit.protocol.bob.registry import TRAININGS as BOB
from tacit.rng import KeyedEntropy
from tests.protocol.parties import agreement

AGREED = agreement()


@pytest.fixture(params=sorted(MECHANISMS))
def each(request) -> Any:
    return MECHANISMS[request.param](AGREED)


def test_the_registry_is_known():
    assert set(MECHANISMS) == {"none"}


def test_a_mechanism_is_made_from_the_agreement_that_names_it():
    for name in MECHANISMS:
        found = mechanism(AGREED.model_copy(update={"mechanism": name}))
        assert found.name == name


def test_an_unknown_name_is_refused_with_those_known():
    for refuse in (
        lambda: require_mechanism("nome"),
        lambda: mechanism(AGREED.model_copy(update={"mechanism": "nome"})),
    ):
        with pytest.raises(ConfigError, match="unknown mechanism nome") as raised:
            refuse()
        assert "did you mean none?" in raised.value.hint
        assert raised.value.where == "--mechanism"


def test_the_registry_cannot_be_written():
    with pytest.raises(TypeError):
        MECHANISMS["more"] = Unprotected  # type: ignore[index]


# --- the contract ------------------------------------------------------------------------------


def test_what_it_releases_carries_its_own_event(each):
    released = each.release((3, 1, 4), KeyedEntropy.from_seed(1))
    assert isinstance(released, Released)
    assert released.event == each.event


def test_its_event_is_priced(each):
    found = price(each.event)
    assert isinstance(found, Price)
    assert min(found.claimed, found.residue, found.label) > 0


def test_its_event_can_cross_the_wire(each):
    assert EVENTS[each.event.name] is type(each.event)


def test_it_says_what_it_rests_on_and_which_programs_use_it(each):
    assert each.conversation in ALICE
    assert each.conversation in BOB
    assert each.assumption


def test_the_same_coins_give_the_same_release(each):
    first, second = (each.release((5, 6), KeyedEntropy.from_seed(2)) for _ in range(2))
    assert first == second


# --- none --------------------------------------------------------------------------------------


def test_none_hands_the_value_out_as_it_is():
    released = Unprotected().release((1, 2, 3), KeyedEntropy.from_seed(1))
    assert released.value == (1, 2, 3)
    assert released.event == NonPrivate()


def test_none_says_that_it_is_no_protection():
    assert "no protection" in Unprotected.assumption
