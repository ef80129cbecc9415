"""``DaskEngine``: the work on many tiles, on a Dask cluster of a party's own.

Nothing else in Taciturn knows Dask, and only a party whose engine it is loads it.

A setup is a task whose result stays in the memory of the worker that ran it; Dask sends it to a
worker that needs it, makes it anew where it was lost, and drops it when the party is done or gone.
What the setup makes there (keys, plaintexts in NTT form) is never sent. Jobs are tasks that need
their setup: Dask runs one again where its worker was lost before its reply arrived. A reply is a
pure function of setup and job (``bfv.workers``), so that a second one decrypts to the same numbers.

**Guarantee.** A worker that is lost changes no result. Where the cluster cannot go on,
``ClusterError`` names the failed scheduler, worker or network; no reply is lost that had left this
process.

**Assumes.** The cluster is the party's own: its workers are sent the party's keys, masks and rows,
and run what anybody sends who has a certificate of the cluster's authority.
"""

from __future__ import annotations

import os
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

from distributed import Client, Future, KilledWorker, LocalCluster, Security, get_worker
from distributed.utils import silence_logging_cmgr

from taciturn.crypto.bfv.workers import Frame, Job, Reply, Setup, Worker, written
from taciturn.errors import ClusterError, FileError, TaciturnError, counted
from taciturn.rng import SystemEntropy
from taciturn.version import __version__

SHARES_PER_WORKER = 2
"""More than one: what a lost worker had to do is then shared by those that are left."""
CONNECT_SECONDS = 10.0
POLL_SECONDS = 1.0
# Dask's messages go to a terminal as they are; what matters of them is said by errors.
_SILENT = 60
_HERE = {"127.0.0.1", "::1", "localhost"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Address:
    """Address and TLS credentials (PEM files) of a Dask cluster.

    ``scheduler`` is ``tls://host:port``, or ``tcp://host:port`` on this machine. ``worker_seconds``
    is the longest wait for a worker where there is none.
    """

    scheduler: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    worker_seconds: float = 60.0

    def security(self) -> Security:
        """Dask's ``Security`` for these credentials."""
        if self.ca is None:
            return Security(require_encryption=False)
        security = Security(
            tls_ca_file=str(self.ca),
            tls_client_cert=str(self.certificate),
            tls_client_key=str(self.key),
            require_encryption=True,
        )
        try:
            security.get_connection_args("client")
        except OSError as problem:
            raise ClusterError(
                f"the certificate, key or authority of the cluster is not fit for use: {problem}",
                where=", ".join(map(str, (self.ca, self.certificate, self.key))),
                hint="they are PEM files of the cluster's own authority",
            ) from None
        return security


@contextmanager
def connected(address: Address) -> Iterator[DaskEngine]:
    """Connect to the cluster of a running scheduler."""
    with silence_logging_cmgr(_SILENT):
        try:
            client = Client(
                address.scheduler,
                security=address.security(),
                timeout=CONNECT_SECONDS,
                set_as_default=False,
                name="taciturn",
            )
        except OSError as problem:
            raise _unreachable(address, problem) from None
        with _ended(client):
            yield DaskEngine(client, address)


@contextmanager
def on_this_machine(workers: int) -> Iterator[DaskEngine]:
    """Start a local cluster of ``workers`` processes, which ends with the context.

    Only this process can give it work: its certificates exist in memory alone.
    """
    try:
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            security=True,
            # Nothing that a worker holds goes to a disk.
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            silence_logs=_SILENT,
        )
    except (OSError, RuntimeError) as problem:
        raise ClusterError(
            f"the workers do not start: {problem}",
            hint='in a script of your own, call it below: if __name__ == "__main__":',
        ) from None
    with cluster, silence_logging_cmgr(_SILENT):
        client = Client(cluster, set_as_default=False, name="taciturn")
        with _ended(client):
            yield DaskEngine(client, Address(cluster.scheduler_address))


@contextmanager
def _ended(client: Client) -> Iterator[None]:
    try:
        yield
    finally:
        # One that has lost its scheduler has nobody to say it to.
        with suppress(OSError, RuntimeError, CancelledError):
            client.close(timeout=CONNECT_SECONDS)


