"""Search for the smallest change that defeats an attack; leak of predictions.

**Where sparse recovery stops**: the phase transition of basis pursuit. With L unknowns, d equations
of a random matrix and k of the unknowns not zero, ``min |r|_1`` finds them, almost always or almost
never, as ``rho = k/d`` lies below or above a curve of ``delta = d/L`` [DonohoMM09, Eq. 5]::

    M(z) = (1 + z^2) Phi(-z) - z phi(z)
    rho(delta) = max over z >= 0 of (1 - 2 M(z) / delta) / (1 + z^2 - 2 M(z))

The curve is exact for Gaussian matrices in the limit of large sizes. Tables are not Gaussian and
batches not large: near the curve, in a band of some tens of per cent at these sizes, both happen.
``taciturn check`` therefore tries it out as well.

**Joint predictions.** For each row Bob ends with one number, the score ``z = x_A w_A + x_B w_B``
and Alice's noise. But for ``mutual`` he knows the second part, and takes it off: what is left is
one linear function of Alice's columns for each row and each model. No message tells him ``w_A``,
but who reconstructs her columns from the training has it too. Where he has it for as many models as
she has columns, their numbers for a row are as many equations as unknowns, and he solves for the
row; columns of few values take fewer. Where Alice's weights are shared, a Bob who does not keep to
the protocol needs no further model: he sends another vector in place of his share each time, and
takes differences. Alice learns which rows are asked, when and how many. No score and no label
reaches her.

**Guarantee.** The suggested value was tried in a model of the attack (random columns, coin labels)
and brought what it tells below ``TOLERATED``; the words say what else remains.

**Assumes.** Random columns stand for the real ones. Another attack may still succeed.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from scipy.special import ndtr

from taciturn.errors import ConfigError, advised
from taciturn.privacy.base import ResidueMechanism, Sharing
from taciturn.privacy.batch_response import BatchDesign
from taciturn.privacy.registry import mechanism, mechanism_class
from taciturn.protocol.observations import Signal
from taciturn.protocol.openings import SCORE_NOISE_TEXT
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import OWN_DATA_DEFAULTS, Sgd
from taciturn_audit.attacks.base import ModelOnlyControl
from taciturn_audit.rehearsal import Rehearsal
from taciturn_audit.results.check import PredictionNotes, Recommendation
from taciturn_audit.views.alice_view import AliceView

_GRID = np.linspace(0.0, 8.0, 4001)


def largest_sparsity(delta: float) -> float:
    """``rho(delta)``, for delta above 0 and at most 1: the largest k/d that is still recovered.

    >>> round(largest_sparsity(0.5), 3)
    0.386
    """
    if not 0 < delta <= 1:
        raise ValueError("delta must be above 0 and at most 1")
    density = np.exp(-(_GRID**2) / 2) / np.sqrt(2 * np.pi)
    common = (1 + _GRID**2) * ndtr(-_GRID) - _GRID * density
    below = 1 + _GRID**2 - 2 * common
    values = np.divide(1 - 2 / delta * common, below, out=np.zeros_like(below), where=below > 1e-12)
    return float(min(1.0, max(0.0, values.max())))


def recoverable(unknowns: int, equations: int, nonzero: float) -> bool:
    """Whether basis pursuit finds ``nonzero`` unknowns, by the curve.

    >>> recoverable(40, 30, 16), recoverable(1000, 30, 16)
    (True, False)
    """
    if equations >= unknowns:
        return True
    return nonzero / equations <= largest_sparsity(equations / unknowns)


def first_hidden(equations: int, nonzero: float, most: int = 1 << 20) -> int:
    """The smallest number of unknowns at which recovery stops by the curve; ``most`` if none.

    >>> 40 < first_hidden(30, 16) < 100
    True
    """
    low, high = equations + 1, equations + 2
    while high < most and recoverable(high, equations, nonzero):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if recoverable(middle, equations, nonzero):
            low = middle + 1
        else:
            high = middle
    return min(low, most)


def prediction_notes(agreed: Agreement, columns: int) -> PredictionNotes:
    """The notes for an agreement and the number of Alice's prepared columns."""
    return PredictionNotes(_bobs(agreed), _alices(agreed), _repeated(agreed, columns))


def _shared(agreed: Agreement) -> bool:
    return mechanism(agreed).sharing > Sharing.NOTHING


def _bobs(agreed: Agreement) -> str:
    if mechanism(agreed).sharing is Sharing.SCORES:
        return (
            f"one number per row and model: the whole score, {SCORE_NOISE_TEXT}. A second request "
            "of the same rows with other columns of his gives him his weights, and so Alice's part "
            "of each score: treat both as known to him"
        )
    part, columns = "Alice's part of the score", "her columns"
    if agreed.alices > 1:
        part, columns = "the sum of all Alices' parts of the score", "all of their columns"
    return (
        f"one number per row and model: {part}, a linear function of {columns}, "
        f"{SCORE_NOISE_TEXT}; he knows his own part and subtracts it"
    )


