"""Cores and threads: how many there are, work on all of them, linear algebra on one.

**Guarantee.** Results are those of a plain loop, in order.

**Assumes.** The function shares nothing that it changes, and releases the interpreter's lock while
it works: otherwise it is right, and no faster.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 8


def usable_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def threads() -> int:
    """Number of threads of ``on_all_cores``."""
    return min(MOST_THREADS, usable_cores())


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), thread_name_prefix="taciturn")


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``[function(item) for item in items]``, on all cores where there are several items.

    >>> on_all_cores(lambda item: item * 2, [1, 2, 3])
    [2, 4, 6]
    """
    listed = list(items)
    if len(listed) < 2:
        return [function(item) for item in listed]
    return list(_pool().map(function, listed))


def one_thread() -> AbstractContextManager[object]:
    """Limit linear algebra to one thread while the context lasts.

    Batches are small matrices: the threads of the linear algebra cost more than they save, and on a
    machine that is busy they wait for each other, a hundred times as long as the work takes.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits
