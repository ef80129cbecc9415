"""A study that both sides have signed: proposed, reviewed, trained; refused where it differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ops.tests.tampering import furnish, name_agreement

from taciturn.__main__ import run
from taciturn.errors import ConfigError, SignatureError
from taciturn.jobs.train.job import TrainJob
from taciturn.party.config import PartyConfig
from tests.expected import refused
from tests.party.studies import ROLES, run_study, study_of, written

STUDY = "\n[study]\nfolds = 2\nl2 = [0.001, 0.1]\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bob proposes a study, both sign, and their files name the agreement alone."""
    place = tmp_path_factory.mktemp("signed-study")
    furnish(place)
    bob, agreement = place / "bob.toml", place / "agreement.toml"
    bob.write_text(bob.read_text() + STUDY)
    assert run(["agreement", "propose", str(bob), "--out", str(agreement)]) == 0
    bob.write_text(bob.read_text().replace(STUDY, ""))
    for role in ROLES:
        name_agreement(place / f"{role}.toml")
        assert run(["agreement", "sign", str(agreement), str(place / f"{role}.toml"), "--yes"]) == 0
    return place


def test_what_varies_stands_in_the_study_alone(folder):
    config = PartyConfig.read(folder / "alice.toml")
    assert config.study is not None
    assert config.study.axes == {"l2": (0.001, 0.1)}
    text = (folder / "agreement.toml").read_text()
    agreed = text.partition("[agreement]")[2].partition("\n[")[0]
    assert "l2" not in agreed
    assert "passes" in agreed


def test_both_sides_train_what_they_have_signed(folder):
    alice, bob = run_study(folder).records
    assert alice["study"]["models"] == bob["study"]["models"] == 6
    digest = PartyConfig.read(folder / "bob.toml").first.agreement_file
    assert digest is not None
    for role in ROLES:
        for number in (1, 2):
            assert written(folder, role, number).agreement["file_digest"] == digest.digest


def test_a_review_counts_all_models(folder, capsys):
    words = [
        "agreement",
        "review",
        str(folder / "agreement.toml"),
        str(folder / "alice.toml"),
        "--json",
    ]
    assert run(words) == 0
    # Two combinations that share a search: one fold of two, its own fold's scores, and all rows.
    passes = study_of(folder, "alice").plan.trainings[-1].passes
    record = json.loads(capsys.readouterr().out)
    assert record["opened"]["this"] == 2 * passes + 2


def test_a_changed_study_is_refused_by_name(folder, tmp_path):
    text = (folder / "agreement.toml").read_text()
    changed = tmp_path / "agreement.toml"
    changed.write_text(text.replace("l2 = [0.001, ", "l2 = [0.002, ", 1))
    assert changed.read_text() != text
    own = (folder / "bob.toml").read_text()
    other = folder / "bob-changed.toml"
    other.write_text(own.replace('"agreement.toml"', f'"{changed}"'))
    with refused(SignatureError, names="study.l2"):
        TrainJob().prepare(PartyConfig.read(other))


def test_a_study_beside_the_name_of_an_agreement_is_refused(folder):
    other = folder / "alice-more.toml"
    other.write_text((folder / "alice.toml").read_text() + STUDY)
    with refused(ConfigError, names="study"):
        PartyConfig.read(other)
