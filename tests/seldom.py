"""Cases that the long proofs run all of, and `make test` some of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def seldom(cases: Iterable[Any], *, always: Iterable[Any]) -> list[Any]:
    """The cases of a test's parameter, of which `make test` runs only those named.

    For repeats of one kind: another mechanism, dataset or seed, where a mistake that only one of
    them shows is unlikely and each takes a second.

    Args:
        cases: All of them, in order.
        always: Those that are run always.
    """
    chosen = list(always)
    listed = list(cases)
    assert all(case in listed for case in chosen), chosen
    return [
        case
        if case in chosen
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in listed
    ]
