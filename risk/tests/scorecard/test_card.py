"""What a model's file says, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.__main__ import run
from taciturn.cli.console import console
from taciturn.data.prepare import fit
from taciturn.errors import ColumnError, ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.model.share import ModelShare
from taciturn.model.whole import own_part, whole_model
from taciturn.report.terminal import render
from taciturn_risk.scorecard.card import card, named_coefficients
from taciturn_risk.sklearn import to_sklearn
from tests.expected import refused
from tests.model.models import WAYS, pair_of, people, share_of, strange

SCALES = {"modulus_bits": 50, "feature_bits": 9, "residue_bits": 20, "decay": 0.5}


def sealed_pair() -> tuple[ModelShare, ModelShare, np.ndarray]:
    """Shares of known weights, as a sealed training leaves them."""
    hers, his = people()
    alice, bob = pair_of(hers, his, WAYS[0])
    whole = np.rint(alice.weights * 2.0**29).astype(np.int64)
    alice_part = np.arange(len(whole), dtype=np.int64) * 7919 * 10**9 % 2**49
    bob_part = (whole - alice_part + 2**49) % 2**50 - 2**49
    sealed: dict[str, Any] = {"agreement": {"mechanism": "sealed"}, "scales": SCALES}
    alice = replace(alice, weights=np.empty(0), share=tuple(alice_part.tolist()), **sealed)
    bob = replace(bob, share=tuple(bob_part.tolist()), ledger=LEDGER, **sealed)
    return alice, bob, whole * 0.5 / 2.0**29


LEDGER = {"label_epsilon_total": 0.0, "assumption": "IND-CPA encryption, semi-honest parties"}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.impute} {way.scale} {way.clip}")
def test_coefficients_of_the_original_scale_score_raw_rows(way):
    """Without gaps, and inside the bounds: then the score is linear in the raw columns."""
    _, his = people()
    plain = replace(way, clip=None, winsorise={})
    bob = share_of(fit(his, plain), "bob", intercept=True)
    shown = card(bob)
    assert shown.original_offset is not None
    total = np.full(his.height, shown.original_offset)
    for one in shown.coefficients or ():
        name, _, level = one.column.partition("=")
        column = his[name] == level if level else his[name]
        total += (one.original or 0.0) * column.cast(pl.Float64).to_numpy()
    assert np.allclose(total, own_part(bob).scores(his), atol=1e-9)


def test_the_largest_comes_first_and_what_says_nothing_is_marked():
    hers, _ = people()
    ranked = named_coefficients(share_of(fit(hers, WAYS[0]), "alice"))
    sizes = [abs(one.prepared) for one in ranked]
    assert sizes == sorted(sizes, reverse=True)
    (constant,) = [one for one in ranked if one.column == "constant"]
    assert constant.original is None


def test_a_random_share_is_never_shown_as_coefficients(tmp_path, capsys):
    alice, bob, _ = sealed_pair()
    for share in (alice, bob):
        share.save(tmp_path / f"{share.role}.json")
    for role in ("alice", "bob"):
        assert run(["model", "show", str(tmp_path / f"{role}.json")]) == 0
        text = capsys.readouterr().out
        assert run(["model", "show", str(tmp_path / f"{role}.json"), "--json"]) == 0
        record = capsys.readouterr().out
        assert max(len(line) for line in text.splitlines()) <= 100
        for number in (*alice.share, *bob.share):
            if abs(number) > 10**6:
                assert str(number) not in text + record
    assert card(alice).coefficients is None
    assert card(alice).weights == "shared"
    assert len(card(bob).coefficients or ()) == len(bob.columns) - 1


def test_the_card_says_where_a_model_comes_from(tmp_path, capsys):
    _, bob, _ = sealed_pair()
    metrics = {"held_out": {"accuracy": 0.9, "auc": 0.95, "loss": 0.2}}
    replace(bob, metrics=metrics).save(tmp_path / "bob.json")
    assert run(["model", "show", str(tmp_path / "bob.json"), "--top", "2"]) == 0
    text = capsys.readouterr().out
    for part in (bob.session, bob.agreement_digest, bob.data_digest, "95.00"):
        assert part in text


def test_shares_that_do_not_belong_together():
    alice, bob, _ = sealed_pair()
    with refused(ConfigError, names="bob"):
        whole_model(bob, bob)
    for other in (replace(bob, session="00" * 16), replace(bob, share=bob.share[1:])):
        with refused(ConfigError):
            whole_model(alice, other)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_a_scikit_learn_pipeline_predicts_as_the_model_does(kind):
    hers, his = people()
    alice, bob = pair_of(hers, his, WAYS[1])
    pipeline = to_sklearn(bob, alice)
    odd, even = strange(hers), strange(his)
    frame = pl.concat(
        [odd.rename({"age": "alice/age"}), even.rename({"age": "bob/age"})], how="horizontal"
    )
    pandas = pytest.importorskip("pandas")
    given = frame if kind == "polars" else pandas.DataFrame(frame.to_dict(as_series=False))
    exact = whole_model(alice, bob).scores(odd, even)
    assert np.allclose(pipeline.decision_function(given), exact, atol=1e-9)
    assert np.allclose(pipeline.predict_proba(given)[:, 1], sigmoid(exact), atol=1e-9)
    assert np.array_equal(pipeline.predict(given), (exact > 0).astype(int))
    with refused(ColumnError, names="'town'"):
        pipeline.predict(frame.drop("town"))


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
RECORDS = st.dictionaries(
    st.sampled_from(
        ["mechanism", "epsilon", "label_epsilon_total", "assumption", "train", "accuracy", "loss"]
    ),
    PLAIN | st.dictionaries(st.sampled_from(["accuracy", "auc", "loss"]), PLAIN),
)


@given(agreement=RECORDS, metrics=RECORDS, ledger=RECORDS)
def test_whatever_the_records_of_a_file_hold_it_is_shown(agreement, metrics, ledger):
    """A file may come from anywhere: its records are not this program's own."""
    hers, _ = people(20)
    share = share_of(fit(hers, WAYS[0]), "bob", agreement=agreement, metrics=metrics, ledger=ledger)
    screen = console()
    with screen.capture() as shown:
        screen.print(render(card(share).blocks(5)))
    assert shown.get()
