"""A setting is declared once; whatever is made from the declaration says the same."""

from __future__ import annotations

import inspect

import pytest

import taciturn
from taciturn import api
from taciturn.errors import ConfigError
from taciturn.settings.signatures import SettingsOptions
from tests.expected import refused


@pytest.mark.parametrize("function", [api.train, api.estimate, taciturn.audit, taciturn.check])
def test_functions_take_these_options(function):
    (options,) = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD
    ]
    assert options.annotation == f"Unpack[{SettingsOptions.__name__}]"


@pytest.mark.parametrize("function", [api.train, api.estimate, taciturn.audit, taciturn.check])
@pytest.mark.parametrize(
    ("word", "meant"), [("epsilonn", "epsilon"), ("batchsize", "batch_size"), ("lable", "label")]
)
def test_a_mistyped_keyword_gets_the_nearest(function, word, meant):
    with refused(ConfigError, names=(word, meant)):
        function(**{word: 1})


def test_a_type_checker_sees_what_is_refused():
    """An ignore that is not needed is an error of the type checker."""
    with refused(ConfigError):
        taciturn.train(epsilonn=1.0)  # type: ignore[call-arg]
    with refused(ConfigError, setting="epochs"):
        taciturn.audit(dataset="breast-cancer", epochs="3")  # type: ignore[arg-type]
    with refused(ConfigError, setting="noise"):
        taciturn.check(columns=3, noise="gaussian")  # type: ignore[arg-type]
