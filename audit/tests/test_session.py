"""An audit's surroundings: the canary, the epochs, the messages, the claim against evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.data.label_table import LabelTable
from taciturn.privacy.events import Statement
from taciturn.rng import KeyedEntropy
from taciturn_audit.attacks.base import LabelGuess
from taciturn_audit.evidence import evidence


def audited(**options: Any) -> dict[str, Any]:
    base = {"dataset": "breast-cancer", "scheme": "clear", "seed": 1, "epochs": 2, "seat": "alice"}
    return taciturn.audit(**{**base, **options}).to_dict()


@pytest.fixture(scope="module")
def noisy() -> dict[str, Any]:
    return audited(mechanism="add", epsilon=10.0)


def test_the_canary_the_epochs_and_the_evidence_stand_beside_the_run(noisy):
    likelihood = next(a for a in noisy["canary"]["attacks"] if a["name"] == "likelihood")
    assert likelihood["accuracy"] > 0.95
    assert not noisy["permute_labels"]
    model = next(c for c in noisy["canary"]["controls"] if c["name"] == "model-only")
    assert model["accuracy"] < 0.75
    received = {
        row["epochs"]: next(a["accuracy"] for a in row["attacks"] if a["name"] == "likelihood")
        for row in noisy["over_epochs"]
    }
    assert [*received] == [1, 2]
    assert received[1] <= received[2]
    # A true claim is not refuted.
    proof = noisy["evidence"]
    assert proof["claim"] == noisy["ledger"]["label_epsilon_total"] == 10.0
    assert 2.0 < proof["lower_bound"] <= 10.0
    assert proof["violated"] is False


def test_every_message_to_alice_is_listed(noisy):
    by_message = {entry["message"]: entry for entry in noisy["messages"]}
    assert set(by_message) == {"Hello", "BatchCommitment", "BatchShare", "NoisyResidues"}
    assert by_message["NoisyResidues"]["count"] == noisy["iterations"]
    assert sum(entry["bytes"] for entry in noisy["messages"]) == noisy["bytes_to_alice"]
    assert not any(entry["encrypted"] for entry in noisy["messages"])


@pytest.mark.slow  # some seconds
def test_a_message_is_encrypted_only_under_a_scheme_that_protects():
    plain = audited(mechanism="none", canary=False, epochs=1)
    hidden = audited(mechanism="none", canary=False, epochs=1, scheme="bfv")
    for record, expected in ((plain, (False, None)), (hidden, (True, "bfv"))):
        entry = next(e for e in record["messages"] if e["message"] == "EncryptedResidues")
        assert (entry["encrypted"], entry["scheme"]) == expected
        assert entry["allows"]


@pytest.mark.slow  # some seconds
def test_hidden_batches_are_judged_too():
    membership = audited(mechanism="hybrid", epochs=1, canary=False)["membership"]
    assert membership["precision"] > membership["base_rate"]


def test_a_recording_has_its_surroundings_too(tmp_path):
    path = tmp_path / "run.transcript"
    taciturn.train(
        dataset="breast-cancer", mechanism="add", epsilon=1.0, seed=1, epochs=2, record=path
    )
    record = taciturn.audit(transcript=path).to_dict()
    assert record["canary"] is not None
    assert record["evidence"]["claim"] == 1.0
    assert record["membership"] is None


# --- evidence ----------------------------------------------------------------------------------


def statement(total: float) -> Statement:
    return Statement(1.0, 1.0, 0.5, 1, total, total, total, 0.0, "test")


def guess(labels: LabelTable, right: float, entropy: KeyedEntropy) -> LabelGuess:
    """A guess that is right with a probability."""
    flips = entropy.uniform((labels.rows,)) >= right
    signs = np.where(labels.values == 1, 1.0, -1.0) * np.where(flips, -1.0, 1.0)
    everywhere = np.ones(labels.rows, dtype=bool)
    return LabelGuess(signs, everywhere, ~everywhere)


def test_a_claim_that_is_too_low_is_refuted():
    entropy = KeyedEntropy.from_seed(3)
    labels = LabelTable.from_data(np.arange(1000) % 2).with_random_labels(entropy.fork("labels"))
    proof = evidence({"a": guess(labels, 0.95, entropy)}, labels, statement(0.5))
    assert proof is not None
    assert proof.violated
    assert proof.lower_bound > 2.0


def test_an_attack_without_signal_is_no_evidence():
    labels = LabelTable.from_data([0, 1])
    nothing = np.zeros(2, dtype=bool)
    assert evidence({"a": LabelGuess(np.zeros(2), nothing, nothing)}, labels, statement(1)) is None
