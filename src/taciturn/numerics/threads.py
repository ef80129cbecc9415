"""One thread for the linear algebra of small matrices."""

from __future__ import annotations

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits


def one_thread() -> AbstractContextManager[object]:
    """While it lasts, products and decompositions run on one thread each.

    Batches are small matrices: the threads of the linear algebra cost more than they save, and on a
    machine that is busy they wait for each other, a hundred times as long as the work takes.

    >>> with one_thread():
    ...     "as before, but on one thread"
    'as before, but on one thread'
    """
    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits
