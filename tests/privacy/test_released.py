"""``Released``: a value with the event that its release is."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from taciturn.privacy.base import Released
from taciturn.privacy.events import AdditiveNoise, NonPrivate, PrivacyEvent
from taciturn.privacy.prices import EVENTS


@pytest.mark.parametrize("value", [(314159, 271828), "314159", np.array([314159.0])])
def test_its_repr_hides_the_value_and_shows_the_event(value):
    assert Released.unprotected(value).event == NonPrivate()
    assert repr(Released.unprotected(value)) == "Released(event=NonPrivate())"
    shown = repr(Released(value, AdditiveNoise(0.25)))
    assert shown == "Released(event=AdditiveNoise(epsilon=0.25))"


def test_neither_value_nor_event_can_be_exchanged():
    released = Released.unprotected(1)
    with pytest.raises(FrozenInstanceError):
        released.event = PrivacyEvent()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        released.value = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        AdditiveNoise(1.0).epsilon = 2.0  # type: ignore[misc]


def test_events_stand_under_the_names_they_have_on_the_wire():
    """A name keeps its meaning: recordings hold it."""
    assert {name: kind.__name__ for name, kind in EVENTS.items()} == {
        "non-private": "NonPrivate",
        "additive-noise": "AdditiveNoise",
        "multiplicative-printed": "PrintedFactor",
        "multiplicative-one-sided": "OneSidedFactor",
        "multiplicative-mean-one": "MeanOneFactor",
        "batch-response": "BatchResponse",
        "hidden-batch-gradient": "HiddenBatchGradient",
        "label-response": "LabelResponse",
        "flipped-label-gradient": "FlippedLabelGradient",
        "noisy-model": "NoisyModel",
        "noisy-accuracy": "NoisyAccuracy",
        "ciphertexts-only": "CiphertextsOnly",
    }
    assert all(kind.name == name for name, kind in EVENTS.items())
