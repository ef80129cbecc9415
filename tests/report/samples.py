"""Records as ``taciturn.audit.session`` builds them, with figures of real runs of breast-cancer."""

from __future__ import annotations

import math
from typing import Any

from taciturn.summary import summary

Record = dict[str, Any]


def score(name: str, accuracy: float, low: float, high: float, **more: Any) -> Record:
    return {
        "name": name,
        "rows": 455,
        "accuracy": accuracy,
        "accuracy_low": low,
        "accuracy_high": high,
        "auc": accuracy,
        "auc_low": low,
        "auc_high": high,
        "decided": 0.0,
        "decided_correct": None,
        "seconds": 0.12,
        "remark": "",
        **more,
    }


def controls(prior: float, model: float, model_auc: float) -> list[Record]:
    return [
        {"name": "prior", "accuracy": prior, "auc": 0.5},
        {"name": "model-only", "accuracy": model, "auc": model_auc},
    ]


def metrics(accuracy: float, auc: float) -> Record:
    return {
        "rows": 114,
        "accuracy": accuracy,
        "balanced_accuracy": accuracy - 0.004,
        "auc": auc,
        "pr_auc": 0.993,
        "ks": 0.9619,
        "brier": 0.0303,
        "loss": 0.1151,
        "calibration_error": 0.0441,
        "calibration": [{"predicted": 0.1, "observed": 0.0, "count": 37}],
    }


def over_epochs(rows: dict[str, list[float]]) -> list[Record]:
    steps = (1, 2, 3, 5, 10)
    return [
        {
            "epochs": epochs,
            "attacks": [
                {
                    "name": name,
                    "accuracy": values[place],
                    "accuracy_low": values[place] - 0.04 if values[place] < 1 else 0.9919,
                    "accuracy_high": min(1.0, values[place] + 0.04),
                }
                for name, values in rows.items()
            ],
        }
        for place, epochs in enumerate(steps)
    ]


def message(kind: str, count: int, size: int, allows: str, **more: Any) -> Record:
    return {
        "message": kind,
        "count": count,
        "bytes": size,
        "encrypted": False,
        "scheme": None,
        "key_bits": None,
        "allows": allows,
        **more,
    }


def ledger(claimed: Any, residue: Any, label: Any, releases: int, assumption: str) -> Record:
    def times(value: Any) -> Any:
        return value if isinstance(value, str) else value * releases

    return {
        "claimed_epsilon_per_release": claimed,
        "residue_epsilon_per_release": residue,
        "label_epsilon_per_release": label,
        "releases_per_row": releases,
        "residue_epsilon_total": times(residue),
        "label_epsilon_total": times(label),
        "label_epsilon_total_delta": times(label),
        "delta": 1e-06,
        "assumption": assumption,
    }


