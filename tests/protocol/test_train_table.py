"""Newton between two programs: the optimum of the open, nothing more in clear, the same from any
boundary.

Weights are compared with the same search in clear (``fit_in_clear``), with the optimum, and with
scikit-learn; what separates them is fixed point: a whitened table of ``feature_bits`` digits, and
rows' numbers that move a score by less than 2^-10 (``Scales.of_table``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from taciturn.crypto import (
    ClearScheme,
    EncryptedAnswer,
    EncryptedVector,
    PaillierScheme,
    Scheme,
    TableSize,
)
from taciturn.crypto.bfv import BfvScheme, LocalEngine
from taciturn.data import LabelTable
from taciturn.engine import Pulse, Transcript, run_pair
from taciturn.engine import replay_program as replay
from taciturn.errors import BudgetExceeded, ConfigError, CryptoError, RemoteProtocolError
from taciturn.numerics import (
    BoundedTable,
    DescentSolver,
    SubspaceSolver,
    Whitening,
    evaluate,
    fit_in_clear,
    of_labels,
    optimum,
    penalised_loss,
)
from taciturn.privacy import (
    EncryptedMechanism,
    Ledger,
    Mechanism,
    ModelRelease,
    NoisyModel,
    Released,
)
from taciturn.privacy import mechanism as mechanism_of
from taciturn.protocol import (
    Advance,
    BatchCommitment,
    BatchShare,
    BobTrained,
    Boundary,
    EncryptedResidues,
    EpochScores,
    Event,
    HeldOut,
    HeldOutSeen,
    Hello,
    KeyOffer,
    MaskedGradient,
    Message,
    MomentsSeen,
    Observation,
    PartDone,
    PartialScores,
    Program,
    RevealedGradient,
    RevealedShare,
    SealedGradient,
    SealedResidues,
    SealedScores,
    SealedWeights,
    ShareRevealed,
    Terms,
    Trained,
    TrainingState,
    WeightShare,
    decode,
    encode,
    field_codecs,
    kind_of,
    model_release_of,
    whitened_rows,
)
from taciturn.protocol.alice import TRAININGS as ALICES
from taciturn.protocol.alice import AliceInputs, predict_sealed_rows
from taciturn.protocol.bob import TRAININGS as BOBS
from taciturn.protocol.bob import BobInputs, released_labels
from taciturn.protocol.bob import predict_sealed_rows as bob_predict_predict
from taciturn.settings import Agreement
from taciturn.view import RecallScheme
from tests.protocol.parties import ALICE, BOB, NOISE, NOISE_KEY, ByHand, Tables, agreement, same

CLEAR, BFV = ClearScheme(), BfvScheme()
ROWS, PASSES = 40, 6
MECHANISMS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "sealed": {"mechanism": "sealed"},
    "label-rr over none": {"mechanism": "label-rr", "epsilon": 1.0, "over": "none"},
    "label-rr over sealed": {"mechanism": "label-rr", "epsilon": 1.0, "over": "sealed"},
}
SHARED = ("sealed", "label-rr over sealed")
SPLITS = {
    "bob has columns": Tables.make(rows=ROWS, alice=3, bob=2, intercept=True),
    "bob has an intercept": Tables.make(rows=ROWS, alice=4, intercept=True),
    "bob has nothing": Tables.make(rows=ROWS, alice=4),
}
USUAL = SPLITS["bob has columns"]


def newton(mechanism: str = "sealed", scheme: Scheme = CLEAR, **changes: Any) -> Agreement:
    base = {
        "solver": "newton",
        "epochs": PASSES,
        "batch_size": ROWS,
        "learning_rate": 1.0,
        "l2": 0.05,
        "scheme": scheme.name,
        "key_bits": scheme.key_bits[0],
    }
    return agreement(**{**base, **MECHANISMS[mechanism], **changes})


@dataclass(frozen=True)
class Session:
    """Both programs with their inputs, and all that they said and reported."""

    tables: Tables
    agreed: Agreement
    labels: LabelTable
    method: Mechanism
    ledger: Ledger
    alice: Trained
    bob: BobTrained
    frames: list[tuple[str, bytes]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def said_by(self, role: str) -> list[Message]:
        return [decode(frame) for sender, frame in self.frames if sender == role]

    def seen(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def likelihood(self) -> Callable[..., Any]:
        assert isinstance(self.method, EncryptedMechanism)
        return of_labels(self.labels.values, self.method.likelihood)

    @property
    def alices(self) -> np.ndarray:
        """Her weights in her own columns, whoever has them."""
        if self.alice.share is None:
            return self.alice.weights
        hers, his = shared(self.alice), shared(self.bob)
        assert hers.whitening is not None
        return hers.whitening.weights(hers.scales.weights(hers.values + his.values))

    @property
    def weights(self) -> np.ndarray:
        return np.concatenate([self.alices, self.bob.weights])

    @property
    def gap(self) -> float:
        """How far the penalised loss lies above its minimum."""
        joined, l2, free = self.tables.joined, self.agreed.l2, self.tables.free
        best = optimum(joined, self.likelihood, l2, free)
        scores = joined @ self.weights
        return penalised_loss(scores, self.likelihood, self.weights, l2, free) - best.loss


def shared(end: Trained) -> WeightShare:
    assert end.share is not None
    return end.share


Pair = tuple[TrainingState | None, TrainingState | None]


def session(
    agreed: Agreement,
    tables: Tables = USUAL,
    scheme: Scheme = CLEAR,
    *,
    at: Pair = (None, None),
    held_out: Tables | None = None,
    budget: float | None = None,
) -> Session:
    terms, method = Terms(agreed, scheme), mechanism_of(agreed)
    ledger = Ledger(tables.labels.rows, method.assumption, budget)
    labels = released_labels(tables.labels, method, ledger, BOB)
    theirs = None if held_out is None else held_out.alice
    ours = None if held_out is None else HeldOut(held_out.bob, held_out.labels)
    frames: list[tuple[str, bytes]] = []
    events: list[Event] = []
    alice, bob = run_pair(
        ALICES[terms.conversation](AliceInputs(tables.alice, terms, ALICE, at[0], theirs)),
        BOBS[terms.conversation](
            BobInputs(tables.bob, labels, terms, method, ledger, BOB, at[1], ours)
        ),
        tap=lambda sender, frame: frames.append((sender, frame)),
        observe=events.append,
    )
    return Session(tables, agreed, labels, method, ledger, alice, bob, frames, events)


# --- the model ----------------------------------------------------------------------------------

TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "a strong penalty": {"l2": 2.0},
    "a weak penalty": {"l2": 0.001},
    "class weights": {"class_weight": (0.25, 1.0)},
    "one pass": {"epochs": 1},
    "fresh keys": {"fresh_keys": True},
}


def fits(mechanism: str, terms: str) -> bool:
    """Whether the mechanism takes these terms, and its search is comparable with them."""
    if mechanism.startswith("label-rr"):
        # Flipped labels are not weighted; and with little penalty their loss, which is not convex,
        # has minima so close to each other that a rounding decides which one is reached.
        return terms not in ("class weights", "a weak penalty")
    return mechanism in SHARED or terms != "fresh keys"


COMPARABLE = [(mechanism, terms) for mechanism in MECHANISMS for terms in TERMS]


@pytest.mark.sampled(19)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("mechanism", "terms"), [pair for pair in COMPARABLE if fits(*pair)])
def test_the_model_is_that_of_the_same_search_in_clear(mechanism, split, terms):
    run = session(newton(mechanism, **TERMS[terms]), SPLITS[split])
    tables, agreed = run.tables, run.agreed
    clear = fit_in_clear(
        tables.alice.values,
        tables.bob.values,
        run.likelihood,
        agreed.l2,
        tables.free,
        agreed.epochs,
    )
    apart, size = np.abs(tables.joined @ run.weights - clear.scores).max(), np.abs(clear.scores)
    assert apart < 2.0**-9 * max(1.0, size.max())
    assert size.max() > 0.1
    assert (run.alice.iterations, run.bob.iterations) == (agreed.epochs, agreed.epochs)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("mechanism", ["none", "sealed"])
def test_with_as_many_passes_as_columns_it_is_the_optimum(mechanism, split):
    run = session(newton(mechanism), SPLITS[split])
    assert 0 <= run.gap < 1e-6


@pytest.mark.parametrize("mechanism", ["none", "sealed"])
def test_it_is_scikit_learns_model(mechanism):
    """Its C is ``1 / (rows l2)``, and its intercept carries no penalty either."""
    run = session(newton(mechanism))
    values = run.tables.joined[:, :-1]
    model = LogisticRegression(C=1.0 / (ROWS * run.agreed.l2), tol=1e-12, max_iter=10_000)
    model.fit(values, run.tables.labels.values)
    expected = np.append(model.coef_[0], model.intercept_)
    assert np.abs(run.weights - expected).max() < 2e-3 * np.abs(expected).max()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.sampled(2)
def test_real_encryption_gives_the_clear_schemes_weights_bit_for_bit(mechanism):
    real, plain = (session(newton(mechanism, scheme), scheme=scheme) for scheme in (BFV, CLEAR))
    assert real.weights.tolist() == plain.weights.tolist()
    if mechanism in SHARED:
        # Alice's coins are the same too.
        assert shared(real.alice).values.tolist() == shared(plain.alice).values.tolist()


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 30),
    alice=st.integers(1, 5),
    bob=st.integers(0, 3),
    intercept=st.booleans(),
    l2=st.sampled_from([1e-3, 0.1, 3.0]),
    mechanism=st.sampled_from(["none", "sealed"]),
    seed=st.integers(0, 2**32),
)
def test_any_small_table_is_trained_to_its_optimum(
    rows, alice, bob, intercept, l2, mechanism, seed
):
    tables = Tables.make(rows=rows, alice=alice, bob=bob, intercept=intercept, seed=seed)
    run = session(newton(mechanism, epochs=alice + 3, batch_size=rows, l2=l2), tables)
    assert np.isfinite(run.weights).all()
    assert run.gap < 1e-4


@settings(max_examples=3, deadline=None)
@given(rows=st.integers(2, 60), alice=st.integers(1, 6), seed=st.integers(0, 2**32))
def test_any_small_table_under_real_keys_too(rows, alice, seed):
    tables = Tables.make(rows=rows, alice=alice, bob=1, seed=seed)
    agreed = partial(newton, epochs=2, batch_size=rows)
    real, plain = (session(agreed(scheme=scheme), tables, scheme) for scheme in (BFV, CLEAR))
    assert real.weights.tolist() == plain.weights.tolist()


# --- parts of rows ------------------------------------------------------------------------------

# Three tiles of rows, so that there are three parts of one tile.
MANY = Tables.make(rows=2 * 8192 + 100, alice=3, bob=2, intercept=True)
OTHERS = Tables.make(rows=8192 + 50, alice=3, bob=2, intercept=True, seed=9)


class TwoProcesses(LocalEngine):
    """A helper for whatever has two tiles."""

    def shares(self, work: int, least: int) -> int:
        return 2


def by_parts(scheme: Scheme, mechanism: str, **changes: Any) -> Session:
    agreed = newton(mechanism, scheme, epochs=2, evaluate="epoch", **changes)
    return session(agreed, MANY, scheme, held_out=OTHERS)


@pytest.fixture(scope="module")
def whole_tables() -> dict[str, Session]:
    """The same trainings with tables of one part."""
    return {mechanism: by_parts(CLEAR, mechanism) for mechanism in MECHANISMS}


PARTED: dict[str, Scheme] = {
    "clear": ClearScheme(part_tiles=1),
    "one process": BfvScheme(LocalEngine(cores=1), part_tiles=1),
    "two processes": BfvScheme(TwoProcesses(), part_tiles=2),
}


@pytest.mark.parametrize(
    ("mechanism", "scheme"),
    [
        *((mechanism, "clear") for mechanism in MECHANISMS),
        ("sealed", "one process"),
        ("sealed", "two processes"),
        # The same exchange as in sealed.
        pytest.param("none", "two processes", marks=pytest.mark.slow),
    ],
)
def test_parts_of_rows_and_processes_change_no_weight(whole_tables, mechanism, scheme):
    run, whole = by_parts(PARTED[scheme], mechanism), whole_tables[mechanism]
    assert run.weights.tolist() == whole.weights.tolist()
    losses = [[event.metrics.loss for event in one.seen(HeldOutSeen)] for one in (run, whole)]
    assert losses[0] == losses[1]
    size = TableSize(MANY.labels.rows, 3)
    parts, held_out = (
        len(PARTED[scheme].row_parts(TableSize(tables.labels.rows, 3))) for tables in (MANY, OTHERS)
    )
    assert (parts, held_out) == ((2, 1) if scheme == "two processes" else (3, 2))
    kinds = [type(decode(frame)).__name__ for _, frame in run.frames]
    if mechanism in SHARED:
        expected = {"SealedResidues": 3 * parts, "SealedScores": 2 * (parts + held_out)}
        assert kinds.count("SealedGradient") == 3
    else:
        expected = {
            "EncryptedResidues": 3 * parts,
            "PartialScores": 2 * parts,
            "EpochScores": 2 * held_out,
        }
        assert kinds.count("MaskedGradient") == 3
    assert {kind: kinds.count(kind) for kind in expected} == expected
    assert whole.seen(PartDone) == []
    assert PARTED[scheme].row_parts(size)[-1].stop == size.rows


@pytest.mark.parametrize("mechanism", ["sealed", "none"])
def test_a_conversation_in_parts_is_replayed_with_no_bob_present(mechanism):
    scheme = PARTED["clear"]
    run = by_parts(scheme, mechanism)
    recording = Transcript({}, tuple(run.frames))  # type: ignore[arg-type]
    for again in (scheme, RecallScheme(scheme)):
        terms = Terms(run.agreed, again)
        inputs = AliceInputs(MANY.alice, terms, ALICE, held_out=OTHERS.alice)
        seen: list[Event] = []
        trained = replay(
            ALICES[terms.conversation](inputs),
            recording,
            verify=again is scheme,
            observe=seen.append,
        )
        assert trained.weights.tolist() == run.alice.weights.tolist()
        products = [event.product.tolist() for event in seen if isinstance(event, MomentsSeen)]
        assert products == [event.product.tolist() for event in run.seen(MomentsSeen)]


@pytest.mark.parametrize("mechanism", ["sealed", "none"])
def test_a_pass_of_several_parts_tells_how_far_it_is(mechanism):
    run = by_parts(PARTED["clear"], mechanism)
    reached = [event.reach for event in run.seen(PartDone)]
    assert all(0 < reach <= 2 for reach in reached)
    # One bar for both sides: what is behind is not shown.
    pulse, shown = Pulse(), []
    for event in run.events:
        if isinstance(event, Advance) and pulse.observe(event):
            shown.append(pulse.reach[0])
    assert shown == sorted(shown)
    assert len(set(shown)) >= 6
    assert shown[-1] == 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_paid_pass_is_charged_and_nothing_else(mechanism):
    stated = session(newton(mechanism)).ledger.statement()
    expected = {
        "none": np.inf,
        "sealed": 0.0,
        "label-rr over none": 1.0,
        "label-rr over sealed": 1.0,
    }
    assert stated.label_epsilon_total == expected[mechanism]
    if mechanism == "sealed":
        assert stated.residue_epsilon_total == stated.claimed_epsilon_per_release == 0.0
        assert stated.releases_per_row == 0


def test_a_budget_ends_what_is_not_protected_before_anything_leaves():
    with pytest.raises(BudgetExceeded):
        session(newton("none"), budget=1.0)


# --- revealed weights -----------------------------------------------------------------------------


def test_revealed_weights_are_those_of_the_two_shares_in_her_own_columns():
    run = session(newton(reveal=True))
    assert run.alice.weights.tolist() == run.alices.tolist()
    assert [event.weights.tolist() for event in run.seen(ShareRevealed)] == [run.alices.tolist()]
    assert isinstance(run.said_by("bob")[-1], RevealedShare)
    assert run.ledger.statement().label_epsilon_total == np.inf
    hidden = session(newton())
    assert hidden.alices.tolist() == run.alices.tolist()
    assert hidden.alice.weights.tolist() == []


# --- a model that is told with noise --------------------------------------------------------------

TOLD: dict[str, Any] = {"reveal": True, "reveal_epsilon": 1.0, "reveal_delta": 1e-6}
# So large an epsilon that the noise is small beside what is compared.
LOUD: dict[str, Any] = {**TOLD, "reveal_epsilon": 1e8}


def release_of(run: Session) -> ModelRelease:
    release = model_release_of(run.agreed, shared(run.bob).scales, 3, run.tables.bob)
    assert release is not None
    return release


def test_alice_is_told_the_sum_of_the_shares_and_pays_epsilon():
    run = session(newton(**TOLD))
    assert run.alice.weights.tolist() == run.alices.tolist()
    released = run.said_by("bob")[-1]
    assert isinstance(released, RevealedShare)
    assert released.share.event == NoisyModel(1.0, 1e-6)
    assert released.share.value.tolist() == shared(run.bob).values.tolist()
    statement = run.ledger.statement()
    assert (statement.label_epsilon_total, statement.label_delta_total) == (1.0, 1e-6)
    assert "delta 1e-06" in statement.assumption


@pytest.mark.parametrize("split", SPLITS)
def test_the_told_model_is_that_of_the_descent_in_clear_and_the_noise(split):
    run = session(newton(**LOUD), SPLITS[split])
    hers, l2 = BoundedTable.of(run.tables.alice.values, run.agreed.l2), run.agreed.l2
    solver = DescentSolver(run.likelihood, run.tables.bob.values, l2, run.tables.free, PASSES)
    for _ in range(PASSES):
        direction = solver.direction()
        solver.add(direction, hers.values @ (direction @ hers.values))
    combination, own = solver.conclude()
    expected = hers.whitening.weights(combination @ hers.values)
    assert np.allclose(run.alice.weights, expected, atol=5e-3)
    assert np.allclose(run.bob.weights, own, atol=5e-3)


def test_under_real_keys_the_told_model_is_the_same_to_the_last_bit():
    real, plain = (
        session(newton(scheme=scheme, epochs=2, **TOLD), scheme=scheme) for scheme in (BFV, CLEAR)
    )
    assert real.alice.weights.tolist() == plain.alice.weights.tolist()
    assert real.bob.weights.tolist() == plain.bob.weights.tolist()


def test_the_noise_is_what_was_promised():
    """The same coins but for the noise: what was added is of the stated size, and not less."""
    quiet, noisy = session(newton(**LOUD)), session(newton(**TOLD))
    scales = shared(noisy.bob).scales
    whitened = shared(noisy.alice).whitening
    assert whitened is not None
    added = whitened.whitened(noisy.alice.weights - quiet.alice.weights)
    sigma = release_of(noisy).sigma * 2.0**-scales.weight_bits
    # Three draws: below a fiftieth of sigma all of them once in 250,000 times, beyond six never.
    assert sigma / 50 < np.abs(added).max() < 6 * sigma
    assert release_of(quiet).sigma * 2.0 ** -shared(quiet.bob).scales.weight_bits < sigma / 1000


def test_no_score_comes_near_the_end_of_its_range():
    """Whatever the labels are: a score that wrapped would move by more than the noise is for."""
    far = replace(USUAL, labels=LabelTable.of(np.ones(ROWS, dtype=np.int8)))
    for tables in (USUAL, far, complement(USUAL)):
        run = session(newton(**TOLD, l2=1e-6, epochs=30), tables)
        assert run.bob.suspected_wraps == 0


def test_until_it_is_told_labels_change_nothing_that_alice_can_read():
    agreed = newton(**TOLD)
    one, other = (session(agreed, tables) for tables in (USUAL, complement(USUAL)))
    first, second = ([readable(m) for m in run.said_by("bob")] for run in (one, other))
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


def test_a_told_model_needs_a_budget_that_pays_for_it():
    assert session(newton(**TOLD), budget=1.0).alice.weights.shape == (3,)
    with pytest.raises(BudgetExceeded):
        session(newton(**TOLD), budget=0.9)


# --- held-out rows --------------------------------------------------------------------------------


def more_rows() -> Tables:
    return Tables.make(rows=15, alice=3, bob=2, intercept=True, seed=8)


def in_clear(run: Session) -> Iterator[np.ndarray]:
    """The weights of both after each pass of the same search, without fixed point."""
    values, l2 = run.tables.alice.values, run.agreed.l2
    whitening = Whitening.of(values, l2)
    whitened = whitening.apply(values)
    solver = SubspaceSolver(run.likelihood, run.tables.bob.values, l2, run.tables.free, PASSES)
    for number in range(PASSES):
        direction = solver.direction()
        scores = whitened @ (direction @ whitened)
        solver.add(direction, scores, last=number == PASSES - 1)
        hers = whitening.weights(solver.combination() @ whitened)
        yield np.concatenate([hers, solver.weights])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_after_each_pass_bob_sees_how_good_the_model_of_that_pass_is(mechanism):
    new = more_rows()
    run = session(newton(mechanism, evaluate="epoch"), held_out=new)
    seen = run.seen(HeldOutSeen)
    assert [event.iteration for event in seen] == list(range(PASSES))
    for event, weights in zip(seen, in_clear(run), strict=True):
        expected = evaluate(new.joined @ weights, new.labels.values)
        assert event.metrics.loss == pytest.approx(expected.loss, abs=2.0**-8)
        assert event.metrics.auc == pytest.approx(expected.auc, abs=0.05)
    # The last one is of the model itself.
    final = evaluate(new.joined @ run.weights, new.labels.values)
    assert seen[-1].metrics.loss == pytest.approx(final.loss, abs=2.0**-9)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_looking_at_held_out_rows_changes_neither_model_nor_ledger(mechanism):
    looked = session(newton(mechanism, evaluate="epoch"), held_out=more_rows())
    plain = session(newton(mechanism))
    assert looked.weights.tolist() == plain.weights.tolist()
    assert looked.ledger.statement() == plain.ledger.statement()


@pytest.mark.parametrize("scheme", [CLEAR, BFV], ids=["clear", "bfv"])
def test_new_rows_are_scored_from_the_two_shares(scheme):
    run, new = session(newton(scheme=scheme), scheme=scheme), more_rows()
    hers, his, terms = shared(run.alice), shared(run.bob), Terms(run.agreed, scheme)
    assert hers.whitening is not None
    rows = whitened_rows(new.alice, hers.whitening)
    _, scored = run_pair(
        predict_sealed_rows(
            rows, hers.values, terms, hers.scales, NOISE_KEY, ALICE, hers.magnitude_bits
        ),
        bob_predict_predict(new.bob, run.bob.weights, his.values, terms, his.scales, BOB),
    )
    expected = new.joined @ run.weights
    assert np.abs(scored.scores - expected).max() < NOISE + 2.0**-9


def test_a_prediction_with_other_scales_is_refused():
    run, terms = session(newton(epochs=1)), Terms(newton(epochs=1), CLEAR)
    hers, his = shared(run.alice), shared(run.bob)
    other = replace(his.scales, feature_bits=his.scales.feature_bits - 1)
    with pytest.raises(RemoteProtocolError, match="feature_bits"):
        run_pair(
            predict_sealed_rows(USUAL.alice, hers.values, terms, hers.scales, NOISE_KEY, ALICE),
            bob_predict_predict(USUAL.bob, run.bob.weights, his.values, terms, other, BOB),
        )


# --- what Alice receives --------------------------------------------------------------------------


def complement(tables: Tables) -> Tables:
    flipped = LabelTable.of(1 - tables.labels.values, ids=tables.labels.ids)
    return replace(tables, labels=flipped)


ANSWERS = (SealedGradient, SealedScores)
SECRET = (SealedResidues, SealedWeights, EncryptedResidues)


def readable(message: Message) -> bytes:
    """The message without the bytes under Bob's key."""
    blank = {
        name: EncryptedVector(b"", getattr(message, name).length)
        for name, _ in field_codecs(type(message))
        if isinstance(getattr(message, name), EncryptedVector)
    }
    return encode(replace(message, **blank))


CHANGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "fresh keys": {"fresh_keys": True},
    "held out": {"evaluate": "epoch"},
}


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("mechanism", SHARED)
@pytest.mark.sampled(3)
def test_labels_change_nothing_that_alice_can_read(mechanism, changes):
    """The same coins on both sides: what she reads is the same to the last byte."""
    agreed, new = newton(mechanism, **CHANGES[changes]), more_rows()
    one, other = (session(agreed, tables, held_out=new) for tables in (USUAL, complement(USUAL)))
    assert [readable(message) for message in one.said_by("bob")] == [
        readable(message) for message in other.said_by("bob")
    ]
    assert [len(frame) for _, frame in one.frames] == [len(frame) for _, frame in other.frames]
    assert shared(one.alice).values.tolist() == shared(other.alice).values.tolist()
    # The labels did matter: to Bob.
    assert one.weights.tolist() != other.weights.tolist()


def test_under_bfv_kinds_and_lengths_do_not_depend_on_labels():
    agreed = newton(scheme=BFV, epochs=2)
    one, other = (session(agreed, tables, BFV) for tables in (USUAL, complement(USUAL)))
    assert [(who, kind_of(frame), len(frame)) for who, frame in one.frames] == [
        (who, kind_of(frame), len(frame)) for who, frame in other.frames
    ]


