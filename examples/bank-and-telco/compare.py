"""Sets scikit-learn's models beside the joint one: on both tables joined, and on the bank's alone.

It needs both tables in one place, which the two companies have not; and the held-out rows with the
joint model's scores, which Bob's file names (``held-out-scores`` in ``[output]``).

    python compare.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

BANK = ["age", "income", "savings", "utilisation", "account_opened", "employer_since"]
TELCO = ["monthly_bill", "late_bills", "data_gb", "contract_start", "roaming_days"]
DATES = ("account_opened", "contract_start")
# As the party does it by default, so that the two differ in where they are trained alone.
QUANTILES = (0.005, 0.995)


def main() -> None:
    """Prints AUC and KS of the three models on the same held-out rows."""
    spelled = pl.col("customer").str.strip_chars().str.to_uppercase()
    bank = pl.read_csv("bank.csv").with_columns(spelled)
    telco = pl.read_csv("telco.csv").with_columns(spelled)
    scored = pl.read_csv(Path("bob.held-out.csv"))
    ids = scored["id"].str.strip_chars().str.to_uppercase()
    joined = bank.join(telco, on="customer", maintain_order="left").with_columns(
        *(pl.col(name).str.to_date().to_physical() for name in DATES)
    )
    held = joined["customer"].is_in(ids.implode()).to_numpy()
    show("jointly, in two places", scored["label"].to_numpy(), scored["score"].to_numpy())
    show("scikit-learn, joined", *fitted(joined, held, BANK + TELCO, ["branch", "tariff"]))
    show("scikit-learn, the bank alone", *fitted(joined, held, BANK, ["branch"]))


def fitted(
    table: pl.DataFrame, held: np.ndarray, numbers: list[str], categories: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of the held-out rows, by a model of the others."""
    training = table.filter(~held)
    limits = {
        name: [training[name].quantile(share, "linear") for share in QUANTILES] for name in numbers
    }
    cut = table.with_columns(pl.col(name).clip(*limits[name]) for name in numbers)
    columns = {name: cut[name].to_numpy() for name in numbers + categories}
    import pandas as pd

    frame = pd.DataFrame(columns)
    model = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
            (OneHotEncoder(handle_unknown="ignore"), categories),
        ),
        LogisticRegression(max_iter=1000),
    )
    labels = table["defaulted"].to_numpy()
    model.fit(frame[~held], labels[~held])
    return labels[held], model.decision_function(frame[held])


def show(name: str, labels: np.ndarray, scores: np.ndarray) -> None:
    """Prints a line."""
    false, true, _ = roc_curve(labels, scores)
    auc, ks = roc_auc_score(labels, scores), (true - false).max()
    print(f"{name:30s} AUC {100 * auc:.2f}   KS {100 * ks:.1f}   {len(labels)} held-out rows")


if __name__ == "__main__":
    main()
