"""Taciturn trains a logistic regression with a partner without telling them your labels.

And it shows you whether they could tell anyway.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from taciturn.lazy import lazy_names, origins_in

# Loaded on first use: a party's process must not load attacks, and scikit-learn alone takes a
# second.
_load, __dir__ = lazy_names(__name__, __file__)
_ORIGINS = origins_in(Path(__file__).with_suffix(".pyi"))
__all__ = sorted(_ORIGINS)


def __getattr__(name: str) -> object:
    if name not in _ORIGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from taciturn.extensions import function
    from taciturn.extras import explained

    module, _ = _ORIGINS[name]
    with explained():
        # What another distribution adds is registered by it; the stub only has its type.
        home = module.partition(".")[0]
        value = _load(name) if home == "taciturn" else function(name, home.replace("_", "-"))
    globals()[name] = value
    return value


class _FrontDoor(ModuleType):
    """Module class that keeps ``taciturn.runs`` callable after the package ``runs`` is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _ORIGINS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
