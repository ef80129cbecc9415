"""Two companies at one table: proposal, review, signatures, a study, the best model exported.

Census-income in two folders, half of its columns each, as a telephone company (Alice) and a bank
(Bob) would have it. Every command is a process of its own in its side's folder, and its seconds are
counted. With ``--kill`` Bob's process is killed in the middle of the study, and both commands are
run again. At the end scikit-learn's ``LogisticRegressionCV`` chooses on the joined table with the
same folds, and its model stands beside the chosen one.

Run it with ``python -m taciturn_paper.companies FOLDER [--kill]``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data import datasets
from taciturn.jobs.study.plan import StudyPlan
from taciturn.model.share import ModelShare
from taciturn.model.whole import whole_model
from taciturn.party.config import PartyConfig
from taciturn.party.tables import load_tables
from taciturn.rng import KeyedEntropy

PORT = 9471
STUDY = """
[study]
folds = 3
l2 = [1e-5, 1e-4, 1e-3]
passes = [12, 24]
"""
BINS = 8
# After so many trained models Bob is killed.
KILLED_AFTER = 10


@dataclass(slots=True)
class Company:
    """One side's folder, and the commands that were run in it."""

    role: str
    folder: Path
    seconds: list[tuple[str, float]] = field(default_factory=list)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command, running."""
        log = (self.folder / "screen.log").open("a")
        return subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "taciturn", *words],
            cwd=self.folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> None:
        """A command that must end well."""
        start = time.perf_counter()
        code = self.start(*words).wait()
        self.seconds.append((f"taciturn {' '.join(words)}", time.perf_counter() - start))
        if code:
            raise SystemExit(f"{self.role}: taciturn {' '.join(words)} ended with {code}")

    @property
    def file(self) -> str:
        """The name of the side's file."""
        return f"{self.role}.toml"