def leaking(seed: int = 7) -> Record:
    """The paper's baseline: every label is told."""
    told = [
        score(
            "exact-solve",
            1.0,
            0.9919,
            1.0,
            decided=1.0,
            decided_correct=1.0,
            remark="290 of 290 batches determined",
        ),
        score("least-squares", 1.0, 0.9919, 1.0),
        score("stacked", 1.0, 0.9919, 1.0, seconds=1.3),
    ]
    return {
        "dataset": "breast-cancer",
        "mechanism": "none",
        "epsilon": None,
        "noise": None,
        "variant": None,
        "scheme": "bfv",
        "key_bits": 128,
        "encrypted": True,
        "seed": seed,
        "permute_labels": False,
        "epochs": 10,
        "batch_size": 16,
        "learning_rate": 0.1,
        "iterations": 290,
        "stopped": None,
        "hidden_batches": None,
        "alice_columns": 30,
        "bob_columns": 0,
        "intercept": False,
        "rows_train": 455,
        "rows_test": 114,
        "train": metrics(0.9868, 0.9981),
        "test": metrics(0.9561, 0.98997),
        "centralised": metrics(0.9561, 0.98997),
        "max_weight_difference": 2.04e-06,
        "weight_bound": 0.00214,
        "seconds": 3.4 + seed,
        "bytes_to_alice": 57735471,
        "bytes_to_bob": 23948893,
        "ledger": ledger(
            "inf", "inf", "inf", 10, "no protection: Alice sees the gradient of every batch"
        ),
        "preparation": [
            f"column {place}: numeric; minus 14.03, divided by 3.485" for place in range(30)
        ],
        "notes": ["batches of 16 rows are no larger than Alice's 30 columns"],
        "shuffle_truth": False,
        "controls": controls(0.6242, 0.9868, 0.9981),
        "attacks": told,
        "skipped": [
            {"name": "likelihood", "reason": "Alice does not have noisy residues"},
            {"name": "sparse-recovery", "reason": "no batch has more rows than columns"},
        ],
        "verdict": "exact-solve tells Alice 100.00 % of 455 labels (95 % interval 99.19 – "
        "100.00 %); the better control tells 98.68 %.",
        "canary": {
            "controls": controls(0.6242, 0.5912, 0.6123),
            "attacks": told,
            "skipped": [],
            "verdict": "exact-solve tells Alice 100.00 % of 455 labels.",
        },
        "over_epochs": over_epochs(
            {
                "exact-solve": [1.0] * 5,
                "least-squares": [0.93, 0.96, 0.97, 0.99, 1.0],
                "stacked": [0.62, 0.71, 0.84, 0.97, 1.0],
            }
        ),
        "evidence": None,
        "messages": [
            message("Hello", 1, 512, "Bob's settings, number of rows and columns: no label"),
            message("KeyOffer", 1, 401234, "compute with values under Bob's key; decrypt nothing"),
            message("BatchSeed", 1, 64, "know which rows are in which batch"),
            message(
                "EncryptedResidues",
                290,
                57250000,
                "multiply it by her columns; read nothing without Bob's key",
                encrypted=True,
                scheme="bfv",
                key_bits=128,
            ),
            message(
                "RevealedGradient",
                290,
                78010,
                "take her mask off and have the sum of residues times columns, X^T r, exactly",
            ),
        ],
        "membership": None,
        "command": "taciturn audit --dataset breast-cancer --mechanism none --seed 7 --html a.html",
        "version": "0.1.0",
    }


def quiet() -> Record:
    """Additive noise at a small epsilon: nothing shown, and a claim that stands."""
    weak = [
        score("likelihood", 0.6132, 0.5667, 0.6582, auc=0.55, auc_low=0.49, auc_high=0.61),
        score("sign", 0.5407, 0.4937, 0.5872, auc=0.54, auc_low=0.48, auc_high=0.59),
    ]
    own = [
        score("likelihood", 0.9736, 0.9545, 0.9862, auc=0.9975, auc_low=0.98, auc_high=0.9996),
        score("sign", 0.5714, 0.5245, 0.6174),
    ]
    return {
        **leaking(),
        "mechanism": "add",
        "epsilon": 0.01,
        "noise": "discrete",
        "bob_update": "released",
        "scheme": "clear",
        "key_bits": 0,
        "encrypted": False,
        "ledger": ledger(
            0.01,
            0.01,
            0.005,
            10,
            "each release alone is protected, and releases add up: basic composition",
        ),
        "weight_bound": None,
        "max_weight_difference": 1.508,
        "test": metrics(0.8737, 0.9183),
        "notes": [],
        "controls": controls(0.6242, 0.9736, 0.9975),
        "attacks": own,
        "skipped": [
            {"name": name, "reason": "Alice does not have the gradient of each batch in clear"}
            for name in ("exact-solve", "least-squares", "stacked", "sparse-recovery")
        ],
        "verdict": "No attack of ours told more than the controls. That is not a proof of safety.",
        "canary": {
            "controls": controls(0.6242, 0.5978, 0.61),
            "attacks": weak,
            "skipped": [],
            "verdict": "No attack of ours told more than the controls.",
        },
        "over_epochs": over_epochs(
            {
                "likelihood": [0.53, 0.55, 0.57, 0.6, 0.6132],
                "sign": [0.52, 0.53, 0.53, 0.54, 0.5407],
            }
        ),
        "evidence": {
            "claim": 0.05,
            "lower_bound": 0.0,
            "attack": "likelihood",
            "guesses": 455,
            "correct": 233,
            "rows": 455,
            "failure": 0.05,
            "violated": False,
        },
        "messages": [
            message("Hello", 1, 512, "Bob's settings, number of rows and columns: no label"),
            message(
                "NoisyResidues",
                290,
                31000,
                "have each row's residue with noise, whose law she knows",
            ),
        ],
        "command": None,
    }