def _alices(agreed: Agreement) -> str:
    if _shared(agreed):
        seen = "she receives ciphertexts under Bob's key"
    else:
        seen = "she receives only the handshake"
    return f"which rows, how many and when; no score and no label: {seen}"


def _repeated(agreed: Agreement, columns: int) -> str:
    known = (
        "many of them together disclose her columns"
        if mechanism(agreed).sharing is Sharing.SCORES and not agreed.reveal_bob
        else "where he knows the weights of one model, he has her one column"
        if columns == 1
        else f"{columns} models whose weights he knows give him all {columns} columns of a row, "
        "and fewer do where columns have few values"
    )
    cheating = (
        f". A Bob who deviates from the protocol has all {columns} columns of a row after "
        f"{columns + 1} predictions of it with one model at most, and after fewer where several "
        "columns fit into one number"
        if _shared(agreed)
        else ""
    )
    return (
        "asking again with one model gives the same number with the same noise; each further model "
        f"of the same rows gives Bob one more combination, and {known}{cheating}. Alice decides "
        "how often she answers, or sets a limit: scores-per-row"
    )


TOLERATED = 0.6
WANTED_EPSILON = 1.0
_ROWS = 2000
# Where the search for a smaller epsilon begins: at the first of these that the mechanism accepts.
_SMALL_EPSILONS = tuple(1e-4 * 2.0**step for step in range(20))
_STEPS = 12


def recommendations(agreed: Agreement) -> tuple[Recommendation, ...]:
    """The recommended mechanism for each need, where labels matter."""
    # Noise on residues is sgd's, whose epochs are not newton's passes.
    epochs = agreed.solver.epochs if isinstance(agreed.solver, Sgd) else OWN_DATA_DEFAULTS.epochs
    per_release = float(f"{2 * WANTED_EPSILON / epochs:.3g}")
    if not agreed.kind.has_classes:
        return _for_family(agreed)
    return (
        _joined(),
        *(_with_one_alice() if agreed.alices == 1 else ()),
        Recommendation(
            "a guarantee that does not rest on encryption",
            advised("{mechanism} {epsilon}", mechanism="label-rr", epsilon=WANTED_EPSILON),
            f"epsilon {WANTED_EPSILON:g} in total, whatever the epochs; the model loses a little; "
            + advised("{base_mechanism} adds the encryption's guarantee", base_mechanism="sealed"),
        ),
        Recommendation(
            "no encryption at all",
            advised("{mechanism} {epsilon}", mechanism="add", epsilon=per_release),
            f"epsilon {WANTED_EPSILON:g} for a label over {epochs} epochs; fewer epochs "
            "allow less noise; label-rr learns more at the same total",
        ),
    )


def _joined() -> Recommendation:
    return Recommendation(
        "the model of training on the joined table",
        advised("{mechanism}", mechanism="sealed"),
        "nothing reaches Alice in clear, but Bob can reconstruct her columns; rests on the "
        "encryption, costs about as much as none",
    )


def _for_family(agreed: Agreement) -> tuple[Recommendation, ...]:
    """Those of mechanisms that train labels of more than two classes."""
    hidden = _with_one_alice()[0]
    offered = agreed.alices == 1 and agreed.family in mechanism_class("mutual").families
    return (_joined(), hidden) if offered else (_joined(),)


def _with_one_alice() -> tuple[Recommendation, ...]:
    return (
        Recommendation(
            "the same, and Alice's columns must stay hidden too",
            advised("{mechanism}", mechanism="mutual"),
            "nobody sees a training score; rests on the encryption; a whole training "
            "took 9 to 27 times the processor time of sealed",
        ),
        Recommendation(
            "a model that Alice may learn",
            advised(
                "{mechanism} {reveal} {reveal_epsilon}",
                mechanism="sealed",
                reveal=True,
                reveal_epsilon=WANTED_EPSILON,
            ),
            f"epsilon {WANTED_EPSILON:g} in total, for one model with noise; of a few hundred rows "
            "the noise leaves little, of tens of thousands it takes little",
        ),
    )


def inapplicable(view: AliceView) -> tuple[str, ...]:
    """A note where the paper's attack on residues does not apply, and how to see it."""
    if Signal.MOMENTS not in view.signals:
        return ()
    return (
        advised(
            "newton shows Alice one product over all rows in each pass, so the attacks that solve "
            "a batch for its residues do not apply; {solver} shows them",
            solver="sgd",
        ),
    )


def change(attack: str, rehearsal: Rehearsal) -> str:
    """The change that helps against an attack, an option first where one helps."""
    method = rehearsal.method
    advice = method.advice(attack)
    if advice is not None:
        return advised(advice.template, **advice.values)
    if method.label_flips is not None:
        return _lower_ceiling()
    if isinstance(method, ResidueMechanism):
        return _more_noise(rehearsal.terms.agreement)
    if method.hidden_batch is not None:
        return _longer_response(attack, rehearsal, method.hidden_batch)
    if "bob" not in method.unprotected:
        return _less()
    if attack == ModelOnlyControl.name:
        return advised(
            "do not give Alice the model: {mechanism} without {reveal}; or train on more rows, to "
            "which weights fit less closely",
            mechanism="sealed",
        )
    if attack == "moments":
        return advised(
            "do not send sums in clear: {mechanism}; or merge categories of few rows, which hides "
            "the rows that stand alone",
            mechanism="sealed",
        )
    if attack == "exact-solve":
        return _larger_batch(rehearsal)
    if attack == "stacking":
        return _fewer_epochs(rehearsal)
    return "do not send the gradient in clear: no batch size hides it from all of the attacks"