class DaskEngine:
    """Workers of a Dask cluster; this process does none of their work."""

    def __init__(self, client: Client, address: Address) -> None:
        self.client = client
        self._address = address
        self._alone_since: float | None = None
        # Keys can be seen by any user of the cluster; they say nothing of what they name.
        self._session, self._numbers = SystemEntropy().token(8).hex(), count()
        self._require_fit()

    @property
    def workers(self) -> list[str]:
        """Addresses of the current workers."""
        return sorted(self._identity()["workers"])

    @property
    def dashboard(self) -> str:
        """URL of the cluster's dashboard; empty where there is none."""
        served = "dashboard" in self._identity()["services"]
        return str(self.client.dashboard_link) if served else ""

    def shares(self, work: int, least: int) -> int:
        """Shares for the current workers: a cluster that was asked for is always used."""
        return min(work, SHARES_PER_WORKER * max(1, len(self.workers)))

    def pool(self, setups: Sequence[Setup]) -> DaskWorkerPool:
        """A pool with one setup per share."""
        return DaskWorkerPool(self, setups)

    def hold(self, setups: Sequence[Setup]) -> list[Future]:
        """Submit the setups to the workers, which Dask chooses evenly."""
        elsewhere = {urlsplit(worker).hostname for worker in self._at_work()} - _HERE
        if elsewhere:
            # What workers are to read from a shared file system may still be in memory here alone.
            os.sync()
        with self._explained():
            return [self._submit("setup", _hold, _Held(__version__, setup())) for setup in setups]

    def replies(self, held: Sequence[Future], jobs: Sequence[Job]) -> list[Reply]:
        """Replies to jobs, each run with the setup at its place."""
        futures: list[Future] = []
        try:
            with self._explained():
                # Dask has a job done where its setup is: what was made of that serves every pass.
                for setup, job in zip(held, jobs, strict=False):
                    futures.append(self._submit(job.name, _perform, setup, _Task(job)))
                return self._gathered(futures)
        except BaseException:
            # Nobody waits for the others any more.
            with suppress(OSError, RuntimeError, CancelledError):
                self.client.cancel(futures, force=True)
            raise
        finally:
            for future in futures:
                future.release()

    def _identity(self) -> dict[str, Any]:
        with self._explained():
            identity: dict[str, Any] = self.client.scheduler_info()
            if "workers" not in identity:
                # What a client has of a scheduler that it has lost.
                raise OSError
            return identity

    def _submit(self, name: str, function: Callable[..., object], *values: object) -> Future:
        return self.client.submit(
            function,
            *values,
            key=f"taciturn-{name}-{self._session}-{next(self._numbers)}",
            # A key is never used twice, and Dask need not read the values to find another.
            pure=False,
        )

    def _gathered(self, futures: list[Future]) -> list[Reply]:
        replies, waiting, news = dict[Future, Reply](), set(futures), Event()
        for future in futures:
            future.add_done_callback(lambda _: news.set())
        while waiting:
            news.clear()
            done = {future for future in waiting if future.done()}
            # Not by Dask's wait: its timeouts are errors whose frames keep keys in memory.
            if not done and not news.wait(POLL_SECONDS):
                self._look_for_workers()
            for future in done:
                reply = self._patiently(future.result)
                if isinstance(reply, TaciturnError):
                    raise reply
                replies[future] = reply
            waiting -= done
        return [replies[future] for future in futures]

    def _patiently(self, attempt: Callable[[float], T]) -> T:
        seconds = POLL_SECONDS
        while True:
            try:
                return attempt(seconds)
            except TimeoutError:
                self._look_for_workers()
                seconds *= 2

    def _at_work(self) -> list[str]:
        """Addresses of the workers; waits for one where there is none."""
        while not (workers := self._look_for_workers()):
            time.sleep(POLL_SECONDS)
        return workers

    def _look_for_workers(self) -> list[str]:
        """Addresses of the workers; raises once there have been none for too long."""
        workers, now = self.workers, time.perf_counter()
        if workers:
            self._alone_since = None
            return workers
        self._alone_since = self._alone_since or now
        if now - self._alone_since >= self._address.worker_seconds:
            raise ClusterError(
                f"the cluster has had no workers for {self._address.worker_seconds:g} s",
                where=self._address.scheduler,
                hint="start some: dask worker, with the scheduler's address and the cluster's "
                "certificates",
            )
        return []

    def _require_fit(self) -> None:
        self._at_work()
        with self._explained():
            verdicts = self.client.run(_checked, __version__, on_error="return")
        for worker, verdict in sorted(verdicts.items()):
            if isinstance(verdict, TaciturnError):
                raise verdict
            if verdict is not None:
                raise _without_taciturn(worker, verdict)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except TaciturnError:
            raise
        except KilledWorker as problem:
            raise ClusterError(
                f"{counted(problem.allowed_failures + 1, 'worker')} ended, one after the other, "
                "at the same share of a table",
                where=self._address.scheduler,
                hint="have they enough memory? use more workers, or allow a table less of it",
            ) from None
        except (AttributeError, ImportError) as problem:
            raise _without_taciturn("a worker", problem) from None
        except (CancelledError, OSError, RuntimeError) as problem:
            raise ClusterError(
                f"the scheduler of the cluster is lost ({type(problem).__name__})",
                where=self._address.scheduler,
                hint="start it and its workers again, then run this side again: it resumes",
            ) from None


