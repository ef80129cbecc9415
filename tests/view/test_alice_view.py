"""Alice's view: what she saw while it happened, from the recording alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto import (
    DEFAULT_TABLE_MEMORY,
    Capacity,
    ClearScheme,
    EncryptedAnswer,
    EncryptedVector,
    Mask,
    PaillierScheme,
    PreparedMatrix,
    PublicKey,
    SecretKey,
    Table,
    TableSize,
    Wrapping,
)
from taciturn.crypto.bfv import BfvScheme
from taciturn.engine import Header, Recorder, Transcript, TranscriptFile, run_pair
from taciturn.engine import replay_program as replay
from taciturn.errors import CryptoError, LocalProtocolError, TranscriptError
from taciturn.protocol import Event, GradientSeen, Observation, Signal, Terms
from taciturn.protocol.alice import AliceInputs, train
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.view import AliceView, RecallKey, RecallScheme
from tests.protocol.parties import (
    ALICE,
    Tables,
    agreement,
    alice_program,
    bob_program,
    same,
)
from tests.view.conftest import Run


def test_observations_are_those_of_the_live_run(run):
    observations = run.view.observations
    assert len(observations.events) == len(run.live) == run.outcome.result.iterations
    assert all(same(now, then) for now, then in zip(observations.events, run.live, strict=True))
    assert same(observations.weights, run.outcome.alice_weights)


def test_the_fast_replay_equals_the_full_verifying_one(run):
    view = run.view
    seen: list[Event] = []
    terms = Terms(view.agreement, ClearScheme())
    trained = replay(
        train(AliceInputs(view.features, terms, view.coins)),
        view.conversation,
        verify=True,
        observe=seen.append,
    )
    fast = view.observations
    assert same(trained.weights, fast.weights)
    full = [event for event in seen if isinstance(event, Observation)]
    assert all(same(one, two) for one, two in zip(full, fast.events, strict=True))


def test_observations_are_computed_once(run):
    view = run.view
    assert view.observations is view.observations


def test_a_view_of_a_file_is_the_view_of_the_run(run, tmp_path):
    with TranscriptFile(tmp_path / "t", run.transcript.header) as file:
        for record in run.transcript.records:
            file(*record)
    loaded = AliceView.of(Transcript.load(tmp_path / "t"), run.outcome.data.alice_train)
    assert same(loaded.observations.weights, run.outcome.alice_weights)
    assert loaded.agreement == run.outcome.terms.agreement


def test_she_has_her_features_her_weights_and_the_gradients(run):
    assert run.view.signals == {Signal.FEATURES, Signal.WEIGHTS, Signal.GRADIENTS}


def test_a_view_shows_no_values(run):
    assert "array" not in repr(run.view)
    assert run.transcript.header["coins"]["alice"] not in repr(run.view)


# --- what does not belong together ---------------------------------------------------------------


def changed(run: Run, **values: object) -> Transcript:
    header: Header = {**run.transcript.header, **values}
    return replace(run.transcript, header=header)


def without(run: Run, key: str) -> Transcript:
    header = {name: value for name, value in run.transcript.header.items() if name != key}
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
        with pytest.raises(TranscriptError, match="another table of features"):
            AliceView.of(run.transcript, other)


@pytest.mark.parametrize("key", ["agreement", "coins", "features_digest"])
def test_a_header_that_lacks_a_part_is_refused(run, key):
    with pytest.raises(TranscriptError, match="header is not that of a recorded run"):
        AliceView.of(without(run, key), run.outcome.data.alice_train)


@pytest.mark.parametrize(
    "coins",
    [{}, {"bob": "00" * 32}, {"alice": None}, {"alice": "zz"}, "text", None],
    ids=["none", "bobs", "null", "not-hex", "text", "absent"],
)
def test_a_header_without_alices_coins_is_refused(run, coins):
    with pytest.raises(TranscriptError, match="header is not that of a recorded run"):
        AliceView.of(changed(run, coins=coins), run.outcome.data.alice_train)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_coins_of_another_length_are_refused(run, size):
    with pytest.raises(TranscriptError):
        AliceView.of(changed(run, coins={"alice": "00" * size}), run.outcome.data.alice_train)


@pytest.mark.parametrize("agreed", ["text", None, [], {}, {"epochs": 1}, {"unknown": 1}])
def test_a_header_whose_agreement_is_none_is_refused(run, agreed):
    with pytest.raises(TranscriptError):
        AliceView.of(changed(run, agreement=agreed), run.outcome.data.alice_train)


def test_a_recording_that_was_cut_has_no_observations(run):
    cut = replace(run.transcript, records=run.transcript.records[:-1])
    view = AliceView.of(cut, run.outcome.data.alice_train)
    with pytest.raises(TranscriptError, match="ends where RevealedGradient was expected"):
        view.observations  # noqa: B018


def test_other_coins_cannot_unmask(run):
    other = changed(run, coins={"alice": "11" * 32})
    view = AliceView.of(other, run.outcome.data.alice_train)
    with pytest.raises((TranscriptError, CryptoError)):
        view.observations  # noqa: B018


# --- what she multiplied with -----------------------------------------------------------------


class WitnessKey:
    """The real key, which also keeps the matrices it was given."""

    def __init__(self, key: PublicKey, matrices: list[IntArray | FloatArray]) -> None:
        self._key = key
        self._matrices = matrices
        self.capacity = key.capacity
        self.modulus = key.modulus

    def to_bytes(self) -> bytes:
        return self._key.to_bytes()

    def draw_mask(self, length: int, entropy: Entropy) -> Mask:
        return self._key.draw_mask(length, entropy)

    def mask_of(self, values: IntArray, entropy: Entropy) -> Mask:
        return self._key.mask_of(values, entropy)

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        self._matrices.append(matrix.copy())
        return self._key.prepare(matrix)

    def stock(self, prepared: PreparedMatrix, mask: Mask, entropy: Entropy) -> None:
        self._key.stock(prepared, mask, entropy)

    def masked_product(
        self, prepared: PreparedMatrix, vector: EncryptedVector, mask: Mask, entropy: Entropy
    ) -> EncryptedAnswer:
        return self._key.masked_product(prepared, vector, mask, entropy)

    def unmask(self, masked: tuple[int, ...], mask: Mask) -> IntArray:
        return self._key.unmask(masked, mask)

    def table(self, whole: IntArray, memory: int = DEFAULT_TABLE_MEMORY) -> Table:
        self._matrices.append(whole.copy())
        return self._key.table(whole, memory)


class WitnessScheme:
    """The clear scheme with a witness."""

    name, protects, key_bits = "clear", False, (0,)
    whole_tables = True

    def __init__(self) -> None:
        self.matrices: list[IntArray | FloatArray] = []

    @property
    def number_by_number(self) -> None:
        return None

    def row_parts(self, size: TableSize) -> list[slice]:
        return ClearScheme().row_parts(size)

    def check_tables(self, capacity: Wrapping, size: TableSize, products: int) -> float:
        return ClearScheme().check_tables(capacity, size, products)

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> SecretKey:
        return ClearScheme().generate(bits, capacity, entropy)

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> PublicKey:
        return WitnessKey(ClearScheme().read_public(data, bits, capacity), self.matrices)

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> SecretKey:
        return ClearScheme().read_secret(data, bits, capacity)


def test_encoded_is_what_was_multiplied(run):
    view, witness = run.view, WitnessScheme()
    replay(
        train(AliceInputs(view.features, Terms(view.agreement, witness), view.coins)),
        view.conversation,
    )
    gradients = view.observations.of(GradientSeen)
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


def test_recall_says_of_itself_what_the_real_scheme_says():
    scheme = RecallScheme(ClearScheme())
    assert (scheme.name, scheme.protects, scheme.key_bits) == ("clear", False, (0,))
    capacity = Capacity(8, 8, 2)
    key, real = scheme.read_public(b"", 0, capacity), ClearScheme().read_public(b"", 0, capacity)
    assert isinstance(key, RecallKey)
    assert (key.capacity, key.modulus) == (real.capacity, real.modulus)
    assert key.to_bytes() == real.to_bytes()
    coins = KeyedEntropy.from_seed(1)
    assert key.draw_mask(3, coins.fork("m")) == real.draw_mask(3, coins.fork("m"))


def test_recall_refuses_a_bad_key_as_the_real_scheme_does():
    with pytest.raises(CryptoError, match="public key"):
        RecallScheme(ClearScheme()).read_public(b"key", 0, Capacity(8, 8, 2))


def test_a_key_of_alices_own_neither_encrypts_nor_decrypts_in_a_view():
    coins, ring = KeyedEntropy.from_seed(1), Wrapping.of(8, 4, 2)
    key = RecallScheme(ClearScheme()).generate(0, ring, coins)
    assert key.encrypt(np.array([3, 4]), 1, coins) == EncryptedVector(b"", 2)
    assert key.decrypt_shares(EncryptedAnswer(b"whatever", 3), 2).tolist() == [0, 0, 0]


def test_a_view_holds_no_secret_key():
    with pytest.raises(LocalProtocolError, match="holds no secret key"):
        RecallScheme(ClearScheme()).read_secret(b"", 0, Capacity(8, 8, 2))


def test_a_view_holds_neither_the_header_nor_the_footer_of_its_recording(run):
    """They tell how the run was made (the seed gives Bob's key) and what it gave."""
    view = run.view
    assert view.conversation.header == {}
    assert view.conversation.footer == {}
    assert view.conversation.records == run.transcript.records
    assert "seed" not in view.agreement.model_dump()
