"""Newton on whole tables, in clear and sealed: parts of rows, told models, held-out rows.

What every conversation promises is in ``test_conversations.py``. What separates weights from those
of the same search in clear is fixed point: a whitened table of ``feature_bits`` digits, and rows'
numbers that move a score by less than 2^-10 (``Scales.for_table``).
"""

from __future__ import annotations

import pytest

from taciturn.engine.transcript import replay
from taciturn.protocol.events import Event
from taciturn.protocol.observations import MomentsSeen
from taciturn_audit.views.recall import RecallScheme
from tests.protocol.stars import Star
from tests.protocol.test_train_table import MANY, OTHERS, PARTED, in_parts, newton


@pytest.mark.parametrize("mechanism", ["sealed", "none"])
def test_a_conversation_in_parts_is_replayed_with_no_bob_present(mechanism):
    run = in_parts(mechanism)
    for again in (PARTED["clear"], RecallScheme(PARTED["clear"])):
        star = Star.of(MANY, newton(mechanism, epochs=2, evaluate="epoch"), 1, again)
        seen: list[Event] = []
        trained = replay(
            star.alice_program(held_out=OTHERS.alice),
            run.transcript,
            verify=again is PARTED["clear"],
            observe=seen.append,
        )
        assert trained.weights.tolist() == run.alice.weights.tolist()
        products = [event.product.tolist() for event in seen if isinstance(event, MomentsSeen)]
        assert products == [event.product.tolist() for event in run.seen(MomentsSeen)]
