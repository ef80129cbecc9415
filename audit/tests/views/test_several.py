"""Views of several Alices: each from her own link, some together, and Bob's of their sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit.tests.views.several import NEWTON, several

from taciturn.data.tables import FeatureTable
from taciturn.engine.transcript import Recorder, Transcript
from taciturn.errors import RowOrderError, TranscriptError
from taciturn.protocol.bob.observations import BobObservation
from taciturn.protocol.observations import (
    GradientSeen,
    MomentsSeen,
    Observation,
    ResiduesSeen,
    Signal,
)
from taciturn.protocol.outcome import HeldOut
from taciturn_audit.views.coalition import pooled
from tests.expected import refused
from tests.protocol.parties import Tables, same
from tests.protocol.stars import split, whole_session

PASSES = {**NEWTON, "batch_size": 40, "epochs": 4}
TRAININGS = {
    "none": {},
    "none by passes": PASSES,
    "sealed by passes": {"mechanism": "sealed", "reveal": True, **PASSES},
    "add": {"mechanism": "add", "epsilon": 1.0, "noise": "discrete"},
}
ALL_TRAININGS = pytest.mark.parametrize("options", TRAININGS.values(), ids=list(TRAININGS))


@ALL_TRAININGS
def test_each_sees_from_her_link_what_she_saw_live_and_bob_the_sum(options):
    made = several(3, **options)
    live = [event for event in made.talk.events if isinstance(event, Observation)]
    seen = [event for view in made.alices for event in view.observations.events]
    assert len(seen) == len(live)
    for event in seen:
        assert any(same(event, one) for one in live if type(one) is type(event))
    for view, (name, trained) in zip(made.alices, made.talk.alices.items(), strict=True):
        assert view.names == (name,)
        assert same(view.observations.weights, trained.weights)
    summed = [event for event in made.talk.events if isinstance(event, BobObservation)]
    assert all(same(one, two) for one, two in zip(summed, made.bob.observations, strict=True))
    assert (made.bob.columns, made.bob.widths) == (9, (3, 3, 3))


def test_a_coalition_has_columns_weights_and_sums_side_by_side():
    made = several(3)
    first, _, third = made.alices
    both = made.coalition(0, 2)
    assert both.names == ("alice-1", "alice-3")
    assert np.array_equal(
        both.features.values, np.hstack([first.features.values, third.features.values])
    )
    for together, one, other in zip(
        *(view.observations.of_kind(GradientSeen) for view in (both, first, third)), strict=True
    ):
        assert np.array_equal(together.rows, one.rows)
        for part in ("weights", "gradient"):
            wanted = np.concatenate([getattr(one, part), getattr(other, part)])
            assert np.array_equal(getattr(together, part), wanted)
    frames = sum(len(list(view.conversation.frames("bob"))) for view in (first, third))
    assert len(list(both.received)) == frames


def test_residues_are_told_to_all_and_count_once():
    made = several(3, **TRAININGS["add"])
    together = made.coalition(0, 1).observations.of_kind(ResiduesSeen)
    alone = made.alices[2].observations.of_kind(ResiduesSeen)
    assert [one.residues.tolist() for one in together] == [one.residues.tolist() for one in alone]


@pytest.mark.parametrize("bob", [0, 1])
def test_scores_are_known_to_all_alices_together_where_bob_has_no_column(bob):
    made = several(2, bob=bob)
    assert made.coalition(0, 1).scores_known is (bob == 0)
    assert not made.alices[0].scores_known


def test_the_scores_of_all_together_are_those_that_bob_added_up():
    made = several(3)
    view = made.coalition(0, 1, 2)
    for hers, his in zip(view.observations.of_kind(GradientSeen), made.bob.batches, strict=True):
        assert np.array_equal(view.own_scores(hers.rows, hers.weights), his.scores)


def test_the_sums_of_a_pass_are_of_bobs_numbers():
    made = several(3, **PASSES)
    assert Signal.MOMENTS in made.alices[0].signals
    for view in made.alices:
        for seen, asked in zip(
            view.observations.of_kind(MomentsSeen), made.bob.directions, strict=False
        ):
            numbers = np.rint(asked.direction * 2.0**seen.vector_bits).astype(np.int64)
            assert np.array_equal(numbers @ seen.table, seen.product)


def test_parties_of_other_trainings_are_no_coalition():
    one, other = several(2), several(2, epochs=3)
    with refused(TranscriptError):
        assert pooled([one.alices[0], other.alices[1]]).observations
    first, second = one.alices
    moved = FeatureTable.from_data(second.features.values, ids=np.arange(1, 41))
    with refused(RowOrderError):
        pooled([first, replace(second, features=moved)])
    assert pooled([first]) is first


def test_a_recording_that_lacks_an_introduction_or_a_link_is_refused():
    made = several(2)
    view, bob = made.alices[0], made.bob
    stranger = replace(view, conversation=Transcript({}, view.conversation.records[:2]))
    with refused(TranscriptError):
        assert stranger.names
    with refused(TranscriptError, names=(1, 2)):
        assert replace(bob, conversation=bob.conversation.link(0)).columns


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [("none", {}), ("none", PASSES), ("sealed", PASSES)],
    ids=["none batches", "none passes", "sealed passes"],
)
@pytest.mark.sampled(2)
def test_a_whole_session_shows_each_what_the_training_did(mechanism, options):
    """With held-out rows too, which are scored after each epoch and at the end."""
    made = several(3, mechanism=mechanism, held_out=0.2, evaluate="epoch", **options)
    held_out = Tables.make(rows=15, alice=9, seed=8)
    star, recorder = made.star, Recorder(3)
    places = {name: place for place, name in enumerate(star.parties)}
    whole_session(
        star,
        held_out,
        tap=lambda name, sender, frame: recorder(sender, frame, places[name]),
    )
    recorded, parts = recorder.finish({}), split(held_out.alice, star.parties)
    for place, view in enumerate(made.alices):
        session = replace(
            view,
            conversation=recorded.link(place),
            held_out=parts[star.parties[place]],
        )
        assert session.names == view.names
        assert len(session.observations.events) == len(view.observations.events)
    bob = replace(
        made.bob,
        conversation=recorded,
        held_out=HeldOut(held_out.bob, held_out.labels),
    ).with_scores()
    assert len(bob.observations) == len(made.bob.observations)
    assert (bob.predictions is None) is (mechanism == "sealed")
