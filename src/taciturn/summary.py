"""Several runs in one record: the mean of what has a mean, the largest of what is a largest.

Which figures are averaged is listed here; everything else that the runs do not share is left out of
the summary, and ``runs`` holds it. Over several seeds ``accuracy_low`` and ``accuracy_high`` are
the 95 % interval of the *mean* accuracy over the runs (Student's t), not that of one run's rows.
"""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import Any

Record = dict[str, Any]

_AVERAGED = ("seconds", "bytes_to_alice", "bytes_to_bob")
_LARGEST = ("max_weight_difference", "weight_bound")
_PARTS = ("train", "test", "centralised")


def summary(runs: list[Record]) -> Record:
    """One run as it is; of several a summary with ``runs`` beside it.

    >>> figures = {"accuracy": 0.5, "auc": 0.5}
    >>> base = {"train": figures, "test": figures, "centralised": figures, "notes": []}
    >>> record = summary([{**base, "seed": 1, "seconds": 1.0}, {**base, "seed": 2, "seconds": 3.0}])
    >>> record["seconds"], record["seeds"], record["seed"], len(record["runs"])
    (2.0, 2, 1, 2)
    """
    if len(runs) == 1:
        return dict(runs[0])
    shared = {
        key: value
        for key, value in runs[0].items()
        if key != "verdict" and all(run[key] == value for run in runs)
    }
    return {
        **shared,
        **{key: fmean(run[key] for run in runs) for key in _AVERAGED if key in runs[0]},
        **{key: _largest(run[key] for run in runs) for key in _LARGEST if key in runs[0]},
        **{part: _figures([run[part] for run in runs]) for part in _PARTS},
        **_findings(runs),
        "notes": sorted({note for run in runs for note in run["notes"]}),
        "seed": runs[0]["seed"],
        "seeds": len(runs),
        "runs": runs,
    }


def _findings(runs: list[Record]) -> Record:
    if "attacks" not in runs[0]:
        return {}
    return {
        **_scores(runs),
        **_beside(runs),
    }


def _scores(runs: list[Record]) -> Record:
    return {
        "controls": _by_name([run["controls"] for run in runs], _figures),
        "attacks": _by_name([run["attacks"] for run in runs], _attack),
    }


def _beside(runs: list[Record]) -> Record:
    """Canaries are averaged like runs; of evidence the strongest stands for all.

    It is the best of several bounds, which fails as often as any of them does.
    """
    found: Record = {}
    canaries = [run["canary"] for run in runs if run.get("canary")]
    if len(canaries) == len(runs):
        kept = {key: canaries[0][key] for key in ("skipped", "verdict")}
        found["canary"] = {**kept, **_scores(canaries)}
    proofs = [run["evidence"] for run in runs if run.get("evidence")]
    if proofs:
        strongest = max(proofs, key=lambda proof: proof["lower_bound"])
        failure = min(1.0, sum(proof["failure"] for proof in proofs))
        found["evidence"] = {**strongest, "failure": failure}
    members = [run["membership"] for run in runs if run.get("membership")]
    if len(members) == len(runs):
        found["membership"] = _figures(members)
    return found


def _by_name(lists: list[list[Record]], combine: Any) -> list[Record]:  # noqa: ANN401 - a function
    names = [entry["name"] for entry in lists[0]]
    return [
        {
            "name": name,
            **combine([entry for entries in lists for entry in entries if entry["name"] == name]),
        }
        for name in names
    ]


def _figures(parts: list[Record]) -> Record:
    """The mean of every plain number that all have."""
    return {
        key: fmean(part[key] for part in parts)
        for key in parts[0]
        if all(isinstance(part[key], int | float) for part in parts)
    }


def _attack(scores: list[Record]) -> Record:
    low, high = t_interval([score["accuracy"] for score in scores])
    decided = sum(score["decided"] * score["rows"] for score in scores)
    right = sum(
        score["decided"] * score["rows"] * score["decided_correct"]
        for score in scores
        if score["decided_correct"] is not None
    )
    return {
        **_figures(scores),
        "accuracy_low": low,
        "accuracy_high": high,
        "decided_correct": right / decided if decided else None,
        "remark": f"mean of {len(scores)} runs",
    }


def _largest(values: Any) -> float | None:  # noqa: ANN401 - numbers, or None where there is no bound
    found = list(values)
    return None if None in found else max(found)


def t_interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean.

    >>> tuple(round(end, 4) for end in t_interval([0.9, 1.0, 0.95]))
    (0.8258, 1.0742)
    """
    from scipy.special import stdtrit  # of the extra audit, as attacks are

    reach = stdtrit(len(values) - 1, (1 + confidence) / 2) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - float(reach), fmean(values) + float(reach)
