"""Pictures of what Alice sees under each mechanism, one each, drawn from the exact laws.

``python -m taciturn_paper.distributions DIR`` writes ``none.svg``, ``add.svg``, ``mult.svg``,
``hybrid.svg``, ``sealed.svg``, ``mutual.svg`` and ``label-rr.svg``; those in ``docs/mechanisms``
are what it writes. Only the pictures of ``none`` (a split and shuffled labels) and ``sealed``
(trainings) draw anything, by fixed seeds.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import binom

from taciturn.arrays import FloatArray
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.engine.pair import run_star
from taciturn.errors import LocalProtocolError, OutputError
from taciturn.jobs.train.reference import SharedModel
from taciturn.jobs.train.simulation import programs
from taciturn.numerics.periodic_sigmoid import PeriodicSigmoid, half_range
from taciturn.numerics.sgd import batches
from taciturn.privacy.additive import Additive
from taciturn.privacy.base import ResidueMechanism
from taciturn.privacy.batch_response import BatchDesign, acceptance, design
from taciturn.privacy.events import AdditiveNoise, LabelResponse
from taciturn.privacy.label_response import FlippedLabels
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.multiplicative import VARIANTS
from taciturn.privacy.noise import LaplaceDraws
from taciturn.privacy.prices import price
from taciturn.privacy.solvers import resolved
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.agree import agree
from taciturn.protocol.outcome import BobTrained
from taciturn.settings.schema import Settings, Variant, dataset_defaults
from taciturn.simulation import RunEntropy, arrange, load_raw
from taciturn_audit.attacks.linear import DETERMINED

ADD_SCORE, ADD_EPSILONS = 0.7, (1.0, 10.0)
MULT_SCORE, MULT_EPSILON, MULT_B1, MULT_B2 = 0.9, 1.0, 0.1, 1.0
HYBRID_EPSILON = 1.0
# Alice's columns in the paper's experiments (all of them), and the training rows.
SHAPES = {
    "breast-cancer": (30, 455),
    "sklearn-digits": (64, 1437),
    "census-income": (81, 39_073),
    "give-me-some-credit": (10, 120_000),
}
NONE_SEED = 0
# The defaults of score-range and sigmoid-error.
MUTUAL_RANGE, MUTUAL_ERROR = 64.0, 3e-3
SEALED_SEEDS = 30
NONE_SIZES = (4, 8, 12, 16, 20, 24, 28, 30, 31, 32, 36, 44, 52, 64, 76, 90, 110, 130, 150)

RR_TOTALS = tuple(float(total) for total in np.geomspace(0.1, 10.0, 13))
RR_EPOCHS, RR_EPSILONS = (1, 10), (1.0, 3.0, 10.0)
RR_SCORES = np.linspace(-12.0, 12.0, 241)

_BITS = 20
_POINTS = 401
_INVISIBLE = 1e-4
# Okabe and Ito's colours, which colour-blind people tell apart.
_ONE, _ZERO, _MARK, _GREY = "#0072b2", "#d55e00", "#009e73", "#555555"
_STYLE: Mapping[Any, Any] = {
    "svg.hashsalt": "taciturn",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.dpi": 100,
}


@dataclass(frozen=True, slots=True)
class Seen:
    """The law of what Alice sees of one row: its density at ``values``, and its atoms."""

    label: int
    values: FloatArray = field(repr=False)
    density: FloatArray = field(repr=False)
    atoms: Mapping[float, float]


def seen_with_add(epsilon: float) -> tuple[Seen, Seen]:
    """The released residue of a row with label 1, and with label 0, at the known score."""
    reach = 8.0 / epsilon if epsilon < 4 else 2.0
    values = np.linspace(-reach, reach, _POINTS)
    return _both(Additive(AdditiveNoise(epsilon), _BITS), ADD_SCORE, values, ())


def seen_with_mult(variant: Variant) -> tuple[Seen, Seen]:
    """The same for a variant of ``mult``, whose outer clip makes atoms."""
    subject = VARIANTS[variant](MULT_EPSILON, MULT_B1, MULT_B2, _BITS)
    # Just short of the clip: the clip itself is a point with a probability, not a density.
    values = np.linspace(-MULT_B2, MULT_B2, _POINTS)[1:-1]
    return _both(subject, MULT_SCORE, values, (-MULT_B2, MULT_B2))


def _both(
    subject: ResidueMechanism[LaplaceDraws],
    score: float,
    values: FloatArray,
    ends: tuple[float, ...],
) -> tuple[Seen, Seen]:
    return _seen(subject, 1, score, values, ends), _seen(subject, 0, score, values, ends)


def _seen(
    subject: ResidueMechanism[LaplaceDraws],
    label: int,
    score: float,
    values: FloatArray,
    ends: tuple[float, ...],
) -> Seen:
    def law(at: FloatArray) -> FloatArray:
        density: FloatArray = np.exp(subject.log_density(at, np.full_like(at, label - score)))
        return density

    masses = zip(ends, law(np.array(ends)).tolist(), strict=True)
    return Seen(label, values, law(values), {end: mass for end, mass in masses if mass > 0})


def accuracy_against_add(epsilon: float, releases: int) -> float:
    """Accuracy of the best label guess after this many releases, with known scores.

    Both labels are taken as equally likely; without a release it is one half. The best guess is
    right with probability ``(1 + TV) / 2``, TV being the total variation between the two laws.

    >>> round(accuracy_against_add(10.0, 1), 3)
    0.959
    """
    from dp_accounting.pld import privacy_loss_distribution

    label = price(AdditiveNoise(epsilon)).label
    one = privacy_loss_distribution.from_laplace_mechanism(
        1.0 / label, value_discretization_interval=label / 2000
    )
    return (1.0 + float(one.self_compose(releases).get_delta_for_epsilon(0.0))) / 2


@dataclass(frozen=True, slots=True)
class Drawn:
    """The laws of a hidden batch's sizes, before any redrawing.

    ``asked`` and ``true`` are the probabilities that Alice scores, and that the true batch has, 0,
    1, 2, … rows; ``redrawn`` that she would score no more rows than she has columns.
    """

    design: BatchDesign
    columns: int
    asked: FloatArray = field(repr=False)
    true: FloatArray = field(repr=False)
    redrawn: float


def hidden_batch(dataset: str) -> Drawn:
    """The laws at the paper's sizes for a dataset.

    >>> hidden_batch("breast-cancer").design
    BatchDesign(subset=111, marked=22, epsilon=1.0)
    """
    columns, rows = SHAPES[dataset]
    paper = dataset_defaults(dataset)
    chosen = design(paper.batch_size, HYBRID_EPSILON, columns, rows, l_rr=paper.l_rr)
    beyond = np.array([acceptance(chosen, at) for at in range(-1, chosen.subset + 1)])
    marks = np.arange(chosen.marked + 1)
    return Drawn(
        design=chosen,
        columns=columns,
        asked=beyond[:-1] - beyond[1:],
        true=np.asarray(binom.pmf(marks, chosen.marked, chosen.keep)),
        redrawn=1.0 - acceptance(chosen, columns),
    )


@dataclass(frozen=True, slots=True)
class Determined:
    """Labels determined by the first epoch's gradients, by batch size; labels are shuffled.

    ``determined`` is the share of rows whose residue the equations fix, ``signs`` of those whose
    label is the sign of the least-norm solution, ``commoner`` that of the commoner label.
    """

    sizes: tuple[int, ...]
    determined: tuple[float, ...]
    signs: tuple[float, ...]
    commoner: float


def revealed_gradient(dataset: str = "breast-cancer") -> Determined:
    """Solves ``X^T r = X^T (y - 1/2)`` for full batches of each size: weights are zero at first."""
    wanted = {
        "dataset": dataset,
        "mechanism": "none",
        "solver": "sgd",
        "permute_labels": True,
        "seed": NONE_SEED,
    }
    settings = resolved(Settings.from_mapping(wanted))
    entropy = RunEntropy.for_seed(NONE_SEED)
    data = arrange(settings, load_raw(settings), entropy.data)
    features, labels = data.alice_train.values, data.labels_train.values
    order = entropy.bob.permutation(len(labels))
    measured = []
    for size in NONE_SIZES:
        rows = np.stack([batch for batch in batches(order, size) if len(batch) == size])
        u, s, _ = np.linalg.svd(features[rows], full_matrices=False)
        kept = s > s[:, :1] * max(features[rows].shape[1:]) * np.finfo(np.float64).eps
        basis = u * kept[:, None, :]
        residues = labels[rows] - 0.5
        solved = np.einsum("kbd,kcd,kc->kb", basis, basis, residues, optimize=True)
        determined = (basis**2).sum(axis=2) >= DETERMINED
        measured.append((float(determined.mean()), float((solved * residues > 0).mean())))
    shares = tuple(zip(*measured, strict=True))
    ones = float(labels.mean())
    return Determined(NONE_SIZES, shares[0], shares[1], max(ones, 1 - ones))


def draw_none() -> Figure:
    """Plot the shares of residues and labels that a batch's gradient reveals, by batch size."""
    measured, columns = revealed_gradient(), SHAPES["breast-cancer"][0]
    figure, (axes,) = _panels(1, 1, 7.2, 3.6)
    figure.suptitle("none: what one gradient says about labels (breast-cancer, labels shuffled)")
    axes.plot(measured.sizes, _percent(measured.determined), color=_ZERO, marker="s", ms=4)
    axes.plot(measured.sizes, _percent(measured.signs), color=_ONE, marker="o", ms=4)
    axes.axhline(100 * measured.commoner, color=_GREY, ls="--", lw=1)
    axes.axvline(columns, color=_MARK, lw=1)
    axes.text(columns + 1.5, 4, f"d_A = {columns} equations", color=_MARK)
    axes.text(41, 24, "residue fixed by the equations", color=_ZERO)
    axes.text(64, 87, "sign of the least-norm solution is the label", color=_ONE)
    axes.text(2, 100 * measured.commoner - 6, "commoner label", color=_GREY)
    axes.set(xlabel="rows in the batch", ylabel="share of rows, %", xlim=(0, 152), ylim=(-3, 104))
    return figure


