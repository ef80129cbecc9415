"""The pictures of the mechanisms are the committed ones, and their numbers are the exact laws'."""

from __future__ import annotations

import math
import re
import shlex
import xml.etree.ElementTree as ET
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from taciturn.__main__ import run
from taciturn.errors import OutputError
from taciturn.privacy.additive import Additive
from taciturn.privacy.batch_response import BatchDesign, draw_batch
from taciturn.privacy.events import AdditiveNoise, PrintedFactor
from taciturn.privacy.multiplicative import VARIANTS
from taciturn.privacy.noise import draw
from taciturn.privacy.prices import price, printed_label_price
from taciturn.privacy.registry import MECHANISMS
from taciturn.rng import KeyedEntropy
from taciturn_paper import distributions as subject
from taciturn_paper.claims import B1, B2, EPSILONS
from tests.expected import refused
from tests.seldom import seldom

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PICTURES = DOCS / "mechanisms"
OWN_PAGES = {"sealed", "mutual"}
UNIT = 1 << 20


def page(name: str) -> str:
    """A mechanism's page or section in one line, so that a phrase may stand across two."""
    return " ".join(section(name).split())


def section(name: str) -> str:
    if name in OWN_PAGES:
        return (DOCS / f"{name}.md").read_text(encoding="utf-8")
    return sections()[name]


def sections() -> dict[str, str]:
    """The sections of the page on mechanisms whose heading is a mechanism."""
    text = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
    parts = re.split(r"^## `([a-z-]+)`$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def pinned(name: str) -> str:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    (version,) = re.findall(rf"^{name}==(.*)$", constraints, re.MULTILINE)
    return str(version)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    subject.main([str(folder)])
    return folder


def test_every_mechanism_has_a_section_or_page_with_its_picture_and_nothing_else_has():
    assert set(sections()) | OWN_PAGES == set(MECHANISMS)
    assert set(subject.FIGURES) == {path.stem for path in PICTURES.glob("*.svg")} == set(MECHANISMS)
    for name in MECHANISMS:
        assert f"](mechanisms/{name}.svg)" in page(name)


@pytest.mark.slow  # draws every picture: ten seconds
@pytest.mark.parametrize("name", subject.FIGURES)
def test_the_committed_picture_is_what_the_command_writes(name, written):
    made, kept = (folder / f"{name}.svg" for folder in (written, PICTURES))
    if version("matplotlib") == pinned("matplotlib"):
        assert made.read_bytes() == kept.read_bytes(), "remake it: see the module's docstring"
    assert words(made) == words(kept)
    assert kept.stat().st_size < 100_000


def words(path: Path) -> list[str]:
    """The texts of a picture: they are drawn as shapes, with the words in a comment beside them."""
    ET.fromstring(path.read_bytes())  # noqa: S314 - our own text
    return re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with refused(OutputError, names="none.svg"):
        subject.main([str(tmp_path / "nowhere")])


@pytest.mark.parametrize("epsilon", subject.ADD_EPSILONS)
def test_the_curves_of_add_are_the_law_of_the_noise_on_the_grid(epsilon):
    mechanism = Additive(AdditiveNoise(epsilon), 20)
    for seen, label in zip(subject.seen_with_add(epsilon), (1, 0), strict=True):
        assert seen.label == label
        assert not seen.atoms
        released = np.rint(seen.values * UNIT).astype(np.int64)
        residue = np.full_like(released, label * UNIT - round(subject.ADD_SCORE * UNIT))
        on_grid = np.exp(mechanism.log_probability(released, residue)) * UNIT
        np.testing.assert_allclose(seen.density, on_grid, rtol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_curves_of_mult_are_the_law_on_the_grid_and_sum_to_one(variant):
    mechanism = VARIANTS[variant](subject.MULT_EPSILON, subject.MULT_B1, subject.MULT_B2, 20)
    for seen, label in zip(subject.seen_with_mult(variant), (1, 0), strict=True):
        ends = np.array([-UNIT, UNIT])
        released = np.concatenate([np.rint(seen.values * UNIT).astype(np.int64), ends])
        residue = np.full_like(released, label * UNIT - round(subject.MULT_SCORE * UNIT))
        law = np.exp(mechanism.log_probability(released, residue))
        away = np.abs(seen.values) > 1e-6  # one-sided: zero has one side only
        np.testing.assert_allclose(seen.density[away], law[:-2][away] * UNIT, rtol=1e-4)
        atoms = [seen.atoms.get(end, 0.0) for end in (-1.0, 1.0)]
        np.testing.assert_allclose(atoms, law[-2:], rtol=1e-4)
        inside = seen.density.mean() * 2 * subject.MULT_B2
        assert inside + sum(atoms) == pytest.approx(1.0, abs=0.003)


def test_the_gap_in_the_picture_of_mult_is_the_price_at_that_score():
    event = PrintedFactor(subject.MULT_EPSILON, subject.MULT_B1, subject.MULT_B2)
    one, zero = (seen.density[len(seen.density) // 2] for seen in subject.seen_with_mult("printed"))
    # b1 is rounded up to the grid, a part in 2^17.
    price = printed_label_price(event, subject.MULT_SCORE)
    assert math.log(one / zero) == pytest.approx(price, rel=1e-5)
    assert math.log(one / zero) == pytest.approx(math.log(9), rel=1e-5)
    assert "ln 9 = 2.20" in words(PICTURES / "mult.svg")


def test_the_best_guess_after_some_releases_is_as_good_as_said():
    """400,000 draws of one release and 40,000 of ten: five standard errors, below 1e-5 of alarm."""
    mechanism = Additive(AdditiveNoise(1.0), 20)
    entropy = KeyedEntropy.from_seed(5)
    for releases, count in ((1, 400_000), (10, 40_000)):
        noise = draw(count * releases, entropy.fork(str(releases))).noise(mechanism.divisor)
        released = (UNIT - round(0.7 * UNIT) + noise).reshape(count, releases)
        one, zero = (
            mechanism.log_probability(
                released, np.full_like(released, label * UNIT - round(0.7 * UNIT))
            )
            for label in (1, 0)
        )
        odds = (one - zero).sum(axis=1)
        right = (odds > 1e-9).mean() + (np.abs(odds) <= 1e-9).mean() / 2
        # By symmetry a label of 0 is guessed as often.
        assert right == pytest.approx(
            subject.accuracy_against_add(1.0, releases), abs=2.5 / count**0.5
        )


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
def test_the_page_of_add_says_what_is_computed(epsilon):
    once, often = (100 * subject.accuracy_against_add(epsilon, releases) for releases in (1, 10))
    repeated = "over 99.99" if often > 99.99 else f"{often:.1f}"
    row = f"| {epsilon:g} | {epsilon / 2:g} | {epsilon * 5:g} | {once:.1f} | {repeated} |"
    assert row in page("add")


@pytest.mark.parametrize("dataset", seldom(subject.SHAPES, always=["breast-cancer"]))
def test_the_sizes_of_a_hidden_batch_are_those_of_its_draws(dataset):
    """1,000 draws each: five standard errors."""
    laws = subject.hidden_batch(dataset)
    assert laws.asked.sum() == pytest.approx(1.0)
    assert laws.true.sum() == pytest.approx(1.0)
    assert laws.redrawn == pytest.approx(laws.asked[: laws.columns + 1].sum())
    assert np.arange(len(laws.asked)) @ laws.asked == pytest.approx(laws.design.asked_rows)
    assert np.arange(len(laws.true)) @ laws.true == pytest.approx(laws.design.true_rows)
    small = BatchDesign(laws.design.subset, laws.design.marked, laws.design.epsilon)
    entropy = KeyedEntropy.from_seed(11)
    drawn = [draw_batch(small, 0, 2 * small.subset, entropy.fork(str(n))) for n in range(1000)]
    short = np.mean([len(batch.asked) <= laws.columns for batch in drawn])
    assert short == pytest.approx(laws.redrawn, abs=5 * (laws.redrawn / 1000) ** 0.5)
    text = f"{dataset}: {100 * laws.redrawn:.1f} % redrawn"
    assert text in words(PICTURES / "hybrid.svg")
    sizes = (laws.design.subset, laws.design.marked, laws.columns)
    assert f"| {dataset} | {' | '.join(map(str, sizes))} |" in page("hybrid")


def test_what_a_gradient_determines_ends_at_her_columns_and_its_signs_do_not():
    measured = subject.revealed_gradient()
    columns, _ = subject.SHAPES["breast-cancer"]
    for size, determined, signs in zip(
        measured.sizes, measured.determined, measured.signs, strict=True
    ):
        # One row more than columns: one of the 434 rows lies, to rounding, in her columns' span.
        assert determined == 1.0 if size <= columns else determined < 0.003
        assert signs > measured.commoner
        assert signs == 1.0 or size > columns
    assert 0.5 < measured.commoner < 0.7


def commands() -> list[str]:
    """The commands that the pages invite to try."""
    texts = [section(name) for name in sorted(MECHANISMS)]
    return [
        line for text in texts for line in re.findall(r"^\$ (taciturn .*)$", text, re.MULTILINE)
    ]


@pytest.mark.parametrize("line", seldom(commands(), always=commands()[:2]))
@pytest.mark.sampled(1)
def test_the_commands_of_the_pages_run(line, capsys):
    assert run(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_table_of_claims_has_the_true_prices(variant, epsilon):
    true = price(VARIANTS[variant](epsilon, B1, B2, 20).event)
    prices = ["∞" if math.isinf(total) else f"{total:.3f}" for total in (true.residue, true.label)]
    text = section("mult")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    (row,) = (cells for cells in rows if cells[:2] == [f"mult {variant}", f"{epsilon:g}"])
    assert row[2:4] == prices
    assert row[-1] == ("**refuted**" if true.residue > epsilon else "holds")
