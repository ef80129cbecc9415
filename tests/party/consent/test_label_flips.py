"""The store of flipped labels: one answer per row, kept, added to, and never given twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taciturn.data.label_table import LabelTable
from taciturn.errors import PrivacyError
from taciturn.party.config import PartyConfig
from taciturn.party.consent.label_budget import key_name
from taciturn.party.consent.label_flips import LabelFlipStore
from taciturn.party.consent.store import ConsentStore
from taciturn.privacy.events import LabelResponse
from taciturn.privacy.label_response import FlippedLabels
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.bob.inputs import released_labels
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.party.sides import write_config

ROWS = 400
KEY = bytes(range(32))


def method(epsilon: float = 1.0) -> FlippedLabels:
    return FlippedLabels(LabelResponse(epsilon), Unprotected())


def entropy(seed: int) -> KeyedEntropy:
    return KeyedEntropy.from_seed(seed)


@pytest.fixture
def labels() -> LabelTable:
    return LabelTable.from_data(np.arange(ROWS) % 2, ids=[f"row {place}" for place in range(ROWS)])


@pytest.fixture
def flips(tmp_path: Path) -> LabelFlipStore:
    store = ConsentStore(tmp_path / "bob.consent.sqlite")
    return LabelFlipStore(store, method(), "default", KEY)


def test_the_first_answer_is_the_mechanisms_and_later_coins_do_not_change_it(flips, labels):
    first = flips.release(labels, entropy(1))
    assert first == method().respond(labels, entropy(1))
    assert first != labels
    again = replace(flips).release(labels, entropy(2))
    assert again == first
    assert method().respond(labels, entropy(2)) != first
    assert flips.rows() == ROWS


def test_rows_are_added_and_known_ones_keep_their_answer_in_any_order(flips, labels):
    part = labels.take(np.arange(100))
    first = flips.release(part, entropy(1))
    order = np.arange(ROWS)[::-1]
    whole = flips.release(labels.take(order), entropy(2))
    assert whole.take(np.arange(ROWS - 100, ROWS)).take(np.arange(100)[::-1]) == first
    assert flips.rows() == ROWS
    assert flips.release(part, entropy(3)) == first
    assert flips.rows() == ROWS


def test_a_second_target_of_the_same_people_is_refused_by_name(flips, labels):
    """It would be given the answers of the first, and nobody would notice."""
    first = flips.release(labels, entropy(1))
    second = replace(flips, column="churn")
    with refused(PrivacyError, names=("'default'", "'churn'")):
        second.release(labels, entropy(2))
    assert flips.recall(labels) == first
    # The way out: a set of its own, with a name of its own.
    other = replace(second, set_name="churn")
    assert other.release(labels, entropy(2)) != first
    assert other.name() != flips.name()
    assert flips.recall(labels) == first


@pytest.mark.parametrize("changed", [1, 7, ROWS])
def test_other_labels_under_the_same_name_are_refused_and_counted(flips, labels, changed):
    """One row slips through with a probability of 2^-16; the key is fixed, so it never comes up."""
    first = flips.release(labels, entropy(1))
    values = labels.values.copy()
    values[:changed] = 1 - values[:changed]
    with refused(PrivacyError, names=(f"{changed} of {ROWS}", "'default'")):
        flips.release(LabelTable(labels.ids, values), entropy(2))
    # Rows that are not among the changed ones have their answers, and so have all once put back.
    rest = np.arange(changed, ROWS)
    if len(rest):
        assert flips.release(labels.take(rest), entropy(3)) == first.take(rest)
    assert flips.release(labels, entropy(4)) == first


def test_the_store_tells_no_true_label_without_its_key(flips, labels):
    released = flips.release(labels, entropy(1))
    digests = flips.digests(labels)
    with flips.store.reading() as records:
        account = records.account("label-flips", flips.set_name)
        values = account.values(account.tags(labels.ids.series))
    assert values.tolist() == (1 + released.values.astype(int) + 2 * digests).tolist()
    other = replace(flips, key=bytes(32)).digests(labels)
    assert np.count_nonzero(digests == other) <= 1
    assert KEY.hex() not in repr(flips)
    assert repr(KEY) not in repr(flips)


def test_answers_under_another_key_are_refused_unless_that_key_is_accepted(labels, tmp_path):
    """Without its key nobody can tell whether the labels are those that it has answers for."""
    other, third = (bytes([number] * 32) for number in (0, 1))

    def opened(key: bytes, accepted: str | None = None) -> LabelFlipStore:
        name = {} if accepted is None else {"accept-flips-key": accepted}
        path = write_config(tmp_path, "bob", data={"label": "default"}, privacy=name)
        return LabelFlipStore.from_config(PartyConfig.read(path), method(), key)

    first = opened(KEY).release(labels, entropy(1))
    for accepted in (None, key_name(third), key_name(KEY)):
        with refused(PrivacyError, setting="accept_flips_key"):
            opened(other, accepted).release(labels, entropy(2))
    part = np.arange(100)
    assert opened(other, key_name(other)).release(labels.take(part), entropy(2)) == first.take(part)
    # From here on it is bound to that key, and needs no word.
    with refused(PrivacyError, setting="accept_flips_key"):
        opened(KEY).release(labels, entropy(3))
    # Rows that were not asked for since cannot be compared; their answers stand.
    changed = LabelTable(labels.ids, 1 - labels.values)
    with refused(PrivacyError, names="100 of 400"):
        opened(other).release(changed, entropy(3))
    assert opened(other).release(labels, entropy(3)) == first
    with refused(PrivacyError, names="400 of 400"):
        opened(other).release(changed, entropy(3))
    # Whoever looks at answers alone has no key.
    assert opened(b"").recall(labels) == first


def test_another_epsilon_is_refused(flips, labels):
    flips.release(labels, entropy(1))
    with refused(PrivacyError, names=(1, 2)):
        replace(flips, flips=method(2.0)).release(labels, entropy(2))


def test_a_training_is_charged_once_whichever_answers_it_uses(flips, labels):
    for seed in (1, 2):
        ledger = Ledger(ROWS, "test")
        released = released_labels(labels, method(), ledger, entropy(seed), flips.release)
        assert ledger.statement().label_epsilon_total == 1.0
        assert released == flips.release(labels, entropy(99))


def test_a_set_has_a_name_of_its_own(flips, labels):
    assert flips.name() == ""
    flips.release(labels, entropy(1))
    name = flips.name()
    assert len(name) == 16
    flips.release(labels, entropy(2))
    assert flips.name() == name
    # Where the file was lost another one has another name.
    for file in (flips.store.path, flips.store.generation_file):
        file.unlink()
    flips.release(labels, entropy(4))
    assert flips.name() != name