def draw_add() -> Figure:
    """The density of a released residue for both labels."""
    figure, panels = _panels(1, 2, 8.6, 3.5)
    figure.suptitle(f"add: one released residue of a row with known score {ADD_SCORE:g}")
    for axes, epsilon in zip(panels, ADD_EPSILONS, strict=True):
        for seen in seen_with_add(epsilon):
            _curve(axes, seen)
            axes.axvline(seen.label - ADD_SCORE, color=_colour(seen), lw=0.8, ls=":")
        accuracy = accuracy_against_add(epsilon, 1)
        axes.set_title(
            f"claimed ε = {epsilon:g}: label ε = {price(AdditiveNoise(epsilon)).label:g}, "
            f"guessed right {100 * accuracy:.1f} %"
        )
        axes.set(xlabel="released residue", ylim=(0, None))
    panels[0].set_ylabel("density")
    panels[0].legend(loc="upper left")
    return figure


def draw_mult() -> Figure:
    """The law of a released residue for both labels, under each variant."""
    figure, panels = _panels(1, 3, 10.4, 3.8, sharey=True)
    figure.suptitle(
        f"mult: one released residue of a row with known score {MULT_SCORE:g} "
        f"(claimed ε = {MULT_EPSILON:g}, b1 = {MULT_B1:g}, b2 = {MULT_B2:g})"
    )
    for axes, (variant, make) in zip(panels, VARIANTS.items(), strict=True):
        pair = seen_with_mult(variant)
        for seen in pair:
            _curve(axes, seen)
            _stems(axes, seen)
        label = price(make(MULT_EPSILON, MULT_B1, MULT_B2, _BITS).event).label
        true = "infinite" if math.isinf(label) else f"{label:.2f}"
        axes.set_title(f"{variant}: true ε = {true}")
        axes.set(xlabel="released residue", yscale="log", ylim=(0.015, 2), xlim=(-1.2, 1.2))
        axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−b2", "−0.5", "0", "0.5", "b2"])
    densities = [float(seen.density[len(seen.density) // 2]) for seen in seen_with_mult("printed")]
    low, high = min(densities), max(densities)
    panels[0].annotate("", (0, high), (0, low), arrowprops={"arrowstyle": "<->", "color": _GREY})
    loss = f"ln 9 = {math.log(high / low):.2f}"
    panels[0].text(0.05, math.sqrt(high * low), loss, color=_GREY)
    panels[0].set_ylabel("density; at ±b2 probability")
    panels[0].legend(loc="upper left")
    return figure


def draw_hybrid() -> Figure:
    """Plot the rows that Alice scores and the true batch, at the paper's sizes."""
    figure, panels = _panels(2, 2, 9.4, 6.2)
    figure.suptitle(f"hybrid: sizes of one draw at ε = {HYBRID_EPSILON:g}, before redrawing")
    for axes, dataset in zip(panels, SHAPES, strict=True):
        drawn = hidden_batch(dataset)
        short = drawn.columns + 1
        _stairs(axes, drawn.asked, _ZERO, "L_RR: rows that Alice scores")
        _stairs(axes, drawn.asked[:short], "#000000", "L_RR ≤ d_A: redrawn")
        _stairs(axes, drawn.true, _ONE, "k: rows of the true batch", fill=False)
        axes.axvline(drawn.columns + 0.5, color=_MARK, lw=1)
        top = 100 * max(drawn.asked.max(), drawn.true.max())
        axes.text(drawn.columns + 0.9, 1.05 * top, f"d_A = {drawn.columns}", color=_MARK)
        axes.set_title(f"{dataset}: {100 * drawn.redrawn:.1f} % redrawn")
        likely = np.flatnonzero(drawn.asked > _INVISIBLE)
        axes.set(xlim=(0, likely.max() + 2), ylim=(0, 1.16 * top))
    for axes in panels[2:]:
        axes.set_xlabel("rows")
    for axes in panels[::2]:
        axes.set_ylabel("probability, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def shares(flipped: bool) -> tuple[FloatArray, FloatArray]:
    """Alice's shares of all weights after some trainings, in parts of the modulus, and the weights.

    ``flipped`` trains on the opposite of every label, with the same entropy.
    """
    settings = resolved(
        Settings.from_mapping(
            {"dataset": "breast-cancer", "mechanism": "sealed", "scheme": "clear", "passes": 1}
        )
    )
    raw = load_raw(settings)
    if flipped:
        opposite = LabelTable(raw.labels.ids, 1 - raw.labels.values)
        raw = replace(raw, labels=opposite)
    pairs = [_shared(settings, raw, RunEntropy.for_seed(seed)) for seed in range(SEALED_SEEDS)]
    held = [pair.alices[0].values / 2.0**pair.scales.modulus_bits for pair in pairs]
    return np.concatenate(held), np.concatenate([pair.weights for pair in pairs])


def _shared(settings: Settings, raw: RawData, entropy: RunEntropy) -> SharedModel:
    """Both shares at the end of one training."""
    data = arrange(settings, raw, entropy.data)
    terms = agree(settings, len(data.alice_train.columns), data.labels_train.rows)
    ledger = Ledger(data.labels_train.rows, "")
    alices, bob = run_star(*programs(data, terms, entropy, ledger))
    trained = [alice.trained for alice in alices.values()]
    shared = SharedModel.from_trained(trained, cast(BobTrained, bob.trained))
    if shared is None:
        raise LocalProtocolError("the training left no shares")
    return shared


def draw_sealed() -> Figure:
    """Plot Alice's final weights with the labels, with their opposites, and the true ones."""
    figure, (held, meant) = _panels(1, 2, 9.4, 3.8)
    figure.suptitle(f"sealed: breast-cancer, one pass, {SEALED_SEEDS} trainings")
    for flipped, colour, name in ((False, _ONE, "labels y"), (True, _ZERO, "labels 1 − y")):
        share, weights = shares(flipped)
        style: dict[str, Any] = {
            "histtype": "step",
            "lw": 1.8 if flipped else 3.2,
            "color": colour,
            "label": name,
        }
        held.hist(share, bins=20, range=(-0.5, 0.5), ls=":" if flipped else "-", **style)
        meant.hist(weights, bins=40, **style)
    expected = SEALED_SEEDS * SHAPES["breast-cancer"][0] / 20
    held.axhline(expected, color=_GREY, lw=1, ls="--", label="uniform")
    held.set(xlabel="Alice's share u, in parts of the modulus", ylabel="weights", ylim=(0, None))
    held.legend(loc="lower center")
    meant.set(xlabel="the weight u + v, which nobody holds", ylabel="weights")
    meant.legend(loc="upper right")
    return figure


def draw_mutual() -> Figure:
    """The sigmoid on the whole ring of a shared score, and how far off it is within the range."""
    sigmoid = PeriodicSigmoid.with_error(half_range(MUTUAL_RANGE, MUTUAL_ERROR), MUTUAL_ERROR)
    figure, (whole, apart) = _panels(1, 2, 9.4, 3.8)
    figure.suptitle(f"mutual: a sum of {sigmoid.waves} waves in place of the sigmoid")
    ring = np.linspace(-sigmoid.half_range, sigmoid.half_range, 801)
    whole.plot(ring, sigmoid(ring), color=_ONE, lw=1.8, label="sum of waves")
    whole.plot(ring, expit(ring), color=_GREY, lw=1, ls="--", label="sigmoid")
    for end in (-MUTUAL_RANGE, MUTUAL_RANGE):
        whole.axvline(end, color=_GREY, lw=1, ls=":")
    whole.set(xlabel="score, over the whole ring", ylabel="probability")
    whole.legend(loc="upper left")
    inside = np.linspace(-MUTUAL_RANGE, MUTUAL_RANGE, 801)
    apart.plot(inside, sigmoid(inside) - expit(inside), color=_ONE, lw=1.2, label="difference")
    for sign in (-1, 1):
        bound = sign * sigmoid.bound(MUTUAL_RANGE)
        apart.axhline(bound, color=_GREY, lw=1, ls="--", label="its bound" if sign > 0 else None)
    apart.set(xlabel="score, within the range", ylabel="difference")
    apart.legend(loc="upper left")
    return figure


def accuracy_against_flips(epsilon: float) -> float:
    """Probability that a flipped label is true: the best guess after any number of epochs.

    >>> round(accuracy_against_flips(1.0), 4)
    0.7311
    """
    return FlippedLabels(LabelResponse(epsilon), Unprotected()).keep


def residues_of_a_flipped_one(epsilon: float) -> FloatArray:
    """Residues that enter the gradient for a flipped label of 1, at each of ``RR_SCORES``."""
    method = FlippedLabels(LabelResponse(epsilon), Unprotected())
    return method.residue(RR_SCORES, np.ones(len(RR_SCORES), np.int8))


def _epochs(number: int) -> str:
    return "1 epoch" if number == 1 else f"{number} epochs"


def draw_label_rr() -> Figure:
    """Plot the accuracy of the best guess by total epsilon, and residues of a flipped label."""
    figure, (guesses, residues) = _panels(1, 2, 9.4, 3.8)
    figure.suptitle("label-rr: one flip of each label, and a training that knows of it")
    flips = tuple(accuracy_against_flips(total) for total in RR_TOTALS)
    guesses.plot(RR_TOTALS, _percent(flips), color=_ONE, lw=1.8, label="label-rr, any epochs")
    for epochs, dashes in zip(RR_EPOCHS, ("--", ":"), strict=True):
        noisy = tuple(accuracy_against_add(2 * total / epochs, epochs) for total in RR_TOTALS)
        guesses.plot(
            RR_TOTALS, _percent(noisy), dashes, color=_ZERO, label=f"add, {_epochs(epochs)}"
        )
    guesses.set(xlabel="label ε in total", ylabel="best guess is right, %", xscale="log")
    guesses.set(ylim=(48, 102))
    guesses.legend(loc="upper left")
    for epsilon, colour in zip(RR_EPSILONS, (_ZERO, _MARK, _ONE), strict=True):
        expected = residues_of_a_flipped_one(epsilon)
        residues.plot(RR_SCORES, expected, color=colour, lw=1.8, label=f"ε = {epsilon:g}")
    residues.plot(RR_SCORES, 1 - expit(RR_SCORES), color=_GREY, lw=1, ls=":", label="no flips")
    residues.set(xlabel="score z", ylabel="residue of a flipped label of 1", ylim=(0, None))
    residues.legend(loc="upper right")
    return figure


FIGURES: Mapping[str, Callable[[], Figure]] = MappingProxyType(
    {
        "none": draw_none,
        "add": draw_add,
        "mult": draw_mult,
        "hybrid": draw_hybrid,
        "sealed": draw_sealed,
        "mutual": draw_mutual,
        "label-rr": draw_label_rr,
    }
)


def svg(name: str) -> bytes:
    """The picture of a mechanism; the same bytes each time."""
    with style():
        buffer = io.BytesIO()
        FIGURES[name]().savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    # Matplotlib ends some lines with a blank, which version control does not like.
    return b"\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + b"\n"


@contextmanager
def style() -> Iterator[None]:
    """The look of all pictures."""
    with mpl.rc_context():
        # A person's own settings must not show.
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def _panels(
    rows: int, columns: int, width: float, height: float, *, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height), layout="constrained")
    made = figure.subplots(rows, columns, sharey=sharey, squeeze=False)
    return figure, [axes for row in made for axes in row]


def _colour(seen: Seen) -> str:
    return _ONE if seen.label else _ZERO


def _curve(axes: Axes, seen: Seen) -> None:
    shown = np.where(seen.density > 0, seen.density, np.nan)
    dashes = "-" if seen.label else "--"
    axes.plot(seen.values, shown, dashes, color=_colour(seen), lw=1.8, label=f"label {seen.label}")


def _stems(axes: Axes, seen: Seen) -> None:
    # Side by side, so that neither hides the other.
    aside = 0.04 if seen.label else 0.09
    for end, mass in seen.atoms.items():
        at = end + math.copysign(aside, end)
        axes.plot([at, at], [0.015, mass], color=_colour(seen), lw=1.2)
        marker = "o" if seen.label else "s"
        axes.plot([at], [mass], marker, color=_colour(seen), ms=5)
        axes.annotate(
            f"{mass:.2f}",
            (at, mass),
            (math.copysign(7, -end), 1 if seen.label else 3),
            textcoords="offset points",
            ha="right" if end > 0 else "left",
            color=_colour(seen),
        )


def _stairs(axes: Axes, law: FloatArray, colour: str, name: str, *, fill: bool = True) -> None:
    likely = np.flatnonzero(law > _INVISIBLE)
    first, last = int(likely.min()), int(likely.max())
    edges = np.arange(first, last + 2) - 0.5
    axes.stairs(100 * law[first : last + 1], edges, fill=fill, color=colour, lw=1.8, label=name)


def _percent(shares: tuple[float, ...]) -> list[float]:
    return [100 * share for share in shares]


def main(arguments: list[str]) -> None:
    """Write every picture into a folder."""
    folder = Path(arguments[0] if arguments else "docs/mechanisms")
    for name in FIGURES:
        path = folder / f"{name}.svg"
        try:
            path.write_bytes(svg(name))
        except OSError as problem:
            raise OutputError(
                f"the picture cannot be written: {problem.strerror}", where=str(path)
            ) from None


if __name__ == "__main__":
    main(sys.argv[1:])
