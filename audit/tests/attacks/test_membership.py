"""The gradient tells who is in a hidden batch, which the randomised response was to hide."""

from __future__ import annotations

import numpy as np
import pytest
from audit.tests.attacks.evidence import DATASETS, run

from taciturn.arrays import IndexArray
from taciturn.jobs.train.simulation import simulate_training
from taciturn.privacy.solvers import resolved
from taciturn.protocol.events import Event, Progress
from taciturn.settings.schema import Settings
from taciturn.simulation import load_raw
from taciturn_audit.adversaries import outcome_view
from taciturn_audit.attacks.membership import guess_membership
from taciturn_audit.judge import judge_membership
from taciturn_audit.views.alice_view import AliceView


def hybrid(**options: object) -> tuple[AliceView, dict[int, IndexArray]]:
    """Alice's view of a run, and the true batches, which only Bob knows."""
    base = {"dataset": "breast-cancer", "mechanism": "hybrid", "scheme": "clear", "seed": 5}
    settings = resolved(Settings.from_mapping({**base, **options}))
    batches: dict[int, IndexArray] = {}

    def note(event: Event) -> None:
        if isinstance(event, Progress) and event.rows is not None:
            batches[event.done - 1] = event.rows

    outcome = simulate_training(settings, load_raw(settings), keep=True, observe=note)
    return outcome_view(outcome), batches


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("dataset", DATASETS)
def test_tells_members_and_k_beside_a_base_rate_below_one_half(dataset):
    view, batches = hybrid(dataset=dataset)
    guesses = guess_membership(view, most=24)
    score = judge_membership(guesses, batches)
    assert score.iterations == 24
    assert score.base_rate is not None
    assert score.base_rate < 0.5
    shares = np.array([score.precision, score.recall, score.k_exact], dtype=float)
    assert (shares > [0.97, 0.95, 0.9]).all()
    # What it certifies has no wrong member.
    certified = judge_membership([guess for guess in guesses if guess.certified], batches)
    assert certified.iterations >= 15
    assert (certified.precision, certified.k_exact, certified.certified) == (1.0, 1.0, 1.0)


@pytest.mark.slow  # some seconds
def test_is_at_the_base_rate_against_the_batches_of_another_iteration():
    """The batches of other iterations are independent of these rows: it finds nobody."""
    view, batches = hybrid(epochs=3)
    guesses = guess_membership(view, most=40)
    others = {at: batches[(at + 1) % len(batches)] for at in batches}
    called = sum(len(guess.members) for guess in guesses)
    hits = sum(len(set(guess.members) & set(others[guess.iteration])) for guess in guesses)
    # A member is another iteration's with probability 16 / 455; five standard errors.
    rate = 16.2 / 455
    assert abs(hits - rate * called) < 5 * (rate * called) ** 0.5


@pytest.mark.slow  # a second or two, and others show the same on less
def test_where_bob_has_columns_the_sparsest_residues_stand_for_the_members():
    view, batches = hybrid(alice_columns=20, batch_size=6, epochs=3)
    assert not view.scores_known
    score = judge_membership(guess_membership(view, most=30), batches)
    assert score.precision is not None
    assert score.base_rate is not None
    assert score.precision > 2 * score.base_rate
    assert score.certified is not None
    assert score.certified > 0.5


def test_there_is_nothing_to_guess_where_no_batch_is_hidden():
    view, _ = run(epochs=1)
    assert guess_membership(view) == ()


def test_tells_how_much_is_done():
    view, _ = hybrid(epochs=1)
    reports: list[tuple[int, int]] = []
    guess_membership(view, most=5, progress=lambda done, total: reports.append((done, total)))
    assert reports == [(number + 1, 2 * 29 + 5) for number in range(2 * 29 + 5)]
