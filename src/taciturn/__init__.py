"""Train a logistic regression with a partner without revealing your labels.

And test whether your partner could infer them anyway.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

# Public name -> the module that defines it, from the stub that type checkers read. Names are loaded
# on first use: a party's process must not load attacks, and scikit-learn alone takes a second.
_ORIGINS = {
    alias.name: node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}
__all__ = sorted(_ORIGINS)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    if name not in _ORIGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from taciturn.extensions import function
    from taciturn.extras import explained

    module = _ORIGINS[name]
    with explained():
        # What another distribution adds is registered by it; the stub only has its type.
        home = module.partition(".")[0]
        if home == "taciturn":
            value = getattr(import_module(module), name)
        else:
            value = function(name, home.replace("_", "-"))
    globals()[name] = value
    return value