@pytest.mark.parametrize("changes", CHANGES)
def test_every_message_to_alice_is_public_or_a_ciphertext(changes):
    run = session(newton(**CHANGES[changes]), held_out=more_rows())
    kinds = {type(message) for message in run.said_by("bob")}
    assert kinds == {*OPENING, KeyOffer, SealedResidues, SealedWeights}
    for kind in kinds:
        types = {get_type_hints(kind)[name] for name, _ in field_codecs(kind)}
        assert (EncryptedVector in types) == (kind in SECRET)
        assert not any("Released" in str(field_type) for field_type in types)
    assert run.seen(Observation) == []


def test_bobs_share_alone_looks_uniform():
    """Over many coins: the mean of the top byte, 6 sigma, false alarm below 1e-8."""
    terms, top = Terms(newton(epochs=1), CLEAR), []
    for seed in range(100):
        inputs = AliceInputs(USUAL.alice, terms, ALICE.fork(str(seed)))
        _, bob = run_pair(ALICES[terms.conversation](inputs), bobs_side(terms.agreement))
        share = shared(bob)
        top += (share.values >> (share.scales.modulus_bits - 8)).tolist()
    assert abs(np.mean(top) + 0.5) < 6 * (256 / np.sqrt(12)) / np.sqrt(len(top))
    assert np.std(top) > 60


def test_with_fresh_keys_every_vector_has_a_key_of_its_own():
    run = session(newton(scheme=BFV, epochs=1, fresh_keys=True), scheme=BFV)
    said = run.said_by("bob")
    offers = [message.public_key for message in said if isinstance(message, KeyOffer)]
    assert len(set(offers)) == len(offers) == 3
    after = [type(said[at + 1]) for at, one in enumerate(said) if isinstance(one, KeyOffer)]
    assert after == [SealedResidues, SealedWeights, SealedResidues]


def test_in_clear_alice_sees_one_exact_sum_a_pass_and_that_is_all_that_is_released():
    run = session(newton("none"))
    kinds = {type(message) for message in run.said_by("bob")}
    assert kinds == {Hello, KeyOffer, EncryptedResidues, RevealedGradient}
    seen = run.seen(MomentsSeen)
    assert [(event.iteration, event.final) for event in seen] == [
        (number, number == PASSES) for number in range(PASSES + 1)
    ]
    assert run.seen(Observation) == seen
    released = [
        kind for kind in kinds if any("Released" in str(t) for t in get_type_hints(kind).values())
    ]
    assert released == [RevealedGradient]


OPENING: list[type[Message]] = [Hello, BatchCommitment, BatchShare]
PASS: list[type[Message]] = [SealedResidues, SealedWeights]
CHARTS = {
    ("sealed", "plain"): [*OPENING, KeyOffer, *PASS * PASSES, SealedResidues],
    ("sealed", "held out"): [*OPENING, KeyOffer, *[*PASS, SealedWeights] * PASSES, SealedResidues],
    ("sealed", "fresh keys"): [
        *OPENING,
        *[KeyOffer, SealedResidues, KeyOffer, SealedWeights] * PASSES,
        KeyOffer,
        SealedResidues,
    ],
    ("none", "plain"): [Hello, KeyOffer, *[EncryptedResidues, RevealedGradient] * (PASSES + 1)],
}