class DaskWorkerPool:
    """Setups in the memory of a cluster's workers."""

    def __init__(self, engine: DaskEngine, setups: Sequence[Setup]) -> None:
        self._engine = engine
        self._held = engine.hold(setups)

    def run(self, jobs: Sequence[Job], worker: Worker) -> list[Reply]:
        """Replies of the workers; this process runs no job itself."""
        return self._engine.replies(self._held, jobs)

    def close(self) -> None:
        """Let the cluster drop the setups; its workers keep running."""
        held, self._held = self._held, []
        for setup in held:
            # Not left to the garbage collection: they hold keys and rows.
            setup.release()


# --- What workers run ----------------------------------------------------------------------------


class _Held:
    """A setup in a worker's memory, and what it makes there when the first job comes.

    Its ``repr``, which Dask writes to a worker's log where a task fails, shows nothing.
    """

    def __init__(self, version: str, setup: Job) -> None:
        self.version = version
        self._setup = Job(setup.name, setup.facts, _plain(setup.frames))
        self._work: Worker | None = None
        # A worker may have several threads; what a setup makes does one job after the other.
        self._lock = Lock()

    def reply(self, job: Job) -> tuple[Frame, ...]:
        # Loaded here: a party's own process may have another scheme.
        from taciturn.crypto.bfv.worker import worker

        with self._lock:
            if self._work is None:
                self._work = worker(self._setup)
            return _plain(written(self._work(job)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the version and the setup; the worker made from it stays where it was made."""
        return _Held, (self.version, self._setup)

    def __sizeof__(self) -> int:
        """Bytes of the setup, by which Dask estimates the cost of moving it to another worker."""
        return sum(map(len, self._setup.frames))

    def __repr__(self) -> str:
        return "_Held(<hidden>)"


@dataclass(frozen=True, slots=True, repr=False)
class _Task:
    """A job on its way to a worker. Its ``repr`` shows nothing: there are masks in it."""

    job: Job

    def __reduce__(self) -> tuple[Any, ...]:
        return _Task, (Job(self.job.name, self.job.facts, _plain(self.job.frames)),)


def _plain(frames: Sequence[Frame]) -> tuple[bytes, ...]:
    return tuple(map(bytes, frames))


def _hold(held: _Held) -> _Held:
    return held


def _perform(held: _Held, task: _Task) -> tuple[Frame, ...] | TaciturnError:
    """The reply, or why there is none: what a task raises, Dask writes to the worker's log."""
    worker = get_worker()
    unfit = _checked(held.version, worker)
    if unfit is not None:
        return unfit
    try:
        return held.reply(task.job)
    except FileError as problem:
        return ClusterError(
            f"the worker {worker.address} sees another table than this side: {problem.message}",
            where=problem.where,
            hint="every worker needs the folder of prepared tables under the same path, on a "
            "shared file system; or end that worker, and run this side again: it resumes",
        )
    except TaciturnError as problem:
        return problem


def _checked(version: str, dask_worker: Any) -> ClusterError | None:  # noqa: ANN401
    if __version__ != version:
        return ClusterError(
            f"a worker has taciturn {__version__}, and this side {version}",
            where=dask_worker.address,
            hint="install the same version on all of them",
        )
    if type(dask_worker.data) is not dict:
        return ClusterError(
            "a worker may write what it holds to a disk, this side's keys among it",
            where=dask_worker.address,
            hint="start it with --memory-limit 0",
        )
    return None


def _without_taciturn(worker: str, problem: BaseException) -> ClusterError:
    return ClusterError(
        f"{worker} has another version of taciturn, or none: {problem}",
        hint=f"install taciturn {__version__} with its extra cluster on every worker",
    )


def _unreachable(address: Address, problem: OSError) -> ClusterError:
    reason = problem.__cause__ or problem
    return ClusterError(
        f"the scheduler of the cluster cannot be reached: {reason}",
        where=address.scheduler,
        hint="is the address right, does dask scheduler run there, and did one authority sign all "
        "certificates of the cluster?",
    )
