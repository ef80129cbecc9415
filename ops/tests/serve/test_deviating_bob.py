"""A Bob who sends other vectors than his share gets no more equations than Alice counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from ops.tests.serve.sides import alice_side, serve_settings, service

from taciturn.arrays import IntArray
from taciturn.crypto.base import EncryptedVector, TableSize
from taciturn.crypto.bfv.layout import Side, Tiling
from taciturn.party.applied_model import AppliedModel
from taciturn.protocol.bob.partners import Partner
from taciturn.protocol.bob.scoring_sealed import SealedRequester
from taciturn.protocol.messages import SealedScores, SealedWeights
from taciturn.protocol.prediction import Scored
from taciturn.protocol.steps import Program, receive, send

# private: a Bob who leaves out his own check
from taciturn_ops.serve.bob import Round, _without_doubtful
from taciturn_ops.serve.rounds import Verdict


def test_what_fills_an_answer_up_tells_nothing_of_a_row(folder, monkeypatch):
    """A polynomial that moves the columns of the one row into the entries behind it."""
    read: list[IntArray] = []

    def key_of(self: Any, partner: Partner, size: TableSize, number: int, block: int) -> Any:
        entropy = self._entropy[partner.name].fork(f"vector {block}")
        key: Any = yield from self._keys[partner.name].offer(entropy)
        tiling = Tiling.for_size(size)
        height, width = tiling.height, tiling.width
        entries = height * width
        vector = np.zeros(entries, np.int64)
        for place in range(1, width + 1):
            vector[height * (width - 1) + place - height * (place - 1)] = 1
        side = Side(entries, entries, 1, entries - 1, 0)
        tiles = EncryptedVector(key.encrypt_tiles(vector[::-1], side), partner.columns)
        yield from send(SealedWeights(number, tiles))
        return key

    def asked(self: Any, partner: Partner, number: int, rows: int, block: int) -> Program[IntArray]:
        size = TableSize(block, partner.columns)
        key = yield from self._key(partner, size, number, block)
        message = yield from receive(SealedScores)
        everything: IntArray = key.decrypt_rows(message.answer, size, slice(0, block))
        read.append(everything)
        return everything[:rows]

    monkeypatch.setattr(SealedRequester, "_key", key_of)
    monkeypatch.setattr(SealedRequester, "_ask", asked)
    with service(folder) as stand:
        assert stand.ask(["p0121"]).verdicts in ((Verdict.HELD,), (Verdict.UNFIT,))
    hers = alice_side(serve_settings(folder, "alice"))
    with hers.resources:
        (row,) = hers.rows.checked(hers.source.take(["p0121"]), ["p0121"]).values
    guessed = read[0][1 : len(row) + 1] / 2.0**hers.used.scales.feature_bits
    # Where what fills up was left as zeros, he had every value of the row.
    assert np.abs(guessed - row).min() > 1.0


def test_scores_near_the_end_of_their_range_are_none(folder):
    """A score that may have wrapped is refused, and its neighbours are given."""
    scored = Scored(np.array([1.0, 99.0, 2.0]), 1, np.array([False, True, False]))
    verdicts = (Verdict.HELD, Verdict.UNKNOWN, Verdict.HELD, Verdict.HELD)
    result = _without_doubtful(Round(verdicts, np.array([0, 2, 3]), scored))
    expected = (Verdict.HELD, Verdict.UNKNOWN, Verdict.UNFIT, Verdict.HELD)
    assert result.verdicts == expected
    assert result.due.tolist() == [0, 3]
    assert result.scored.scores.tolist() == [1.0, 2.0]
    config = serve_settings(folder, "bob")
    scales = AppliedModel.read(config, config.path(config.output.model)).scales
    half = 1 << (scales.modulus_bits - 2)
    assert scales.doubtful(np.array([0, half - 1, half, -half, 1 - half])).tolist() == [
        False,
        False,
        True,
        True,
        False,
    ]