@pytest.mark.parametrize(("mechanism", "changes"), CHARTS)
def test_the_conversation_is_the_chart(mechanism, changes):
    run = session(newton(mechanism, **CHANGES[changes]), held_out=more_rows())
    assert [type(message) for message in run.said_by("bob")] == CHARTS[mechanism, changes]


def test_alices_answers_are_as_long_as_the_table_says():
    """40 rows and three columns at Alice, 15 rows held out."""
    run = session(newton(evaluate="epoch", epochs=2), held_out=more_rows())
    answered = [message for message in run.said_by("alice") if isinstance(message, ANSWERS)]
    one = [(SealedGradient, 3), (SealedScores, ROWS), (SealedScores, 15)]
    lengths = [(type(message), message.answer.length) for message in answered]
    assert lengths == [*one, *one, (SealedGradient, 3)]
    plain = session(newton("none", evaluate="epoch", epochs=1), held_out=more_rows())
    assert [type(message) for message in plain.said_by("alice")] == [
        Hello,
        MaskedGradient,
        PartialScores,
        EpochScores,
        MaskedGradient,
    ]


# --- a stop, and the way on -----------------------------------------------------------------------

GOING_ON: dict[str, tuple[str, Scheme, dict[str, Any]]] = {
    "none": ("none", CLEAR, {}),
    "sealed": ("sealed", CLEAR, {}),
    "flipped": ("label-rr over sealed", CLEAR, {}),
    "fresh keys": ("sealed", CLEAR, {"fresh_keys": True}),
    "revealed": ("sealed", CLEAR, {"reveal": True}),
    "told": ("sealed", CLEAR, {"evaluate": "epoch", **TOLD}),
    "held out": ("sealed", CLEAR, {"evaluate": "epoch"}),
    "held out in clear": ("none", CLEAR, {"evaluate": "epoch"}),
    "none-bfv": ("none", BFV, {"epochs": 2}),
    "sealed-bfv": ("sealed", BFV, {"epochs": 2}),
}


