"""Measure what each party of one training runs: files, functions, lines and depth of calls.

Run it in a checkout, with its environment::

    .venv/bin/python tools/walk.py [MECHANISM] [--path FILE]

Two parties train over an in-memory wire, on tables that have a number, a text and a date column on
either side, so that no common capability stays unused. For each party it prints the files crossed
(those with a function that was called) with all their lines, the functions entered with theirs, and
the deepest chain of calls. Files of every ``taciturn*`` package count, whichever distribution they
are in: moving a file to another distribution changes no figure. ``--path`` writes the functions in
the order in which they are first entered: what a reviewer has to read.

Functions that run while a module is imported are not counted. Declarations such as pydantic models
and tables of messages are therefore missing from "entered", and present in "crossed".
"""

from __future__ import annotations

import argparse
import ast
import csv
import functools
import inspect
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def cache_of_each_party(function: Any, cached: Any = functools.cache) -> Any:  # noqa: ANN401
    """A cache for each thread: the two parties, here in one process, share no result.

    Else a function would count for the party alone that calls it first.
    """
    if not str(getattr(function, "__module__", "")).startswith("taciturn"):
        return cached(function)
    caches = threading.local()

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the function's
        if not hasattr(caches, "function"):
            caches.function = cached(function)
        return caches.function(*arguments, **named)

    return called


def limited_cache_of_each_party(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
    """``functools.lru_cache`` likewise, which is given a function or the cache's size."""
    if arguments and callable(arguments[0]):
        return cache_of_each_party(arguments[0], _LIMITED)
    return lambda function: cache_of_each_party(function, _LIMITED(*arguments, **named))


def in_project(file: str) -> bool:
    """Whether a file belongs to a package ``taciturn*`` of this checkout."""
    return file.startswith(f"{ROOT}/") and "/src/taciturn" in file


_LIMITED = functools.lru_cache
functools.cache, functools.lru_cache = cache_of_each_party, limited_cache_of_each_party

# Of this checkout, with caches as the line above has them.
from tests.party import sides  # noqa: E402
from tests.system import free_port  # noqa: E402
from tests.waiting import HANG  # noqa: E402

from taciturn.engine.callbacks import Callbacks  # noqa: E402
from taciturn.party.config import PartyConfig  # noqa: E402

# Chains of calls are compared at one call in so many: walking the stack costs most of the time.
_SAMPLED = 50


class Function(NamedTuple):
    """A function by file, qualified name and first line."""

    file: str
    name: str
    line: int


@dataclass(slots=True)
class Walk:
    """What one thread ran: each function in the order of its first call, and the deepest chain.

    ``entered`` has with each function the calls that it was first entered by, the outermost first.
    """

    entered: dict[Function, tuple[str, ...]] = field(default_factory=dict)
    deepest: tuple[str, ...] = ()
    calls: int = 0


walks: dict[str, Walk] = {}


def record_call(frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - sys.setprofile's
    """Record a call of a function of the project: a profile function."""
    code = frame.f_code
    if event != "call" or not in_project(code.co_filename):
        return
    walk = walks.setdefault(threading.current_thread().name, Walk())
    walk.calls += 1
    function = Function(code.co_filename, code.co_qualname, code.co_firstlineno)
    if function not in walk.entered and not is_importing(frame):
        walk.entered[function] = call_chain(frame)
    if walk.calls % _SAMPLED == 0:
        chain = call_chain(frame)
        if len(chain) > len(walk.deepest):
            walk.deepest = chain


def is_importing(frame: FrameType | None) -> bool:
    """Whether a frame runs while a module is imported: its body, a class's, or what they call."""
    while frame is not None:
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            # Only functions have fast locals; the interpreter's own start is no module.
            return in_project(frame.f_code.co_filename)
        frame = frame.f_back
    return False


def call_chain(frame: FrameType | None) -> tuple[str, ...]:
    """Functions of the project on the stack of a frame, the outermost first."""
    chain: list[str] = []
    while frame is not None:
        code = frame.f_code
        if in_project(code.co_filename):
            chain.append(f"{Path(code.co_filename).stem}.{code.co_qualname}")
        frame = frame.f_back
    return tuple(reversed(chain))


@cache
def function_lengths(file: str) -> dict[int, int]:
    """Lines of each function of a file by its first line, which may be a decorator's."""
    lengths: dict[int, int] = {}
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            lengths.setdefault(first, (node.end_lineno or node.lineno) - first + 1)
    return lengths


def write_files(
    folder: Path,
    mechanism: str,
    port: int | None = None,
    *,
    rows: int = 120,
    passes: int | None = None,
    reveals: bool = True,
) -> None:
    """Write tables, certificates and files of two parties for one training.

    With a ``port`` Bob listens there, and Alice calls him. ``passes`` are the tests' few unless
    given. ``reveals``: in ``mutual`` both sides
    reveal the weights' shares at the end, which is not the default.
    """
    agreement = dict(sides.MECHANISMS[mechanism])
    if passes is not None:
        agreement["passes"] = passes
    if mechanism == "mutual" and reveals:
        agreement |= {"reveal": True, "reveal-bob": True}
    # A file of metrics is for a party that is monitored.
    output = {"metrics": None}
    sides.write_tables(folder, rows=rows)
    for role in ("alice", "bob"):
        table = folder / f"{role}.csv"
        with table.open(encoding="utf-8", newline="") as file:
            header, *records = csv.reader(file)
        header += [f"city_{role}", f"since_{role}"]
        for number, record in enumerate(records):
            date = f"{1 + number % 28:02d}.{1 + number % 12:02d}.2024"
            record += [("Bern", "Basel", "Genf")[number % 3], date]
        with table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *records])
    sides.write_certificates(folder / "certs")
    for role in sides.ROLES:
        way = "listen" if role == "bob" else "connect"
        link = {} if port is None else {way: f"127.0.0.1:{port}"}
        sides.write_config(folder, role, agreement=agreement, output=output, link=link)


