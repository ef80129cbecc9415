"""The module that defines a name, for tests that set a limit or a pause of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def module_of(defined: type | Callable[..., Any]) -> ModuleType:
    """The module in which a class or function is defined, wherever that is today."""
    return sys.modules[defined.__module__]