def boundaries(run: Session) -> list[Pair]:
    """The states of both sides at each boundary; Bob's alone has a search in it."""
    states = [event.state for event in run.seen(Boundary)]
    alices = [state for state in states if state.search is None]
    bobs = [state for state in states if state.search is not None]
    assert [state.iteration for state in alices] == [state.iteration for state in bobs]
    return list(zip(alices, bobs, strict=True))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", GOING_ON)
def test_from_every_boundary_the_end_is_the_same_to_the_last_bit(name):
    mechanism, scheme, changes = GOING_ON[name]
    agreed, new = newton(mechanism, scheme, **changes), more_rows()
    whole = session(agreed, scheme=scheme, held_out=new)
    pairs = boundaries(whole)
    assert len(pairs) == agreed.epochs + 1
    for alice, bob in pairs:
        assert alice is not None
        assert bob is not None
        at = (TrainingState.of_bytes(alice.to_bytes()), TrainingState.of_bytes(bob.to_bytes()))
        again = session(agreed, scheme=scheme, held_out=new, at=at)
        assert same(again.alice, whole.alice)
        assert same(again.bob, whole.bob)
        looked = [event.metrics for event in whole.seen(HeldOutSeen)][alice.iteration :]
        assert [event.metrics for event in again.seen(HeldOutSeen)] == looked


