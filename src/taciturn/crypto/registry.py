"""The schemes by name: one function each, which loads its scheme when it is first asked for.

A party loads the scheme that was agreed on, and the libraries of no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from taciturn.crypto.base import Scheme
from taciturn.errors import ConfigError, nearest


def _bfv() -> Scheme:
    from taciturn.crypto.bfv.keys import BfvScheme

    return BfvScheme()


def _paillier() -> Scheme:
    from taciturn.crypto.paillier import PaillierScheme

    return PaillierScheme()


def _clear() -> Scheme:
    from taciturn.crypto.clear import ClearScheme

    return ClearScheme()


_LOADERS: dict[str, Callable[[], Scheme]] = {
    "bfv": _bfv,
    "paillier": _paillier,
    "clear": _clear,
}


@cache
def _loaded(name: str) -> Scheme:
    return _LOADERS[name]()


class _Schemes(Mapping[str, Scheme]):
    def __getitem__(self, name: str) -> Scheme:
        return _loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_LOADERS)

    def __len__(self) -> int:
        return len(_LOADERS)


SCHEMES: Mapping[str, Scheme] = _Schemes()
"""Every scheme that settings can name."""


def scheme(name: str) -> Scheme:
    """The scheme of that name.

    >>> scheme("paillier").key_bits
    (3072, 2048)
    """
    try:
        return SCHEMES[name]
    except KeyError:
        raise ConfigError(
            f"unknown scheme {name}", setting="scheme", hint=nearest(name, SCHEMES)
        ) from None