def main() -> None:
    """Run both companies' commands and print their times and the chosen model as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    alice, bob = prepare_folders(given.folder)
    agreed(alice, bob)
    study(alice, bob, kill=given.kill)
    best = used(alice, bob)
    print(
        json.dumps(
            {
                "commands": {
                    party.role: [[words, round(seconds, 1)] for words, seconds in party.seconds]
                    for party in (alice, bob)
                },
                "best": best,
                "beside scikit-learn": beside(alice, bob),
            },
            indent=1,
        )
    )


def prepare_folders(folder: Path) -> tuple[Company, Company]:
    """Both folders with tables, certificates and settings."""
    raw = datasets.load("census-income")
    names, half = raw.frame.columns, (raw.frame.width + 1) // 2
    ids = pl.Series("person", [f"p{number:05d}" for number in range(raw.rows)])
    label = pl.Series("over-50k", raw.labels.values)
    alice, bob = Company("alice", folder / "telco"), Company("bob", folder / "bank")
    tables = {
        "alice": raw.frame.select(names[:half]).with_columns(ids),
        "bob": raw.frame.select(names[half:]).with_columns(ids, label),
    }
    for one in (alice, bob):
        one.folder.mkdir(parents=True)
        order = KeyedEntropy.from_seed(len(one.role)).permutation(raw.rows)
        tables[one.role][order].write_csv(one.folder / f"{one.role}.csv")
    bob.run("certs", "--out", "certs", "--name", "alice", "--name", "bob")
    (alice.folder / "certs").mkdir()
    for name in ("ca.pem", "alice.pem", "alice.key"):
        shutil.copy(bob.folder / "certs" / name, alice.folder / "certs" / name)
    (bob.folder / "certs" / "alice.key").unlink()
    where = ("--address", f"localhost:{PORT}", "--id", "person", "--label", "over-50k")
    bob.run("init", "--alice-table", "alice.csv", "--bob-table", "bob.csv", *where)
    (bob.folder / "alice.toml").rename(alice.folder / "alice.toml")
    for one in (alice, bob):
        settings = one.folder / one.file
        text = settings.read_text(encoding="utf-8")
        text = text.replace("[data]\n", f"[data]\nbins = {BINS}\n", 1)
        text = re.sub(r'(?m)^listen = "[^:]*:', 'listen = "127.0.0.1:', text)
        text = text.replace("# accept-column-exposure", "accept-column-exposure")
        settings.write_text(text + (STUDY if one is bob else ""), encoding="utf-8")
    return alice, bob


def agreed(alice: Company, bob: Company) -> None:
    """Bob proposes, both review and sign, and both files name the agreement."""
    certificate = ("--peer-certificate", "certs/alice.pem")
    bob.run("propose", bob.file, "--out", "agreement.toml", *certificate, "--purpose", "A pilot")
    bob.run("review", "agreement.toml", bob.file, "--columns", "30", "--html", "review.html")
    bob.run("sign", "agreement.toml", bob.file, "--yes")
    shutil.copy(bob.folder / "agreement.toml", alice.folder / "agreement.toml")
    # Alice's own file says nothing of what is agreed on: the agreement does.
    for party in (alice, bob):
        path = party.folder / party.file
        text = path.read_text(encoding="utf-8").replace(STUDY, "")
        named = '[agreement]\nfile = "agreement.toml"\nsigned = true\n\n'
        text = re.sub(r"\[agreement\]\n.*?\n\n", named, text, count=1, flags=re.DOTALL)
        path.write_text(text, encoding="utf-8")
    alice.run("review", "agreement.toml", alice.file, "--html", "review.html")
    alice.run("sign", "agreement.toml", alice.file, "--yes")
    shutil.copy(alice.folder / "agreement.toml", bob.folder / "agreement.toml")


def study(alice: Company, bob: Company, *, kill: bool) -> None:
    """Both sides train; with a kill, Bob's process ends in the middle and both begin again."""
    if kill:
        start = time.perf_counter()
        theirs, his = alice.start("party", alice.file), bob.start("party", bob.file)
        log = bob.folder / "bob.log"
        while not log.exists() or log.read_text().count("model trained") < KILLED_AFTER:
            time.sleep(0.5)
        his.send_signal(signal.SIGKILL)
        his.wait()
        bob.seconds.append(("taciturn party bob.toml (killed)", time.perf_counter() - start))
        restarted = time.perf_counter()
        if bob.start("party", bob.file, "--html", "study.html").wait() or theirs.wait():
            raise SystemExit("the study did not resume")
        again = time.perf_counter()
        bob.seconds.append(("taciturn party bob.toml --html study.html", again - restarted))
        alice.seconds.append(("taciturn party alice.toml", again - start))
        return
    start = time.perf_counter()
    theirs = alice.start("party", alice.file)
    bob.run("party", bob.file, "--html", "study.html")
    if theirs.wait():
        raise SystemExit("alice's side failed")
    alice.seconds.append(("taciturn party alice.toml", time.perf_counter() - start))


def used(alice: Company, bob: Company) -> dict[str, Any]:
    """The best model is taken into use on both sides, and exported whole."""
    table = json.loads((bob.folder / "bob.models" / "study.json").read_text())
    number = str(table["study"]["best"])
    bob.run("model", "use", bob.file, number, "--yes")
    alice.run("model", "use", alice.file, number)
    hers = str((alice.folder / "alice.model.json").resolve())
    bob.run("model", "export", "bob.model.json", hers, "--onnx", "model.onnx")
    best = next(
        setting for setting in table["study"]["settings"] if str(setting["number"]) == number
    )
    held_out = best["held_out"]
    return {
        "number": best["number"],
        "values": best["values"],
        "fold loss": best["loss"],
        "held-out AUC": held_out["auc"],
        "held-out AUC, 95 %": [held_out["auc_low"], held_out["auc_high"]],
        "held-out loss": held_out["loss"],
        "scores of a row that Bob has seen": table["scores_per_row"],
        "bytes": table["run"]["bytes_sent"] + table["run"]["bytes_received"],
        "seconds": table["run"]["seconds"],
    }


