"""Signatures made from the declarations of settings: options of functions, estimators' parameters.

Type checkers read ``signatures.pyi``, which ``tools/write_signatures.py`` writes from this module.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from textwrap import fill
from typing import Any, ClassVar, TypedDict

from taciturn.settings.checked import declared
from taciturn.settings.mechanism_settings import FIELD
from taciturn.settings.removed import refuse_former_keyword
from taciturn.settings.schema import Protection, Settings

# A function takes a table of the name ``data``, and another one as ``alice_data``.
SettingsOptions = TypedDict(
    "SettingsOptions",
    {
        name: object if name == "alice_data" else field.annotation
        for name, field in Settings.model_fields.items()
        if name != "data"
    },
    total=False,
)
SettingsOptions.__doc__ = "Settings of a simulated run; omitted ones have their defaults."

# An estimator is given rows and labels as they are, once.
_CLASSIFIER = (
    *("alice_columns", "parties", *Protection.model_fields, "l_rr", "budget", "delta", "scheme"),
    *("key_bits", "solver", "passes", "batch_size", "minimum_batch", "epochs", "learning_rate"),
    *("schedule", "decay", "l1", "l2", "feature_bits", "residue_bits"),
)
_REGRESSOR = (
    *("alice_columns", "parties", "mechanism", "reveal", "fresh_keys", "scheme", "passes", "l2"),
    *("feature_bits", "residue_bits"),
)
# What scikit-learn calls otherwise than the commands do, or means otherwise.
_OWN: Mapping[str, object] = {"fit_intercept": True, "class_weight": None, "random_state": None}
_NAMES = "{help} Names are those of a frame, or x0, x1, … of an array. Bob has the others, the"
_TEXTS = {
    "alice_columns": f"{_NAMES} intercept and the labels.",
    "mechanism": "{help} Several Alices need another than `mutual`.",
    FIELD: "Settings that a mechanism of another package declares, by name.",
}


class _Parameters:
    """Parameters of an estimator, which keeps each under its name, as scikit-learn wants it.

    In the docstring of a subclass ``{settings}`` stands for those that are settings; ``texts`` are
    what it says in place of their help, or around it.
    """

    defaults: ClassVar[Mapping[str, object]]
    texts: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        cls.__doc__ = described(cls.__doc__ or "", cls.defaults, cls.texts)


def described(docstring: str, names: Iterable[str], texts: Mapping[str, str]) -> str:
    """A docstring in which the settings' descriptions take the place of ``{settings}``."""
    if "{settings}" not in docstring:
        return docstring
    known, texts = declared(Settings), {**_TEXTS, **texts}
    lines = []
    for name in (name for name in names if name not in _OWN):
        help_text = known[name].help if name in known else ""
        text = f"{name}: {texts.get(name, '{help}')}".replace("{help}", help_text)
        lines.append(
            fill(
                text,
                100,
                initial_indent=" " * 8,
                subsequent_indent=" " * 12,
                break_on_hyphens=False,
            )
        )
    return docstring.replace("        {settings}", "\n".join(lines))


def _keeping(class_name: str, settings: Iterable[str], *own: str) -> Any:  # noqa: ANN401 - a class
    """Class whose keywords are these settings and these of scikit-learn, with their defaults."""
    defaults = {name: Settings.model_fields[name].default for name in settings}
    defaults |= {name: _OWN[name] for name in own}

    def __init__(self: object, **given: object) -> None:
        for name in given.keys() - defaults.keys():
            refuse_former_keyword(name, type(self).__name__)
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {name!r}")
        vars(self).update({**defaults, **given})

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [inspect.Parameter(name, keyword, default=v) for name, v in defaults.items()]
    __init__.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return type(class_name, (_Parameters,), {"__init__": __init__, "defaults": defaults})


ClassifierParameters = _keeping("ClassifierParameters", _CLASSIFIER, *_OWN)
RegressorParameters = _keeping("RegressorParameters", _REGRESSOR, "fit_intercept", "random_state")