def _lower_ceiling() -> str:
    """The epsilon of flips at which no attack whatever gets more than tolerated at even odds."""
    most = math.floor(100 * math.log(TOLERATED / (1 - TOLERATED))) / 100
    share = f"{100 * TOLERATED:.0f} %"
    less = advised("{epsilon} or less", epsilon=most)
    return f"{less}: limits any attack to {share} of labels that are as often 0 as 1"


def _less() -> str:
    return advised("a smaller {epsilon}, or fewer {epochs}")


def _larger_batch(rehearsal: Rehearsal) -> str:
    least = rehearsal.own_columns + 1
    for size in range(least, rehearsal.rows + 1):
        if (rehearsal.rows - 1) % size + 1 >= least:
            return advised(
                "{batch_size}; stacking and known-scores may still solve it", batch_size=size
            )
    return "no batch size has more rows than columns in every batch"


def _fewer_epochs(rehearsal: Rehearsal) -> str:
    agreed = rehearsal.terms.agreement
    most = (rehearsal.batch - 1) // max(1, rehearsal.own_columns)
    if most < 1:
        size = agreed.rounds * rehearsal.own_columns + 1
        if size > rehearsal.rows:
            return "use another mechanism: one epoch has as many equations as rows, in any batches"
        return advised(
            "{batch_size}: one epoch already has as many equations as rows", batch_size=size
        )
    return advised("{epochs}: more give as many equations as there are rows", epochs=most)


def _longer_response(attack: str, rehearsal: Rehearsal, design: BatchDesign) -> str:
    least = first_hidden(rehearsal.own_columns, design.true_rows)
    subset = design.marked + math.ceil((least - design.true_rows) / (1 - design.keep))
    if subset > rehearsal.rows:
        there = f"({subset} needed, {rehearsal.rows} there): use another mechanism"
        return advised(
            f"sparse recovery stops at about {{l_rr}}, for which there are too few rows {there}",
            l_rr=least,
        )
    rest = "" if attack == "sparse" else "; knowing the scores, Alice needs longer ones still"
    return advised(f"{{l_rr}} or more: sparse recovery fades there{rest}", l_rr=least)


def _more_noise(agreed: Agreement) -> str:
    if agreed.epsilon is None:
        return advised("fewer {epochs}, or another mechanism")
    low = next((value for value in _SMALL_EPSILONS if _accepted(agreed, value)), math.inf)
    return _less_epsilon(agreed, low, agreed.epsilon) if low < agreed.epsilon else _less()


def _accepted(agreed: Agreement, epsilon: float) -> bool:
    try:
        mechanism(agreed.model_copy(update={"epsilon": epsilon}))
    except ConfigError:
        return False
    return True


def _less_epsilon(agreed: Agreement, low: float, high: float) -> str:
    """The largest epsilon, from ``low`` to ``high``, at which summed likelihoods are tolerable."""
    if likelihood_success(agreed.model_copy(update={"epsilon": low})) > TOLERATED:
        larger = ", or a larger {b1}" if agreed.b1 else ""
        return advised(f"no epsilon helps here: use another mechanism{larger}")
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        if likelihood_success(agreed.model_copy(update={"epsilon": middle})) > TOLERATED:
            high = middle
        else:
            low = middle
    return advised("{epsilon} or less, or fewer {epochs}", epsilon=float(f"{low:.2g}"))


def likelihood_success(agreed: Agreement, score: float | None = None) -> float:
    """Simulated share of random labels that summed likelihoods recover after all epochs.

    Without ``score`` the scores are spread evenly: a model that says little of some rows and much
    of others.
    """
    method = cast(ResidueMechanism[Any], mechanism(agreed))
    entropy = KeyedEntropy.from_seed(7)
    scores = (
        np.linspace(0.02, 0.98, _ROWS) if score is None else np.full(_ROWS, score, dtype=np.float64)
    )
    labels = (entropy.fork("labels").words(_ROWS) & np.uint64(1)).astype(np.int64)
    unit = 1 << agreed.residue_bits
    fitted = np.rint(scores * unit).astype(np.int64)
    total = np.zeros(_ROWS)
    for epoch in range(agreed.rounds):
        draws = method.draw(_ROWS, entropy.fork(f"epoch {epoch}"))
        seen = method.release(labels * unit - fitted, draws).value
        one = method.log_probability(seen, unit - fitted)
        other = method.log_probability(seen, -fitted)
        with np.errstate(invalid="ignore"):
            total += np.nan_to_num(one - other, nan=0.0, posinf=1e9, neginf=-1e9)
    right = np.where(total == 0, 0.5, (total > 0) == (labels == 1))
    return float(right.mean())
