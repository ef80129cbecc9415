"""``Released``: a value with the event that its release is."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tacit.privacy.base import Released
from tacit.privacy.events import EVENTS, NonPrivate, PrivacyEvent


@pytest.mark.parametrize("value", [(314159, 271828), "314159", np.array([314159.0])])
def test_its_repr_hides_the_value(value):
    shown = repr(Released.unprotected(value))
    assert "314159" not in shown
    assert "NonPrivate" in shown


def test_what_leaves_unprotected_says_so():
    released = Released.unprotected((1, 2))
    assert released.value == (1, 2)
    assert released.event == NonPrivate()


def test_neither_value_nor_event_can_be_exchanged():
    released = Released.unprotected(1)
    with pytest.raises(FrozenInstanceError):
        released.event = PrivacyEvent()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        released.value = 2  # type: ignore[misc]


def test_events_stand_under_the_names_they_have_on_the_wire():
    assert {"non-private": NonPrivate} == EVENTS
    assert all(kind.name == name for name, kind in EVENTS.items())
