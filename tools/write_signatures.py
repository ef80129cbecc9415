"""Write ``settings/signatures.pyi``: what type checkers know of functions and estimators.

::

    python tools/write_signatures.py
"""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from taciturn.settings.schema import Settings
from taciturn.settings.signatures import (
    ClassifierParameters,
    RegressorParameters,
    SettingsOptions,
)

STUB = Path(__file__).resolve().parents[1] / "src" / "taciturn" / "settings" / "signatures.pyi"
HEAD = '''\
"""Written by ``tools/write_signatures.py`` from the declarations of settings."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict, dataclass_transform
'''
PARAMETERS = """\
class _Parameters:
    defaults: ClassVar[Mapping[str, object]]
    texts: ClassVar[Mapping[str, str]]"""
WIDTH = 100
# Where scikit-learn has more kinds of value than a setting, or other ones.
OWN = {"fit_intercept": "bool"}
OWN |= dict.fromkeys(("alice_columns", "class_weight", "random_state"), "object")


def caller_type(kind: Any) -> str:  # noqa: ANN401 - a type form
    """A field's type as a caller sees it: no constraints, and any sequence for a tuple.

    >>> caller_type(tuple[str, ...] | None), caller_type(Literal["a", "b"])
    ('Sequence[str] | None', 'Literal["a", "b"]')
    """
    match get_origin(kind), get_args(kind):
        case origin, (first, *_) if origin is Annotated:
            return caller_type(first)
        case origin, values if origin is Literal:
            return f"Literal[{', '.join(map(json.dumps, values))}]"
        case origin, members if origin in (Union, types.UnionType):
            return " | ".join(dict.fromkeys(map(caller_type, members)))
        case origin, (first, *_) if origin is tuple:
            return f"Sequence[{caller_type(first)}]"
        case origin, (key, value) if origin is dict:
            return f"dict[{caller_type(key)}, {caller_type(value)}]"
    return "None" if kind is type(None) else str(kind.__name__)


def stub() -> str:
    """The text of ``signatures.pyi``."""
    lines = [HEAD, "class SettingsOptions(TypedDict, total=False):"]
    for name, kind in get_type_hints(SettingsOptions).items():
        line = f"    {name}: {caller_type(kind)}"
        if len(line) > WIDTH:
            members = caller_type(kind).replace(" | ", "\n        | ")
            line = f"    {name}: (\n        {members}\n    )"
        lines.append(line)
    lines += ["", "@dataclass_transform(kw_only_default=True)", PARAMETERS]
    for parameters in (ClassifierParameters, RegressorParameters):
        lines += ["", f"class {parameters.__name__}(_Parameters):"]
        for name, default in parameters.defaults.items():
            kind = OWN.get(name) or caller_type(Settings.model_fields[name].annotation)
            value = json.dumps(default) if isinstance(default, str) else repr(default)
            lines.append(f"    {name}: {kind} = {value}")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