def refuted() -> Record:
    """A claim that the guesses contradict."""
    found = quiet()
    found["evidence"] = {**found["evidence"], "lower_bound": 1.25, "correct": 401, "violated": True}
    return found


def hybrid() -> Record:
    """The paper's hybrid mechanism, with the membership guesses."""
    return {
        **leaking(),
        "mechanism": "hybrid",
        "epsilon": 1.0,
        "hidden_batches": {"epsilon": 1.0, "subset_size": 111, "marked": 22, "l_rr": 40.02},
        "membership": MEMBERSHIP,
        "attacks": [
            score("sparse-recovery", 0.9956, 0.9842, 0.9995, decided=0.81, decided_correct=0.999),
            score("least-squares", 0.9868, 0.9715, 0.9951),
        ],
        "canary": {
            "controls": controls(0.6242, 0.578, 0.6),
            "attacks": [
                score("sparse-recovery", 0.9341, 0.9073, 0.9551, decided=0.8, decided_correct=0.99),
                score("least-squares", 0.8022, 0.7626, 0.8378),
            ],
            "skipped": [],
            "verdict": "sparse-recovery tells Alice 93.41 % of 455 labels.",
        },
    }


MEMBERSHIP: Record = {
    "batches": 290,
    "rows": 11600,
    "base_rate": 0.4012,
    "precision": 0.981,
    "recall": 0.967,
    "k_exact": 0.71,
}


def bare() -> Record:
    """An audit without canary, evidence, epochs or messages, and a figure that is no number."""
    found = quiet()
    found["attacks"] = [
        score("sign", 0.9, 0.85, 0.93, auc=math.nan, auc_low=math.nan, auc_high=math.nan)
    ]
    return {
        **found,
        "canary": None,
        "evidence": None,
        "over_epochs": [],
        "messages": [],
        "skipped": [],
        "notes": [],
    }


def older() -> Record:
    """A record of an audit that knew none of what belongs around it."""
    gone = ("canary", "evidence", "over_epochs", "messages", "membership", "command", "version")
    return {key: value for key, value in quiet().items() if key not in gone}


def several() -> Record:
    """Three seeds."""
    runs = [leaking(seed) for seed in (7, 8, 9)]
    for place, run in enumerate(runs):
        run["canary"] = {**run["canary"], "controls": controls(0.62 + 0.01 * place, 0.59, 0.6)}
    return summary(runs)


def hostile() -> Record:
    """Names that would be markup, where nothing escaped them."""
    evil = "<script>document.title='owned'</script>|`*_[x](http://evil.example)\u202e"
    found = hybrid()
    return {
        **found,
        "dataset": evil,
        "notes": [evil, "<img src=x onerror=alert(1)>"],
        "preparation": [evil],
        "command": f"taciturn audit --data '{evil}' ``` `",
        "version": evil,
        "attacks": [{**found["attacks"][0], "name": evil, "remark": evil}],
        "controls": [{**found["controls"][0], "name": evil}],
        "skipped": [{"name": evil, "reason": evil}],
        "messages": [message(evil, 1, 1, evil, encrypted=True, scheme=evil, key_bits=128)],
        "ledger": {**found["ledger"], "assumption": evil},
        "membership": {evil: evil},
        "over_epochs": over_epochs({evil: [0.5, 0.6, 0.7, 0.8, 0.9]}),
        "verdict": evil,
    }


RECORDS = {
    "leaking": leaking,
    "quiet": quiet,
    "refuted": refuted,
    "hybrid": hybrid,
    "bare": bare,
    "older": older,
    "several": several,
    "hostile": hostile,
}