def train(
    mechanism: str,
    *,
    over_network: bool = False,
    rows: int = 120,
    passes: int | None = None,
    reveals: bool = True,
) -> None:
    """Train once between two parties, and record the calls of each.

    ``over_network`` connects them by gRPC on this machine, with threads of gRPC's own; otherwise
    they exchange frames in memory. ``rows``, ``passes`` and ``reveals`` as in
    ``write_files``.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "parties"
        folder.mkdir()
        port = free_port() if over_network else None
        write_files(folder, mechanism, port, rows=rows, passes=passes, reveals=reveals)
        threading.setprofile(record_call)
        try:
            ends = run_over_network(folder) if over_network else vars(sides.run_both(folder))
        finally:
            threading.setprofile(None)
    for end in ends.values():
        if isinstance(end, BaseException):
            raise end


def run_over_network(folder: Path) -> dict[str, Any]:
    """Run both parties; Alice calls once Bob listens, so that she calls once."""
    listening = threading.Event()

    def announce(text: str) -> None:
        if text.startswith("listening"):
            listening.set()

    def run(role: str) -> object:
        config = PartyConfig.read(folder / f"{role}.toml")
        if role == "alice":
            listening.wait(HANG)
        endpoint: Any = None
        return sides.Party(config, endpoint, Callbacks(announce)).run()

    return sides.in_threads({role: functools.partial(run, role) for role in sides.ROLES})


def lengths(walk: Walk) -> dict[Function, int]:
    """The functions that a party entered, in order, each with its lines."""
    # Comprehensions and lambdas are lines of the function around them.
    return {
        entry: function_lengths(entry.file).get(entry.line, 0)
        for entry in walk.entered
        if "<" not in entry.name.rpartition(".")[2]
    }


def show(party: str, walk: Walk) -> list[str]:
    """Print a party's figures; returns its path to read, one function a line."""
    files = {entry.file: len(Path(entry.file).read_text().splitlines()) for entry in walk.entered}
    functions = lengths(walk)
    print(
        f"{party}: {len(files)} files crossed, {sum(files.values()):,} lines; "
        f"{len(functions):,} functions entered, {sum(functions.values()):,} lines"
    )
    packages: Counter[str] = Counter()
    for file, count in files.items():
        packages[package_of(file)] += count
    listed = ", ".join(f"{package} {count:,}" for package, count in packages.most_common())
    print(f"  by package: {listed}")
    print(f"  deepest chain ({len(walk.deepest)}): {' > '.join(walk.deepest)}")
    return [f"# {party}"] + [
        f"{entry.file.removeprefix(f'{ROOT}/')}:{entry.line} {entry.name} ({count} lines)"
        for entry, count in functions.items()
    ]


def parties() -> dict[str, Walk]:
    """What each party ran: the thread that entered its programs, which the other never imports."""
    return {
        party: walk
        for party in ("Alice", "Bob")
        for walk in walks.values()
        if any(f"/protocol/{party.lower()}/" in entry.file for entry in walk.entered)
    }


def package_of(file: str) -> str:
    """Package of the core that a file is in, or the other distribution's package."""
    top, *inner = file.rpartition("/src/")[2].split("/")
    return inner[0].removesuffix(".py") if top == "taciturn" else top


def main() -> None:
    """Print the figures of both parties, and write the path to read."""
    parser = argparse.ArgumentParser(description="Measure what each party of a training runs.")
    parser.add_argument("mechanism", nargs="?", default="mutual", choices=sides.MECHANISMS)
    parser.add_argument("--path", type=Path, help="write the functions entered, in order")
    arguments = parser.parse_args()
    train(arguments.mechanism)
    lines: list[str] = []
    for party, walk in parties().items():
        lines += show(party, walk)
    if arguments.path is not None:
        arguments.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"path to read: {arguments.path}")


if __name__ == "__main__":
    main()