def beside(alice: Company, bob: Company) -> dict[str, Any]:
    """Choice of LogisticRegressionCV on the joined table."""
    plans = []
    for party in (alice, bob):
        config = PartyConfig.read(party.folder / party.file)
        if config.study is None:
            raise SystemExit("there is no study")
        plans.append(StudyPlan.from_study(config, config.study, load_tables(config.first)))
    record = json.loads((bob.folder / "bob.models" / "study.json").read_text())
    return _chosen(alice, bob, (plans[0], plans[1]), record["study"]["settings"])


def _chosen(
    alice: Company,
    bob: Company,
    plans: tuple[StudyPlan, StudyPlan],
    settings: list[dict[str, Any]],
) -> dict[str, Any]:
    rows, labels, held_out, truth = _joined(*plans)
    penalties, folds = plans[1].study.l2 or (), plans[1].folds
    count = int(folds.max()) + 1
    parts = [(np.flatnonzero(folds != n), np.flatnonzero(folds == n)) for n in range(count)]
    # C counts the sum of the losses: this is the penalty of the folds.
    strengths = [1 / (penalty * len(rows) * (count - 1) / count) for penalty in penalties]
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Of what later versions will call otherwise.
        warnings.simplefilter("ignore", FutureWarning)
        search = LogisticRegressionCV(
            Cs=strengths, cv=parts, scoring="neg_log_loss", max_iter=3000, tol=1e-8, refit=False
        ).fit(rows, labels)
    seconds = time.perf_counter() - start
    losses = -np.mean(np.reshape(next(iter(search.scores_.values())), (count, -1)), axis=0)
    place = int(np.argmin(losses))
    whole = LogisticRegression(C=1 / (penalties[place] * len(rows)), max_iter=9000, tol=1e-10)
    chances = whole.fit(rows, labels).predict_proba(held_out)[:, 1]
    same = [setting for setting in settings if setting["values"]["l2"] == penalties[place]]
    ours = max(same, key=lambda one: one["values"]["passes"])
    scores = _scores(alice, bob, ours["number"], held_out)
    ends = np.append(whole.coef_.ravel(), whole.intercept_)
    return {
        "columns": rows.shape[1],
        "l2 that it chooses": penalties[place],
        "its mean loss over folds": float(losses[place]),
        "its held-out AUC": float(roc_auc_score(truth, chances)),
        "its held-out loss": float(log_loss(truth, chances)),
        "its seconds": round(seconds, 1),
        "ours with that l2": ours["number"],
        "our mean loss over folds": float(np.mean([fold["loss"] for fold in ours["folds"]])),
        "our held-out AUC": ours["held_out"]["auc"],
        "our held-out loss": ours["held_out"]["loss"],
        "rows whose probability differs by over 0.01": int(
            np.count_nonzero(np.abs(1 / (1 + np.exp(-scores)) - chances) > 0.01)
        ),
        "rows": len(truth),
        "largest weight": float(np.abs(ends).max()),
    }


def _joined(
    alice: StudyPlan, bob: StudyPlan
) -> tuple[FloatArray, LabelArray, FloatArray, LabelArray]:
    """Prepared columns of both sides, without the intercept: training rows, and held-out ones."""
    hers, his = alice.tables, bob.tables
    labels, truth = his.labels, his.held_out_labels
    if labels is None or truth is None or hers.held_out is None or his.held_out is None:
        raise SystemExit("there are no held-out rows")
    rows = np.hstack([hers.train.values, his.train.values[:, :-1]])
    others = np.hstack([hers.held_out.values, his.held_out.values[:, :-1]])
    return rows, labels.values, others, truth.values


def _scores(alice: Company, bob: Company, number: int, rows: FloatArray) -> FloatArray:
    """The log-odds of rows by a model of the study, both shares put together."""
    shares = [
        ModelShare.load(party.folder / f"{party.role}.models" / f"model-{number:02d}.json")
        for party in (alice, bob)
    ]
    weights = np.concatenate([part.weights for part in whole_model(*shares).parts])
    scores: FloatArray = rows @ weights[:-1] + weights[-1]
    return scores


if __name__ == "__main__":
    main()