def test_a_state_of_a_search_shows_no_number_of_it():
    run = session(newton(epochs=2))
    _, bob = boundaries(run)[-1]
    assert bob is not None
    assert bob.search is not None
    assert "search" not in repr(bob)
    for number in (*bob.search.directions[0][:3], *bob.search.scores[0][:3]):
        assert str(number) not in repr(bob)


# --- a peer that deviates -------------------------------------------------------------------------


def alices_side(agreed: Agreement, held_out: Tables | None = None) -> Program[Trained]:
    terms = Terms(agreed, CLEAR)
    theirs = None if held_out is None else held_out.alice
    return ALICES[terms.conversation](AliceInputs(USUAL.alice, terms, ALICE, None, theirs))


def bobs_side(agreed: Agreement, held_out: Tables | None = None) -> Program[BobTrained]:
    terms, method = Terms(agreed, CLEAR), mechanism_of(agreed)
    ledger = Ledger(ROWS, method.assumption)
    ours = None if held_out is None else HeldOut(held_out.bob, held_out.labels)
    inputs = BobInputs(USUAL.bob, USUAL.labels, terms, method, ledger, BOB, None, ours)
    return BOBS[terms.conversation](inputs)


def longer(value: Any) -> Any:
    """A vector, an answer or numbers with one entry more, of the right form otherwise."""
    if isinstance(value, EncryptedVector | EncryptedAnswer):
        return type(value)(value.data + bytes(8), value.length + 1)
    if isinstance(value, Released):
        return Released.unprotected((*value.value, 0))
    return np.append(value, 0.0)


