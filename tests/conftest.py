"""What all tests share: where the two large public datasets are, or a skip that names them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from taciturn.data.datasets import file_names, load
from taciturn.data.raw import RawData

# Read once, and made absolute: tests change the environment and the working directory.
_NAMED = os.environ.get("TACITURN_DATA")
_PLACES = [Path(_NAMED).resolve()] if _NAMED else []
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def find_dataset_dir(name: str) -> Path:
    """The directory that holds a dataset's file; skips the test where there is none."""
    for place in [*_PLACES, _BESIDE]:
        if any((place / file).is_file() for file in file_names(name)):
            return place
    pytest.skip(f"{name} is not here: set TACITURN_DATA to the directory of {file_names(name)[0]}")


@pytest.fixture(scope="session")
def dataset_dir() -> Callable[[str], Path]:
    """Call with a dataset's name: its directory, or a skip by name."""
    return find_dataset_dir


@pytest.fixture(scope="session")
def census() -> RawData:
    """census-income, loaded once."""
    return load("census-income", data_dir=find_dataset_dir("census-income"))


@pytest.fixture(scope="session")
def credit() -> RawData:
    """give-me-some-credit, loaded once."""
    return load("give-me-some-credit", data_dir=find_dataset_dir("give-me-some-credit"))
