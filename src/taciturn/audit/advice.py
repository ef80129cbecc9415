"""The smallest change that helps against an attack, found by trying.

**Guarantee.** The suggested value was tried in a model of the attack (random columns, coin labels)
and brought what it tells below ``TOLERATED``; the words say what else remains.

**Assumes.** Random columns stand for the real ones. Another attack may still succeed.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from taciturn.audit.rehearsal import Rehearsal
from taciturn.audit.transition import first_hidden
from taciturn.errors import ConfigError
from taciturn.faces import COMMAND_LINE
from taciturn.privacy.base import ResidueMechanism
from taciturn.privacy.batch_response import BatchDesign
from taciturn.privacy.registry import mechanism
from taciturn.results.check import Recommendation
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import OWN_DATA_DEFAULTS

TOLERATED = 0.6
WANTED_EPSILON = 1.0
_LESS = "a smaller --epsilon, or fewer --epochs"
_ROWS = 2000
# Where the search for a smaller epsilon begins: at the first of these that the mechanism accepts.
_SMALL_EPSILONS = tuple(1e-4 * 2.0**step for step in range(20))
_STEPS = 12


def recommendations(agreed: Agreement) -> tuple[Recommendation, ...]:
    """What to use where labels matter, by what else is needed."""
    # Noise on residues is sgd's, whose epochs are not newton's passes.
    epochs = agreed.epochs if agreed.solver == "sgd" else OWN_DATA_DEFAULTS.epochs
    per_release = float(f"{2 * WANTED_EPSILON / epochs:.3g}")
    return (
        Recommendation(
            "the model of centralised training",
            "--mechanism sealed",
            "nothing reaches Alice in clear; rests on the encryption, costs about as much as none",
        ),
        Recommendation(
            "a model that Alice may be told",
            f"--mechanism sealed --solver newton --reveal --reveal-epsilon {WANTED_EPSILON:g}",
            f"epsilon {WANTED_EPSILON:g} in total, for one model with noise; of a few hundred rows "
            "the noise leaves little, of tens of thousands it takes little",
        ),
        Recommendation(
            "a guarantee that does not rest on encryption",
            f"--mechanism label-rr --epsilon {WANTED_EPSILON:g}",
            f"epsilon {WANTED_EPSILON:g} in total, whatever the epochs; the model loses a little; "
            "--over sealed adds the encryption's guarantee",
        ),
        Recommendation(
            "no encryption at all",
            f"--mechanism add --epsilon {per_release:g}",
            f"epsilon {WANTED_EPSILON:g} for a label over {epochs} epochs; fewer epochs "
            "allow less noise; label-rr learns more at the same total",
        ),
    )


def change(attack: str, rehearsal: Rehearsal) -> str:
    """What to change, in words that begin with an option where one helps."""
    method = rehearsal.method
    own = method.advice(attack)
    if own is not None:
        return own.text(COMMAND_LINE)
    if method.label_flips is not None:
        return _lower_ceiling()
    if isinstance(method, ResidueMechanism):
        return _more_noise(rehearsal.terms.agreement)
    if method.hidden_batch is not None:
        return _longer_response(attack, rehearsal, method.hidden_batch)
    if method.claims_protection:
        return _LESS
    if attack == "moments":
        return (
            "do not send sums in clear: --mechanism sealed; or merge categories of few rows, which "
            "hides the rows that stand alone"
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
    return f"--epsilon {most:g} or less: then no guess at even odds is right beyond {share}"


def _larger_batch(rehearsal: Rehearsal) -> str:
    """More rows than columns in every batch, the last one too."""
    least = rehearsal.columns + 1
    for size in range(least, rehearsal.rows + 1):
        if (rehearsal.rows - 1) % size + 1 >= least:
            return f"--batch-size {size}; stacking and known-scores may still solve it"
    return "no batch size has more rows than columns in every batch"


def _fewer_epochs(rehearsal: Rehearsal) -> str:
    agreed = rehearsal.terms.agreement
    most = (rehearsal.batch - 1) // max(1, rehearsal.columns)
    if most < 1:
        size = agreed.epochs * rehearsal.columns + 1
        if size > rehearsal.rows:
            return "use another mechanism: one epoch has as many equations as rows, in any batches"
        return f"--batch-size {size}: one epoch already has as many equations as rows"
    return f"--epochs {most}: more give as many equations as there are rows"


def _longer_response(attack: str, rehearsal: Rehearsal, design: BatchDesign) -> str:
    least = first_hidden(rehearsal.columns, design.true_rows)
    subset = design.marked + math.ceil((least - design.true_rows) / (1 - design.keep))
    if subset > rehearsal.rows:
        return (
            f"sparse recovery stops at about --l-rr {least}, for which there are too few rows "
            f"({subset} needed, {rehearsal.rows} there): use another mechanism"
        )
    rest = "" if attack == "sparse" else "; knowing the scores, Alice needs longer ones still"
    return f"--l-rr {least} or more: sparse recovery fades there{rest}"


def _more_noise(agreed: Agreement) -> str:
    if agreed.epsilon is None:
        return "fewer --epochs, or another mechanism"
    low = next((value for value in _SMALL_EPSILONS if _accepted(agreed, value)), math.inf)
    return _less_epsilon(agreed, low, agreed.epsilon) if low < agreed.epsilon else _LESS


def _accepted(agreed: Agreement, epsilon: float) -> bool:
    """Whether the mechanism can be had at an epsilon: it need not take every one."""
    try:
        mechanism(agreed.model_copy(update={"epsilon": epsilon}))
    except ConfigError:
        return False
    return True


def _less_epsilon(agreed: Agreement, low: float, high: float) -> str:
    """The largest epsilon, from ``low`` to ``high``, at which summed likelihoods are tolerable."""
    if likelihood_success(agreed.model_copy(update={"epsilon": low})) > TOLERATED:
        return "no epsilon helps here: use another mechanism" + (
            ", or a larger --b1" if agreed.b1 else ""
        )
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        if likelihood_success(agreed.model_copy(update={"epsilon": middle})) > TOLERATED:
            high = middle
        else:
            low = middle
    return f"--epsilon {low:.2g} or less, or fewer --epochs"


def likelihood_success(agreed: Agreement, score: float | None = None) -> float:
    """The share of coin labels that summed likelihoods get right after all epochs.

    Scores are spread evenly where none is given: a model that says little of some rows and much of
    others.
    """
    method = cast(ResidueMechanism[Any], mechanism(agreed))
    coins = KeyedEntropy.from_seed(7)
    scores = (
        np.linspace(0.02, 0.98, _ROWS) if score is None else np.full(_ROWS, score, dtype=np.float64)
    )
    labels = (coins.fork("labels").words(_ROWS) & np.uint64(1)).astype(np.int64)
    unit = 1 << agreed.residue_bits
    fitted = np.rint(scores * unit).astype(np.int64)
    total = np.zeros(_ROWS)
    for epoch in range(agreed.epochs):
        draws = method.draw(_ROWS, coins.fork(f"epoch {epoch}"))
        seen = method.release(labels * unit - fitted, draws).value
        one = method.log_probability(seen, unit - fitted)
        other = method.log_probability(seen, -fitted)
        with np.errstate(invalid="ignore"):
            total += np.nan_to_num(one - other, nan=0.0, posinf=1e9, neginf=-1e9)
    right = np.where(total == 0, 0.5, (total > 0) == (labels == 1))
    return float(right.mean())
