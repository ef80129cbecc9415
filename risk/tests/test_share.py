"""A model's file: the same to the last bit, whole or not at all, for its owner alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taciturn.model.share import ModelShare
from taciturn.model.whole import own_part
from taciturn_risk.onnx import own_to_onnx
from taciturn_risk.scorecard.card import card
from tests.model.test_share import share


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.json"


def test_the_key_of_the_noise_is_neither_shown_nor_exported(path):
    key = share().noise_key
    assert key not in repr(share())
    assert key not in json.dumps(card(share()).to_dict())
    assert key.encode() not in own_to_onnx(own_part(share()))
    share().save(path)
    assert ModelShare.load(path).noise_key == key
