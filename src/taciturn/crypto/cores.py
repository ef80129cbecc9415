"""Both cores for GMP's arithmetic, where it really helps.

GMP's functions let other Python threads run while they work, once gmpy2 is told to allow it. Powers
with large exponents then scale with the cores; chains of single multiplications gain less (on two
cores 1.9 and 1.4 times were measured), because Python must be asked back after each.

**Guarantee.** Results are those of a plain loop, in order.

**Assumes.** The function shares nothing that it changes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import gmpy2

T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 8


@cache
def _pool() -> ThreadPoolExecutor:
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return ThreadPoolExecutor(min(MOST_THREADS, cores), thread_name_prefix="taciturn")


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``[function(item) for item in items]``, on all cores where there are several items.

    >>> on_all_cores(lambda item: item * 2, [1, 2, 3])
    [2, 4, 6]
    """

    def work(item: T) -> R:
        with gmpy2.context(gmpy2.get_context(), allow_release_gil=True):
            return function(item)

    listed = list(items)
    if len(listed) < 2:
        return [function(item) for item in listed]
    return list(_pool().map(work, listed))
