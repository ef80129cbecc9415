"""``lattice`` and ``integer-columns`` on all that Bob decrypts of a block's rows in ``mutual``.

Steps over all rows and over that block alone give several numbers of each row, as attacks need.
The control: exact scores in the same places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from audit.tests.column_attacks.runs import Run, run

from taciturn.arrays import FloatArray, IndexArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector
from taciturn.crypto.clear import ClearScheme
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.transcript import replay as replay_program
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.observations import DirectionScored
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.codec import decode
from taciturn.protocol.joint_seed import seed_of
from taciturn.protocol.messages import CarryShares, Hello, LossShares, ResidueShares, SharedProduct
from taciturn.protocol.mutual import Columns
from taciturn.protocol.mutual_table import TablePlan
from taciturn.protocol.slot_blocks import slot_blocks
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.simulation import RunEntropy
from taciturn_audit.column_attacks.base import ColumnAttack, KnownRows
from taciturn_audit.column_attacks.integer_columns import IntegerColumnsAttack
from taciturn_audit.column_attacks.lattice import LatticeAttack
from taciturn_audit.columns import Truth, controls, judge_columns
from taciturn_audit.results.columns import is_above
from taciturn_audit.views.bob_view import BobView
from tests.modules import module_of

CASES: list[tuple[str, ColumnAttack]] = [
    ("income,debt", LatticeAttack()),
    ("owner,children", IntegerColumnsAttack()),
]
EVERY = pytest.mark.parametrize(("columns", "attack"), CASES, ids=["lattice", "integer-columns"])
SEED = 2
KINDS = {SharedProduct: "scores", ResidueShares: "residues", LossShares: "losses"}


def terms(columns: str) -> dict[str, Any]:
    people = {"label": "label", "rows": 10_300, "alice_columns": columns, "seed": SEED}
    return {**people, "mechanism": "mutual", "passes": 14}


def decrypted(made: Run) -> tuple[TablePlan, dict[str, list[FloatArray]]]:
    """What Bob decrypts of the rows of the first block, by kind: without encryption he reads it."""
    talk, rows = made.view.conversation, made.view.features.rows
    alices, bobs = ([decode(frame) for frame in talk.frames(role)] for role in ("alice", "bob"))
    hellos = (next(one for one in said if isinstance(one, Hello)) for said in (alices, bobs))
    sizes = [Columns(hello.columns, hello.magnitude_bits) for hello in hellos]
    plan = TablePlan.from_terms(Terms(made.view.agreement, ClearScheme()), rows, *sizes)
    said = defaultdict[tuple[str, int], list[Any]](list)
    for message in alices:
        if isinstance(message, SharedProduct):
            # The others are sums over rows.
            if message.iteration % 2 == 0:
                said["scores", message.iteration // 2].append(message.answer)
        elif isinstance(message, ResidueShares | LossShares | CarryShares):
            kind = KINDS.get(type(message), "carries")
            said[kind, message.iteration].append(message.answer)
    taken, first = defaultdict[str, list[FloatArray]](list), plan.schedule.blocks[0].stop
    for (kind, step), answers in said.items():
        if plan.schedule.block(step) in (None, 0):
            taken[kind] += [numbers[:first] for numbers in _of_rows(plan, kind, step, answers)]
    return plan, taken


def _of_rows(
    plan: TablePlan, kind: str, step: int, answers: list[EncryptedAnswer]
) -> Iterable[FloatArray]:
    """The numbers of the rows of a step, in their public order; their range is that of scores."""
    words = [np.frombuffer(answer.data, dtype="<u8") for answer in answers]
    if kind == "scores":
        whole = np.concatenate(words).view(np.int64)
        yield np.ldexp(
            plan.ring(plan.alice).centred(whole).astype(float), 7 - plan.scales.modulus_bits
        )
        return
    narrow = plan.is_narrow(step)
    if kind == "carries" and not narrow:
        return
    slots = plan.narrow if narrow and kind == "residues" else plan.slots
    place = plan.schedule.rows_of(step)
    # The carries of weights come after those of residues.
    entries = 1 if kind == "carries" else plan.sigmoid_in(step).entries
    blocks = slot_blocks(slots, place.stop - place.start, entries)
    sums = [
        block.sums(part, slots.modulus)
        for block, part in zip(blocks, words, strict=kind != "carries")
    ]
    yield 128.0 * (np.concatenate(sums).astype(float) / slots.modulus - 0.5)


Sides: TypeAlias = tuple[FeatureTable, FeatureTable, LabelTable]


def block_rows(made: Run) -> IndexArray:
    """The rows of the first block."""
    plan, entropy = decrypted(made)[0], RunEntropy.for_seed(SEED)
    order = plan.row_order(seed_of(entropy.alice, entropy.bob))
    assert order is not None
    return order[plan.schedule.blocks[0]]


def sides_of(made: Run, rows: IndexArray) -> Sides:
    """Both sides' columns of some training rows, and the labels."""
    data = made.outcome.data
    return data.alice_train.take(rows), data.bob_train.take(rows), data.labels_train.take(rows)


