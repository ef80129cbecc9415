"""The path of a party: what a plain ``mutual`` training of two parties enters nothing of.

The walk (``tools/walk.py``) records the functions that each party enters. A reviewer's page
(``docs/review.md``) says by these tests what need not be read.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WALK = ROOT / "tools" / "walk.py"

SGD = ("held_out", "opening")
OTHERS = ("hidden_batch", "residues", "revealed", "table_revealed", "table_sealed")
# What neither party enters, by capability: a file or a folder of the core, or a distribution.
UNUSED = {
    "signed agreements": ("party/agreement_check.py", "party/agreement_file.py"),
    "signatures": ("crypto/signatures.py",),
    "studies": ("jobs/study/", "settings/study.py", "protocol/row_sums.py"),
    "several Alices": (
        *("protocol/party_group.py", "protocol/bob/partners.py"),
        *("protocol/alice/group.py", "protocol/bob/group.py"),
    ),
    "batches of sgd": (
        *("protocol/batches.py", "protocol/scores.py", "protocol/bob/products.py"),
        *(f"protocol/{role}/{name}.py" for role in ("alice", "bob") for name in SGD),
    ),
    "Dask": ("crypto/cluster.py",),
    "worker processes": ("crypto/bfv/processes.py", "crypto/bfv/worker.py"),
    "Paillier": (
        *("crypto/paillier.py", "crypto/group.py", "crypto/multiexp.py", "crypto/trapdoor.py"),
        "crypto/clear.py",
    ),
    "alignment and prediction": ("jobs/align/", "jobs/predict/", "party/applied_model.py"),
    "new rows": ("party/new_rows.py", "party/aligned_rows.py", "data/joined.py"),
    "databases": ("data/database.py", "data/queried_table.py"),
    "Parquet files": ("data/parquet.py",),
    "tables of pandas": ("data/foreign.py",),
    "bins and transforms": ("data/bin_fitting.py", "data/binned_rule.py", "data/transforms.py"),
    "amounts of money, decimal marks, free text": (
        *("data/number_formats.py", "data/free_text.py", "data/doubt.py"),
    ),
    "other spellings of ids": ("data/spellings.py",),
    "other mechanisms": (
        *("privacy/additive.py", "privacy/batch_response.py", "privacy/gaussian.py"),
        *("privacy/label_response.py", "privacy/multiplicative.py", "privacy/unprotected.py"),
        *("privacy/noise.py", "privacy/model_release.py", "party/consent/label_flips.py"),
        *("privacy/sealed.py", "privacy/added_mechanism.py"),
        *("numerics/label_noise.py", "numerics/sgd.py", "numerics/descent.py"),
    ),
    "other families of labels": (
        *("families/gamma.py", "families/gaussian.py", "families/poisson.py"),
        "numerics/regression_metrics.py",
    ),
    "other conversations": (
        *(f"protocol/{role}/train_{name}.py" for role in ("alice", "bob") for name in OTHERS),
        *("protocol/alice/whitened.py", "protocol/bob/subspace_search.py", "numerics/subspace.py"),
        *("protocol/table_scales.py", "protocol/table_shape.py", "protocol/search_state.py"),
        *(f"protocol/{role}/scoring_sealed.py" for role in ("alice", "bob")),
    ),
    "dry runs, estimates and disclosure": (
        *("jobs/train/dry_run.py", "jobs/train/estimate.py", "jobs/train/exposure.py"),
        *("jobs/train/disclosure_text.py", "party/past_exposure.py", "crypto/calibration_run.py"),
        "privacy/openings.py",
    ),
    "simulations": (
        *("simulation.py", "engine/pair.py", "jobs/train/simulation.py", "jobs/train/reference.py"),
        "numerics/whole_table.py",
        *("data/datasets.py", "data/split.py", "api.py", "estimator.py", "regressors.py"),
    ),
    "transcripts": ("engine/transcript.py",),
    "earlier models, whole models": ("model/archive.py", "model/whole.py"),
    "reports and records of results": (
        *("report/", "results/runs.py", "results/folder.py", "results/ledger.py"),
        *("results/reading.py", "results/record_schema.py"),
    ),
    "templates": ("party/templates.py", "party/settings_file.py"),
    "names of settings in errors": ("setting_syntax.py", "settings/removed.py"),
    "other distributions": ("taciturn_audit", "taciturn_ops", "taciturn_paper", "taciturn_risk"),
}
# What the other side alone enters.
OF_THE_OTHER = {
    "Alice": (
        *("protocol/bob/", "privacy/ledger.py", "party/bob_inputs.py", "numerics/metrics.py"),
        *("party/consent/label_budget.py", "party/consent/label_stops.py", "model/scores_file.py"),
        *("data/label_encoding.py", "data/label_table.py", "jobs/train/label_consent.py"),
    ),
    "Bob": ("protocol/alice/", "party/consent/scored_rows.py", "jobs/train/feature_consent.py"),
}
PLANTED = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from taciturn.engine.driver import Driver
from tools import walk
start = Driver.start
def planted(driver):
    from taciturn.party.agreement_file import text_digest
    text_digest("")
    start(driver)
Driver.start = planted
walk.main()
"""


def entered(path: Path, *program: str) -> dict[str, set[str]]:
    """The files of which each party enters a function, by the walk."""
    subprocess.run(
        [sys.executable, *program, "--path", str(path)], check=True, stdout=subprocess.DEVNULL
    )
    files: dict[str, set[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            files[line.removeprefix("# ")] = of_party = set()
        else:
            of_party.add(line.partition(":")[0].partition("src/")[2].removeprefix("taciturn/"))
    assert set(files) == {"Alice", "Bob"}
    return files


def among(files: set[str], unused: tuple[str, ...]) -> list[str]:
    """The files that are one of these, or in one of these folders."""
    return sorted(file for file in files if file.startswith(unused))


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    return entered(tmp_path_factory.mktemp("walk") / "path.txt", str(WALK))


@pytest.mark.parametrize("capability", UNUSED)
def test_a_plain_training_enters_none_of(capability, walked):
    for party, files in walked.items():
        assert among(files, UNUSED[capability]) == [], party


@pytest.mark.parametrize("party", OF_THE_OTHER)
def test_a_party_enters_none_of_what_is_for_the_other(party, walked):
    assert among(walked[party], OF_THE_OTHER[party]) == []


def test_what_is_named_exists():
    for names in (*UNUSED.values(), *OF_THE_OTHER.values()):
        for name in names:
            folder = name.removeprefix("taciturn_") if name.startswith("taciturn_") else ""
            home = ROOT / folder / "src" / ("" if folder else "taciturn")
            assert (home / name).exists(), name


def test_what_a_party_does_use_is_seen(walked):
    for party, files in walked.items():
        assert f"protocol/{party.lower()}/train_table_mutual.py" in files
        assert {"engine/driver.py", "party/journal.py", "data/prepare.py"} <= files


def test_the_page_for_a_reviewer_is_current():
    """Line numbers apart: else ``make review``."""
    checked = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "review.py"), "--check"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert checked.stdout == ""
    assert checked.returncode == 0


@pytest.mark.slow  # a second walk
def test_a_call_that_does_not_belong_there_is_noticed(tmp_path):
    files = entered(tmp_path / "path.txt", "-c", PLANTED, str(ROOT))
    for of_party in files.values():
        assert among(of_party, UNUSED["signed agreements"]) == ["party/agreement_file.py"]
