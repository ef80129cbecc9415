"""Public names of a package, imported on first use.

A package lists its public names once, in ``__init__.pyi``: type checkers read that file, and this
module reads it when a name is first asked for. So importing a package loads none of its modules,
and ``from taciturn.PACKAGE import Name`` does not depend on which module defines it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path


def lazy_names(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, from the stub beside its ``file``."""
    stub = Path(file).with_suffix(".pyi")

    def load(name: str) -> object:
        # The import system asks for dunders, and would read every stub.
        if name in ("__path__", "__all__") or name not in (origins := origins_in(stub)):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = origins[name]
        return getattr(import_module(module), original)

    return load, lambda: sorted(origins_in(stub))


@cache
def origins_in(stub: Path) -> dict[str, tuple[str, str]]:
    """Module and original name of each name that a stub re-exports."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
