"""Several Alices and one Bob: the model of the joined table, and scores that only add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto import scheme
from taciturn.data import RowIds
from taciturn.engine import Driver, run_star
from taciturn.errors import AgreementError, LocalProtocolError
from taciturn.numerics import of_labels, optimum, weighted_likelihood
from taciturn.protocol import (
    ANY_TABLE,
    BobTrained,
    Boundary,
    Emit,
    EpochScores,
    MaskedScores,
    NoisyResidues,
    PartialScores,
    PeerTable,
    Program,
    TrainingState,
    ZeroSum,
)
from taciturn.protocol.alice import TRAININGS as ALICES
from taciturn.protocol.alice import AliceInputs
from taciturn.protocol.alice import dry_run as alice_dry_run
from taciturn.protocol.bob import TRAININGS as BOBS
from taciturn.protocol.bob import BatchScored, DirectionScored, Partners
from taciturn.protocol.bob import dry_run as bob_dry_run
from taciturn.rng import KeyedEntropy
from tests.protocol.parties import BOB, Tables, agreement, centralised
from tests.protocol.stars import Star, StarTalk, converse, names, pins, whole_session

TABLES = Tables.make(rows=40, alice=9, bob=2, intercept=True)
L2 = 0.02
NEWTON = {"solver": "newton", "epochs": 12, "l2": L2, "batch_size": 40, "learning_rate": 1.0}
COUNTS = [1, 2, 4, 8]
# Of the digits of features, sums of which make the weights; one Alice's are no better.
REVEALED, WHOLE = 1e-5, 2e-3


@pytest.mark.parametrize("alices", COUNTS)
def test_the_model_of_batches_is_that_of_centralised_training(alices):
    star = Star.of(TABLES, agreement(mechanism="none", epochs=3, l2=0.01), alices)
    talk = converse(star)
    oracle = centralised(TABLES, star.terms.agreement, talk.batches)
    assert np.abs(talk.weights - oracle).max() < REVEALED


@pytest.mark.parametrize("alices", COUNTS)
@pytest.mark.parametrize("mechanism", ["none", "sealed"])
def test_the_model_of_whole_tables_is_the_optimum(mechanism, alices):
    talk = converse(Star.of(TABLES, agreement(mechanism=mechanism, **NEWTON), alices))
    likelihood = of_labels(TABLES.labels.values, partial(weighted_likelihood, class_weight=None))
    best = optimum(TABLES.joined, likelihood, L2, TABLES.free).weights
    assert np.abs(talk.weights - best).max() < WHOLE


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bfv", {"mechanism": "none"}),
        ("bfv", {"mechanism": "sealed", **NEWTON}),
        ("paillier", {"mechanism": "none", "epochs": 1}),
    ],
    ids=["bfv", "bfv newton", "paillier"],
)
def test_with_real_encryption_it_is_the_same_model(name, settings):
    stars = [
        Star.of(
            TABLES,
            agreement(**{"scheme": used, "key_bits": bits, **settings}),
            3,
            scheme(used),
        )
        for used, bits in ((name, scheme(name).key_bits[-1]), ("clear", 0))
    ]
    one, other = (converse(star) for star in stars)
    assert one.weights.tobytes() == other.weights.tobytes()


def test_residues_reach_all_alices_alike():
    settings = {"mechanism": "add", "epsilon": 1.0, "noise": "discrete"}
    talk = converse(Star.of(TABLES, agreement(**settings), 3))
    first, *others = (
        [m.residues.value.tolist() for m in talk.said(link, "bob") if isinstance(m, NoisyResidues)]
        for link in talk.alices
    )
    assert first
    assert others == [first, first]


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [("none", {}), ("none", NEWTON), ("sealed", NEWTON)],
    ids=["none sgd", "none newton", "sealed newton"],
)
@pytest.mark.parametrize("evaluate", ["end", "epoch"])
@pytest.mark.sampled(3)
def test_a_whole_session_scores_held_out_rows_as_the_joined_model_does(
    mechanism, settings, evaluate
):
    held_out = Tables.make(rows=15, alice=9, bob=2, intercept=True, seed=8)
    agreed = agreement(
        **{"mechanism": mechanism, "held_out": 0.2, "evaluate": evaluate, **settings}
    )
    alices, bob = whole_session(Star.of(TABLES, agreed, 3), held_out)
    trained = {name: result.trained for name, result in alices.items()}
    assert isinstance(bob.trained, BobTrained)
    weights = StarTalk(trained, bob.trained, (), ()).weights
    assert bob.held_out_scores is not None
    # Of nine products of rounded columns, each with weights of size 1.
    assert np.abs(bob.held_out_scores - held_out.joined @ weights).max() < 9 * 2.0**-8


@pytest.mark.parametrize("settings", [{}, NEWTON], ids=["sgd", "newton"])
def test_no_score_of_one_of_several_alices_leaves_without_a_mask(settings):
    agreed = agreement(**{"mechanism": "none", "held_out": 0.2, "evaluate": "epoch", **settings})
    talk = converse(Star.of(TABLES, agreed, 3))
    for link in talk.alices:
        kinds = {type(message) for message in talk.said(link, "alice")}
        assert MaskedScores in kinds
        assert not kinds & {PartialScores, EpochScores}


# --- resuming -------------------------------------------------------------------------------------

RESUMED: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "add": {"mechanism": "add", "epsilon": 2.0, "noise": "discrete"},
    "sealed newton, bfv": {
        "mechanism": "sealed",
        **NEWTON,
        "epochs": 1,
        "scheme": "bfv",
        "key_bits": 128,
    },
    "none newton": {"mechanism": "none", **NEWTON, "epochs": 3},
    "sealed newton": {"mechanism": "sealed", **NEWTON, "epochs": 3},
    "sealed newton, rows looked at": {
        "mechanism": "sealed",
        **NEWTON,
        "epochs": 3,
        "held_out": 0.2,
        "evaluate": "epoch",
    },
}


def states_of(star: Star) -> tuple[StarTalk, list[dict[str, TrainingState]]]:
    """A run, and what each side would keep at each boundary."""
    boundaries: dict[str, list[TrainingState]] = {name: [] for name in (*star.parties, "bob")}

    def noting(name: str, program: Program[Any]) -> Program[Any]:
        answer: Any = None
        try:
            while True:
                step = program.send(answer)
                if isinstance(step, Emit) and isinstance(step.event, Boundary):
                    boundaries[name].append(step.event.state)
                answer = yield step
        except StopIteration as done:
            return done.value

    alices, bob = run_star(
        {name: noting(name, program) for name, program in star.alice_programs().items()},
        noting("bob", star.bob_program()),
    )
    together = zip(*boundaries.values(), strict=True)
    rounds = [dict(zip(boundaries, at, strict=True)) for at in together]
    return StarTalk(alices, bob, (), ()), rounds


@pytest.mark.parametrize("case", RESUMED)
@pytest.mark.sampled(2)
def test_from_every_boundary_the_weights_are_the_same_to_the_last_bit(case):
    agreed = agreement(**RESUMED[case])
    star = Star.of(TABLES, agreed, 3, scheme(agreed.scheme))
    whole, rounds = states_of(star)
    assert len(rounds) > 2
    for at in rounds:
        kept = {name: TrainingState.of_bytes(state.to_bytes()) for name, state in at.items()}
        train = ALICES[star.terms.conversation], BOBS[star.terms.conversation]
        alices, bob = run_star(
            {name: train[0](star.alice_inputs(name, resume=kept[name])) for name in star.parties},
            train[1](star.bob_inputs(resume=kept["bob"])),
        )
        again = StarTalk(alices, bob, (), ())
        assert again.weights.tobytes() == whole.weights.tobytes()


def test_a_state_of_one_of_several_alices_shows_no_secret():
    _, rounds = states_of(Star.of(TABLES, agreement(mechanism="none", epochs=1), 2))
    state = rounds[0]["alice-1"]
    assert state.circle is not None
    assert state.circle.pair_keys[1].hex() not in repr(state)
    assert state.circle.pair_keys[1].hex() in state.to_bytes().decode()


# --- an Alice who does not fit --------------------------------------------------------------------


def other_rows(star: Star) -> AliceInputs:
    table = star.shares["alice-2"]
    ids = RowIds.of([f"x{row}" for row in range(table.rows)])
    return star.alice_inputs("alice-2", features=replace(table, ids=ids))


def other_agreement(star: Star) -> AliceInputs:
    agreed = star.terms.agreement.model_copy(update={"epochs": 9})
    return star.alice_inputs("alice-2", terms=replace(star.terms, agreement=agreed))


def other_list_of_parties(star: Star) -> AliceInputs:
    parties = {**pins(names(3)), "alice-3": "0" * 64}
    agreed = star.terms.agreement.model_copy(update={"parties": parties})
    return star.alice_inputs("alice-2", terms=replace(star.terms, agreement=agreed))


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (other_rows, "alice-2: .*not the same rows|alice-2.*ids"),
        (other_agreement, "alice-2: .*epochs: 2 here, 9 there"),
        (other_list_of_parties, "alice-2: .*party 3: .*alice-3"),
    ],
)
@pytest.mark.parametrize("dry", [True, False], ids=["dry run", "training"])
def test_an_alice_who_does_not_fit_is_named(inputs, words, dry):
    star = Star.of(TABLES, agreement(mechanism="sealed", **{**NEWTON, "epochs": 2}), 3)
    given = {name: star.alice_inputs(name) for name in star.parties} | {"alice-2": inputs(star)}
    bob: Any
    alices: dict[str, Any]
    if dry:
        alices = {name: alice_dry_run(hers) for name, hers in given.items()}
        bob = bob_dry_run(star.terms, TABLES.bob, None, ANY_TABLE, star.parties, BOB)
    else:
        alices = {name: ALICES["sealed-table"](hers) for name, hers in given.items()}
        bob = star.bob_program()
    # Her own side says it too, where it is the first to hear: Bob alone hears their first words.
    frames = {name: opening_words(program) for name, program in alices.items()}
    with pytest.raises(AgreementError, match=words):
        hear(bob, frames)


def hear(bob: Program[Any], frames: dict[str, list[bytes]]) -> None:
    driver: Driver[Any] = Driver("bob", bob, dict.fromkeys(frames, unheard))
    driver.start()
    while not driver.finished:
        driver.feed(frames[driver.awaits].pop(0))


def opening_words(program: Program[Any]) -> list[bytes]:
    said: list[bytes] = []
    Driver("alice", program, said.append).start()
    return said


def unheard(frame: bytes) -> None:
    """An outlet nobody listens at."""


def test_a_dry_run_of_all_passes():
    star = Star.of(TABLES, agreement(mechanism="sealed", **NEWTON), 3)
    alices, bob = run_star(
        {name: alice_dry_run(star.alice_inputs(name)) for name in star.parties},
        bob_dry_run(star.terms, TABLES.bob, None, ANY_TABLE, star.parties, BOB),
    )
    assert bob.widths == (3, 3, 3)
    assert {state.seed for state in alices.values()} == {bob.seed}


def test_the_number_of_columns_of_all_is_what_is_agreed_on():
    star = Star.of(TABLES, agreement(mechanism="sealed", **NEWTON), 3)
    alices = {name: alice_dry_run(star.alice_inputs(name)) for name in star.parties}
    bob = bob_dry_run(star.terms, TABLES.bob, None, PeerTable(8), star.parties, BOB)
    with pytest.raises(AgreementError, match="alice-columns is 8, and the parties' tables have 9"):
        run_star(alices, bob)


# --- what Bob sees --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{"mechanism": "none", "epochs": 1}, {"mechanism": "sealed", **NEWTON}],
    ids=["sgd", "newton"],
)
def test_what_bob_sees_is_the_same_for_any_rotation_of_all_columns(settings):
    """So it does not tell how columns are divided: a rotation mixes those of all Alices.

    To the rounding of columns: sums of nine products, each of which is off by 2^-9 at most.
    """
    coins = KeyedEntropy.from_seed(12)
    turn = np.linalg.qr(coins.uniform((9, 9)) - 0.5)[0]
    turned = replace(TABLES, alice=replace(TABLES.alice, values=TABLES.alice.values @ turn))
    agreed = agreement(**settings)
    views = [sums_seen(converse(Star.of(tables, agreed, 3))) for tables in (TABLES, turned)]
    # Directions follow from sums before them, so that roundings add up over passes.
    for one, other in zip(*views, strict=True):
        assert np.abs(one - other).max() < 0.05


def sums_seen(talk: StarTalk) -> list[FloatArray]:
    return [
        event.scores for event in talk.events if isinstance(event, BatchScored | DirectionScored)
    ][:4]


SESSIONS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "add": {"mechanism": "add", "epsilon": 2.0, "noise": "discrete"},
    "none newton": {"mechanism": "none", **NEWTON, "epochs": 3},
    "sealed newton": {"mechanism": "sealed", **NEWTON, "epochs": 3},
}


@pytest.mark.parametrize("case", SESSIONS)
def test_no_mask_is_used_twice_in_a_whole_session(case, monkeypatch):
    drawn: Counter[tuple[bytes, ...]] = Counter()
    over = ZeroSum.over

    def noting(self: ZeroSum, values: IntArray) -> IntArray:
        drawn[tuple(stream.key for stream in (*self.added, *self.subtracted))] += 1
        return over(self, values)

    monkeypatch.setattr(ZeroSum, "over", noting)
    held_out = Tables.make(rows=15, alice=9, bob=2, intercept=True, seed=8)
    agreed = agreement(**{"held_out": 0.2, "evaluate": "epoch", **SESSIONS[case]})
    whole_session(Star.of(TABLES, agreed, 3), held_out)
    assert len(drawn) > 10
    assert set(drawn.values()) == {1}


def test_one_of_several_alices_says_nothing_without_masks():
    star = Star.of(TABLES, agreement(mechanism="none", epochs=1), 3)
    _, rounds = states_of(star)
    forgetful = replace(rounds[0]["alice-2"], circle=None)
    program = ALICES["revealed"](star.alice_inputs("alice-2", resume=forgetful))
    with pytest.raises(LocalProtocolError, match="does not know the others"):
        opening_words(program)


def test_what_bob_decrypts_of_one_alice_is_uniform(monkeypatch):
    """Half of its signs are set, to 5 deviations (6e-7); the sum of all is a score."""
    kept: dict[str, list[IntArray]] = {name: [] for name in names(2)}
    ask = Partners.ask

    def listening(self: Partners, question: Any) -> Program[Any]:
        results = yield from ask(self, question)
        for partner, result in zip(self.all, results, strict=True):
            if len(result) == TABLES.labels.rows:
                kept[partner.name].append(result)
        return results

    monkeypatch.setattr(Partners, "ask", listening)
    talk = converse(Star.of(TABLES, agreement(mechanism="sealed", **NEWTON), 2))
    assert talk.bob.share is not None
    ring = talk.bob.share.scales.ring(1, 1)
    for numbers in kept.values():
        signs = np.concatenate(numbers) < 0
        assert len(signs) == 12 * TABLES.labels.rows
        assert abs(signs.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(signs))
    first, second = (np.concatenate(numbers) for numbers in kept.values())
    sums = ring.centred(first + second)
    assert np.abs(talk.bob.share.scales.scores(sums)).max() < 64