def recovers(
    attack: ColumnAttack,
    view: BobView,
    sides: Sides,
    numbers: Iterable[FloatArray],
) -> bool:
    """Whether the attack is above both controls, with these numbers as scores of all rows."""
    hers, his, labels = sides
    view, direction = replace(view, features=his, labels=labels), np.zeros(his.rows)
    view.__dict__["observations"] = tuple(
        DirectionScored(at, direction, scores) for at, scores in enumerate(numbers)
    )
    nothing, truth = KnownRows.none(view.columns), Truth.from_table(hers)
    judged = judge_columns(attack.name, attack.estimate(view, nothing), truth, nothing)
    return is_above(judged, controls(truth, his, labels))


@EVERY
def test_nothing_that_bob_decrypts_tells_columns(columns, attack):
    made = run(**terms(columns))
    _, taken = decrypted(made)
    counts = {kind: len(numbers) for kind, numbers in taken.items()}
    # Of 36 steps: 3 over all rows, without the first, and 4 over the block. Two sum their loss.
    assert counts == {"scores": 7, "residues": 7, "carries": 5, "losses": 2}
    data, rows = made.outcome.data, block_rows(made)
    block = sides_of(made, rows)
    together = [one for numbers in taken.values() for one in numbers]
    # Scores of a later prediction of these rows, with its noise.
    predicted = [made.outcome.train_scores[rows]]
    for numbers in (*taken.values(), together, predicted):
        assert not recovers(attack, made.view, block, numbers)
    agreed, method = Terms(made.view.agreement, ClearScheme()), mechanism(made.view.agreement)
    inputs = BobInputs(
        made.view.features,
        made.view.labels,
        agreed,
        method,
        Ledger(made.view.labels.rows, method.assumption),
        made.view.entropy,
        held_out=made.view.held_out,
    )
    held_out = replay_program(
        bob_program(inputs), made.view.conversation, role="bob", verify=False
    ).held_out_scores
    assert held_out is not None
    new = data.alice_test, data.bob_test, data.labels_test
    assert not recovers(attack, made.view, new, [held_out])


@EVERY
def test_exact_scores_in_their_place_do(columns, attack, monkeypatch):
    """Products with small weights, new in each step, under no mask."""
    table, steps = module_of(ClearScheme).ClearTable, KeyedEntropy.from_seed(4)
    product = table.product

    def exact(own: Any, vector: EncryptedVector, mask: Any, *rest: Any) -> EncryptedAnswer:
        weights = steps.integers(1 << 34, vector.length).astype("<i8")
        answer: EncryptedAnswer = product(
            own, EncryptedVector(weights.tobytes(), vector.length), 0 * mask, *rest
        )
        return answer

    monkeypatch.setattr(table, "product", exact)
    # Not the run of another test.
    opened = run.__wrapped__(**terms(columns))
    block = sides_of(opened, block_rows(opened))
    assert recovers(attack, opened.view, block, decrypted(opened)[1]["scores"])
