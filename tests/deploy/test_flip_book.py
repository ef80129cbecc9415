"""The flip book: one answer per row, kept, added to, and never given twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from taciturn.data import LabelTable
from taciturn.deploy import FlipBook, LabelBinding, PartyConfig
from taciturn.deploy import open_flip_book as flip_book
from taciturn.errors import PrivacyError
from taciturn.privacy import FlippedLabels, LabelResponse, Ledger, Unprotected
from taciturn.protocol.bob import released_labels
from taciturn.rng import KeyedEntropy
from tests.deploy.sides import write_config
from tests.expected import refused

ROWS = 400
BINDING = LabelBinding("default", bytes(range(32)))
NO_KEY = LabelBinding("default", b"")


def method(epsilon: float = 1.0) -> FlippedLabels:
    return FlippedLabels(LabelResponse(epsilon), Unprotected())


def coins(seed: int) -> KeyedEntropy:
    return KeyedEntropy.from_seed(seed)


@pytest.fixture
def labels() -> LabelTable:
    return LabelTable.of(np.arange(ROWS) % 2, ids=[f"row {place}" for place in range(ROWS)])


@pytest.fixture
def book(tmp_path) -> FlipBook:
    return FlipBook(tmp_path / "flips.json", method(), BINDING)


def of_version(book: FlipBook, version: int, *lacking: str) -> None:
    """Writes the book as an earlier version did, without some entries."""
    record = {**json.loads(book.path.read_text()), "version": version}
    for name in (*lacking, "digest"):
        del record[name]
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    record["digest"] = hashlib.sha256(text.encode()).hexdigest()
    book.path.write_text(json.dumps(record))


def test_the_first_answer_is_the_mechanisms_and_later_coins_do_not_change_it(book, labels):
    first = book.release(labels, coins(1))
    assert first == method().respond(labels, coins(1))
    assert first != labels
    again = FlipBook(book.path, method(), BINDING).release(labels, coins(2))
    assert again == first
    assert method().respond(labels, coins(2)) != first
    assert book.rows() == ROWS


def test_rows_are_added_and_known_ones_keep_their_answer_in_any_order(book, labels):
    part = labels.take(np.arange(100))
    first = book.release(part, coins(1))
    before = book.path.read_bytes()
    order = np.arange(ROWS)[::-1]
    whole = book.release(labels.take(order), coins(2))
    assert whole.take(np.arange(ROWS - 100, ROWS)).take(np.arange(100)[::-1]) == first
    assert book.rows() == ROWS
    assert book.path.read_bytes() != before
    # Asking for fewer writes nothing.
    written = book.path.stat().st_mtime_ns
    assert book.release(part, coins(3)) == first
    assert book.path.stat().st_mtime_ns == written


def test_a_second_target_of_the_same_people_is_refused_by_name(book, labels):
    """It would be given the answers of the first, and nobody would notice."""
    book.release(labels, coins(1))
    before = book.path.read_bytes()
    second = FlipBook(book.path, method(), LabelBinding("churn", BINDING.key))
    with refused(PrivacyError, names=("'default'", "'churn'")):
        second.release(labels, coins(2))
    assert book.path.read_bytes() == before


@pytest.mark.parametrize("changed", [1, 7, ROWS])
def test_other_labels_under_the_same_name_are_refused_and_counted(book, labels, changed):
    """One row slips through with a probability of 2^-16; the key is fixed, so it never comes up."""
    first = book.release(labels, coins(1))
    values = labels.values.copy()
    values[:changed] = 1 - values[:changed]
    with refused(PrivacyError, names=(f"{changed} of {ROWS}", "'default'")):
        book.release(LabelTable(labels.ids, values), coins(2))
    # Rows that are not among the changed ones have their answers, and so have all once put back.
    rest = np.arange(changed, ROWS)
    if len(rest):
        assert book.release(labels.take(rest), coins(3)) == first.take(rest)
    assert book.release(labels, coins(4)) == first


def test_the_book_tells_no_true_label_without_its_key(book, labels):
    book.release(labels, coins(1))
    other = LabelBinding("default", bytes(32))
    record = json.loads(book.path.read_text())
    tags = [record["tags"][at : at + 4] for at in range(0, 4 * ROWS, 4)]
    assert tags == BINDING.tags(labels)
    assert sum(one == two for one, two in zip(tags, other.tags(labels), strict=True)) <= 1
    assert repr(BINDING.key) not in repr(BINDING)


def test_a_book_under_another_key_is_refused_unless_that_key_is_accepted(book, labels, tmp_path):
    """Without its key nobody can tell whether the labels are those that it has answers for."""
    first = book.release(labels, coins(1))
    before = book.path.read_bytes()
    other, third = (LabelBinding("default", bytes([number] * 32)) for number in (0, 1))

    def replaced(accepted: str | None) -> FlipBook:
        name = {} if accepted is None else {"accept-flips-key": accepted}
        path = write_config(tmp_path, "bob", data={"label": "default"}, privacy=name)
        config = PartyConfig.read(path)
        assert config.path(config.privacy.flips) == tmp_path / "bob.flips.json"
        return flip_book(config, method(), other.key)

    book.path.rename(tmp_path / "bob.flips.json")
    for accepted in (None, third.key_name, BINDING.key_name):
        with refused(PrivacyError, setting="accept_flips_key"):
            replaced(accepted).release(labels, coins(2))
        assert (tmp_path / "bob.flips.json").read_bytes() == before
    assert replaced(other.key_name).release(labels, coins(2)) == first
    # From here on it is bound to that key, and needs no word.
    assert replaced(None).release(labels, coins(3)) == first
    with refused(PrivacyError, names="400 of 400"):
        replaced(None).release(LabelTable(labels.ids, 1 - labels.values), coins(3))
    # Whoever looks at answers alone has no key.
    assert replace(book, path=tmp_path / "bob.flips.json", binding=NO_KEY).recall(labels) == first


def test_a_book_of_version_1_is_bound_when_it_is_first_used(book, labels):
    first = book.release(labels, coins(1))
    of_version(book, 1, "column", "key", "tags")
    part = labels.take(np.arange(100))
    assert book.release(part, coins(2)) == first.take(np.arange(100))
    with refused(PrivacyError, names="100 of 400"):
        book.release(LabelTable(labels.ids, 1 - labels.values), coins(3))


def test_the_file_holds_released_labels_only(book, labels):
    released = book.release(labels, coins(1))
    content = json.loads(book.path.read_text())
    kept = {"column", "epsilon", "ids", "key", "labels", "name", "tags"}
    assert set(content) == {"digest", "format", "version"} | kept
    assert content["labels"] == "".join(map(str, released.values.tolist()))


def test_another_epsilon_is_refused(book, labels):
    book.release(labels, coins(1))
    with refused(PrivacyError, names=(1, 2)):
        FlipBook(book.path, method(2.0), BINDING).release(labels, coins(2))


def test_a_training_is_charged_once_whichever_answers_it_uses(book, labels):
    for seed in (1, 2):
        ledger = Ledger(ROWS, "test")
        released = released_labels(labels, method(), ledger, coins(seed), book.release)
        assert ledger.statement().label_epsilon_total == 1.0
        assert released == book.release(labels, coins(99))


def test_a_book_has_a_name_of_its_own_and_one_that_had_none_is_given_one(book, labels):
    assert book.name() == ""
    book.release(labels, coins(1))
    name = book.name()
    assert len(name) == 16
    book.release(labels, coins(2))
    assert book.name() == name
    of_version(book, 2, "name")
    assert book.name() == ""
    book.release(labels, coins(3))
    assert len(book.name()) == 16
    # Another book's is another one.
    book.path.unlink()
    book.release(labels, coins(4))
    assert book.name() != name
