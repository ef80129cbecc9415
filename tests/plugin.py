"""What all tests share: the large public datasets, no deadlines, and what was not tested."""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from taciturn.data.datasets import added_dataset, load
from taciturn.data.prepare import RawData
from tests.system import NOT_TESTED

# The same examples on every machine, and as much time for each as it takes. The long proofs have
# more of them.
settings.register_profile(
    "many",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=200,
)
settings.register_profile("tests", settings.get_profile("many"), max_examples=25)
settings.load_profile("tests")

# Parties make their state keys there, and not among the settings of whoever runs the tests.
_SETTINGS = tempfile.TemporaryDirectory(prefix="taciturn-tests-")
os.environ["XDG_CONFIG_HOME"] = _SETTINGS.name

_BEGAN = pytest.StashKey[float]()

# Read once, and made absolute: tests change the environment and the working directory.
_NAMED = os.environ.get("TACITURN_DATA")
_PLACES = [Path(_NAMED).resolve()] if _NAMED else []
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def find_dataset_dir(name: str) -> Path:
    """The directory that holds a dataset's file; skips the test where there is none."""
    added = added_dataset(name)
    if added is None:
        pytest.skip(f"{NOT_TESTED}{name}; install taciturn-paper, which has it")
    for place in [*_PLACES, _BESIDE]:
        if any((place / file).is_file() for file in added.files):
            return place
    pytest.skip(f"{NOT_TESTED}{name}; set TACITURN_DATA to the directory of {added.files[0]}")


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """What CI asks for after ``make test``: some of the long proofs, for some minutes."""
    parser.addoption("--tenth", type=int, help="only this tenth of the tests, 0 to 9")
    parser.addoption("--minutes", type=float, help="skip what has not begun by then")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Makes all but some cases of a test that is ``sampled`` slow; leaves one tenth if asked to."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for listed in cases.values():
        (kept,) = next(listed[0].iter_markers("sampled")).args
        chosen = {round(place * len(listed) / kept) for place in range(kept)}
        for place, item in enumerate(listed):
            if place not in chosen:
                item.add_marker(pytest.mark.slow)
    if (tenth := config.getoption("tenth")) is not None:
        # By function: the cases of one often share what takes long to set up.
        chosen_of = {item: zlib.crc32(_function(item)) % 10 == tenth for item in items}
        config.hook.pytest_deselected(items=[item for item in items if not chosen_of[item]])
        items[:] = [item for item in items if chosen_of[item]]


def _function(item: pytest.Item) -> bytes:
    return item.nodeid.partition("[")[0].encode()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Notes when the tests began."""
    session.config.stash[_BEGAN] = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips, loudly, what would begin too late."""
    minutes = item.config.getoption("minutes")
    if minutes is not None and time.monotonic() > item.config.stash[_BEGAN] + 60 * minutes:
        pytest.skip(f"{NOT_TESTED}a long proof; the {minutes:g} minutes for some of them are over")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says loudly what this machine could not test, and how it could."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.getreports("skipped"):
        _, _, reason = report.longrepr
        reasons[reason.removeprefix("Skipped: ")] += 1
    missing = {reason: count for reason, count in reasons.items() if reason.startswith(NOT_TESTED)}
    if missing:
        terminalreporter.section("NOT TESTED ON THIS MACHINE", yellow=True, bold=True)
    for reason, count in sorted(missing.items()):
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.line(f"{tests}: {reason.removeprefix(NOT_TESTED)}", yellow=True)