CARRIES = {
    SealedResidues: "residues",
    SealedWeights: "weights",
    EncryptedResidues: "residues",
    RevealedGradient: "gradient",
    SealedGradient: "answer",
    SealedScores: "answer",
    MaskedGradient: "answer",
    PartialScores: "scores",
    EpochScores: "scores",
    RevealedShare: "share",
}


def lengthened(message: Message) -> Message:
    name = CARRIES[type(message)]
    return replace(message, **{name: longer(getattr(message, name))})


def turned(message: Message) -> Message:
    changed: dict[str, Any] = {"iteration": getattr(message, "iteration") + 1}  # noqa: B009
    return replace(message, **changed)


@pytest.mark.parametrize("wrong", [lengthened, turned], ids=["a wrong length", "a wrong turn"])
@pytest.mark.parametrize("mechanism", ["none", "sealed"])
@pytest.mark.parametrize("role", ["alice", "bob"])
@pytest.mark.sampled(3)
def test_a_wrong_length_or_turn_is_refused_wherever_it_comes(role, mechanism, wrong):
    """Every message of the peer's in turn, the first pass's and the last product's."""
    changes: dict[str, Any] = {"evaluate": "epoch", "epochs": 1}
    agreed, new = newton(mechanism, **changes), more_rows()
    run = session(agreed, held_out=new)
    heard = run.said_by("bob" if role == "alice" else "alice")
    places = [place for place, message in enumerate(heard) if type(message) in CARRIES]
    assert len(places) >= 3
    for place in places:
        side = ByHand(role, alices_side(agreed, new) if role == "alice" else bobs_side(agreed, new))
        for message in heard[:place]:
            side.feed(message)
        with pytest.raises(RemoteProtocolError):
            side.feed(wrong(heard[place]))


def test_a_share_of_another_length_is_refused_when_it_is_revealed():
    agreed = newton(reveal=True, epochs=1)
    *before, last = session(agreed).said_by("bob")
    alice = ByHand("alice", alices_side(agreed))
    for message in before:
        alice.feed(message)
    assert isinstance(last, RevealedShare)
    wrong = RevealedShare(Released.unprotected(np.append(last.share.value, 0)))
    with pytest.raises(RemoteProtocolError, match="has 4 entries, not 3"):
        alice.feed(wrong)


@pytest.mark.parametrize("fill", [0, 2**48, -(2**48), 2**62], ids=["0", "2^48", "-2^48", "2^62"])
def test_bob_continues_alike_whatever_alice_answers(fill):
    """Nothing raises on any values, and what he sends has the lengths of an honest talk."""
    agreed = newton(epochs=3, evaluate="epoch")
    honest = session(agreed, held_out=more_rows())
    bob = ByHand("bob", bobs_side(agreed, more_rows()))
    for message in honest.said_by("alice"):
        if isinstance(message, ANSWERS):
            data = np.full(message.answer.length, fill, dtype="<i8").tobytes()
            bob.feed(replace(message, answer=EncryptedAnswer(data, message.answer.length)))
        else:
            bob.feed(message)
    expected = [(type(message), len(encode(message))) for message in honest.said_by("bob")]
    assert [(type(message), len(encode(message))) for message in bob.said] == expected
    # He counts for himself what may have wrapped: every score of every pass, or none.
    assert honest.bob.suspected_wraps == 0
    assert bob.driver.result.suspected_wraps == (3 * ROWS if abs(fill) == 2**48 else 0)


@pytest.mark.parametrize("value", [0.0, 1e300, -1e300, 5e-324])
def test_bob_takes_any_scores_in_clear(value):
    agreed = newton("none", epochs=3)
    honest = session(agreed)
    bob = ByHand("bob", bobs_side(agreed))
    for message in honest.said_by("alice"):
        if isinstance(message, PartialScores):
            message = replace(message, scores=np.full(ROWS, value))
        bob.feed(message)
    expected = [(type(message), len(encode(message))) for message in honest.said_by("bob")]
    assert [(type(message), len(encode(message))) for message in bob.said] == expected


# --- what is refused ------------------------------------------------------------------------------


def test_paillier_has_no_whole_tables():
    scheme = PaillierScheme(key_bits=(512,))
    with pytest.raises(CryptoError, match="whole tables"):
        session(newton(scheme=scheme), scheme=scheme)


def test_a_value_far_beyond_its_column_is_refused_with_a_way_out():
    """One value of 1e9 among small ones, with a penalty so small that whitening cannot help."""
    values = USUAL.alice.values.copy()
    values[0, 0] = 1e9
    tables = replace(USUAL, alice=replace(USUAL.alice, values=values))
    session(newton(), tables)
    values[:, 1] = values[:, 0]
    with pytest.raises(ConfigError, match="too large for the L2 penalty") as raised:
        session(newton(l2=1e-9), tables)
    assert "drop those that repeat others" in raised.value.hint
