"""Alice's view: what she saw while it happened, from the recording alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from audit.tests.views.conftest import Run

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import (
    Capacity,
    EncryptedAnswer,
    EncryptedVector,
    PreparedMatrix,
    PublicKey,
    Wrapping,
)
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.crypto.paillier import PaillierScheme
from taciturn.engine.pair import run_pair
from taciturn.engine.transcript import Header, Recorder, Transcript, TranscriptFile, replay
from taciturn.errors import CryptoError, LocalProtocolError, TranscriptError
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import alice_program as whole_session
from taciturn.protocol.alice.train_revealed import train
from taciturn.protocol.codec import kind_of
from taciturn.protocol.events import Event
from taciturn.protocol.messages import RevealedGradient
from taciturn.protocol.observations import GradientSeen, Observation
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn_audit.views.alice_view import AliceView
from taciturn_audit.views.recall import RecallScheme
from tests.expected import refused
from tests.protocol.parties import (
    ALICE,
    Tables,
    agreement,
    alice_program,
    bob_program,
    same,
)


def of(run: Run, transcript: Transcript) -> AliceView:
    return AliceView.from_transcript(
        transcript, run.outcome.data.alice_train, run.outcome.data.alice_test
    )


def test_a_view_of_a_file_is_the_view_of_the_run(run, tmp_path):
    with TranscriptFile(tmp_path / "t", run.transcript.header) as file:
        for record in run.transcript.records:
            file(*record)
    loaded = of(run, Transcript.load(tmp_path / "t"))
    assert same(loaded.observations.weights, run.outcome.alice_weights)
    assert loaded.agreement == run.outcome.terms.agreement


# --- what does not belong together ---------------------------------------------------------------


def changed(run: Run, **values: object) -> Transcript:
    header: Header = {**run.transcript.header, **values}
    return replace(run.transcript, header=header)


def test_another_table_is_refused(run):
    table = run.outcome.data.alice_train
    values = table.values.copy()
    values[0, 0] += 1e-9
    others = [
        run.outcome.data.alice_test,
        run.outcome.data.bob_train,
        table.select(table.columns[::-1]),
        table.take(np.arange(table.rows)[::-1]),
        type(table)(table.ids, table.columns, values),
    ]
    for other in others:
        with refused(TranscriptError):
            AliceView.from_transcript(run.transcript, other)


@pytest.mark.parametrize("key", ["agreement", "coins", "features_digest"])
def test_a_header_that_lacks_a_part_is_refused(run, key):
    header = {name: value for name, value in run.transcript.header.items() if name != key}
    with refused(TranscriptError):
        AliceView.from_transcript(
            replace(run.transcript, header=header), run.outcome.data.alice_train
        )


WRONG_COINS: list[object] = [{}, {"bob": "00" * 32}, {"alice": None}, {"alice": "zz"}, "text", None]
WRONG_COINS += [{"alice": "00" * size} for size in (0, 16, 31, 33)]
WRONG_AGREEMENTS: list[object] = ["text", None, [], {}, {"epochs": 1}, {"unknown": 1}]


@pytest.mark.parametrize(
    "part",
    [
        *({"coins": entropy} for entropy in WRONG_COINS),
        *({"agreement": agreed} for agreed in WRONG_AGREEMENTS),
    ],
)
def test_a_header_with_a_wrong_part_is_refused(run, part):
    with refused(TranscriptError):
        AliceView.from_transcript(changed(run, **part), run.outcome.data.alice_train)


def test_a_recording_that_was_cut_has_no_observations(run):
    records = run.transcript.records
    kinds = [kind_of(frame) for _, frame in records]
    last = len(kinds) - 1 - kinds[::-1].index(RevealedGradient)
    view = of(run, replace(run.transcript, records=records[:last]))
    with refused(TranscriptError, names="RevealedGradient"):
        view.observations  # noqa: B018


def test_other_coins_cannot_unmask(run):
    other = changed(run, coins={"alice": "11" * 32})
    view = of(run, other)
    with pytest.raises((TranscriptError, CryptoError)):
        view.observations  # noqa: B018


# --- what she multiplied with -----------------------------------------------------------------


class WitnessKey:
    """The real key, which also keeps the matrices it was given."""

    def __init__(self, key: PublicKey, matrices: list[IntArray | FloatArray]) -> None:
        self._key = key
        self._matrices = matrices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._key, name)

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        self._matrices.append(matrix.copy())
        return self._key.prepare(matrix)


@dataclass(frozen=True)
class WitnessScheme(ClearScheme):
    matrices: list[IntArray | FloatArray] = field(default_factory=list)

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> Any:
        return WitnessKey(super().read_public(data, bits, capacity), self.matrices)


def test_encoded_is_what_was_multiplied(run):
    view, witness = run.view, WitnessScheme()
    terms = Terms(view.agreement, witness)
    inputs = AliceInputs(view.features, terms, view.entropy, held_out=view.held_out)
    replay(whole_session(inputs), view.conversation)
    gradients = view.observations.of_kind(GradientSeen)
    assert len(witness.matrices) == len(gradients)
    for matrix, seen in zip(witness.matrices, gradients, strict=True):
        assert np.array_equal(view.encoded(seen.rows).T, matrix)


# --- the scheme that skips the work ---------------------------------------------------------------


@pytest.mark.parametrize(
    "scheme", [PaillierScheme(key_bits=(512,)), BfvScheme()], ids=["paillier", "bfv"]
)
def test_recall_gives_the_same_view(scheme):
    """The product is skipped under encryption too (Paillier's 512 bits protect nothing)."""
    tables = Tables.make(rows=8, alice=5, bob=1)
    agreed = agreement(epochs=1, scheme=scheme.name, key_bits=scheme.key_bits[0])
    live: list[Event] = []
    again: list[Event] = []
    recorder = Recorder()
    trained, _ = run_pair(
        alice_program(tables, agreed, scheme),
        bob_program(tables, agreed, scheme),
        tap=recorder,
        observe=live.append,
    )
    recording = recorder.finish({})
    replayed = replay(
        train(AliceInputs(tables.alice, Terms(agreed, RecallScheme(scheme)), ALICE)),
        recording,
        verify=False,
        observe=again.append,
    )
    assert same(replayed, trained)
    again = [event for event in again if isinstance(event, Observation)]
    seen = [event for event in live if isinstance(event, GradientSeen)]
    assert len(seen) == 2
    assert all(same(one, two) for one, two in zip(again, seen, strict=True))
    # SEAL draws for itself: under bfv a second run gives the same weights, not the same bytes.
    exactly = not isinstance(scheme, BfvScheme)
    program = alice_program(tables, agreed, scheme)
    assert same(replay(program, recording, verify=exactly), trained)


def test_recall_refuses_a_bad_key_as_the_real_scheme_does_and_holds_no_secret_one():
    scheme, capacity = RecallScheme(ClearScheme()), Capacity(8, 8, 2)
    with refused(CryptoError):
        scheme.read_public(b"key", 0, capacity)
    with refused(LocalProtocolError):
        scheme.read_secret(b"", 0, capacity)


def test_a_key_of_alices_own_neither_encrypts_nor_decrypts_in_a_view():
    entropy, ring = KeyedEntropy.from_seed(1), Wrapping.with_modulus(8, 4, 2)
    key = RecallScheme(ClearScheme()).generate(0, ring, entropy)
    assert key.encrypt(np.array([3, 4]), 1, entropy) == EncryptedVector(b"", 2)
    assert key.decrypt_shares(EncryptedAnswer(b"whatever", 3), 2).tolist() == [0, 0, 0]


def test_a_view_holds_neither_the_header_nor_the_footer_of_its_recording(run):
    """They tell how the run was made (the seed gives Bob's key) and what it gave."""
    view = run.view
    assert view.conversation.header == {}
    assert view.conversation.footer == {}
    assert view.conversation.records == run.transcript.records
    assert "seed" not in view.agreement.model_dump()
