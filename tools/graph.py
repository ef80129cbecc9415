"""Print the import graph of a checkout: arrows against the layers, dependencies, cycles, chains.

Run it with any Python 3.11, installed or not::

    python tools/graph.py [ROOT] [--json FILE]

The layers are those of the contract ``rooms`` in ``pyproject.toml``, which import-linter checks;
this tool also counts imports inside functions and those for types alone, which are no arrows of the
loaded program. Modules of every distribution count: the packages below each ``src``.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

CORE = "taciturn"
CONTRACT = "rooms"
_COMMONEST = 25


class Kind(StrEnum):
    """When an import runs: with its module, with a function, or never."""

    MODULE = "module"
    FUNCTION = "function"
    TYPES = "types"


class Import(NamedTuple):
    """An import of one module by another."""

    importer: str
    imported: str
    kind: Kind


Adjacency: TypeAlias = Mapping[str, Iterable[str]]


@dataclass(frozen=True)
class Graph:
    """Modules of a checkout with their files, and the imports between them."""

    root: Path
    modules: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def from_checkout(cls, root: Path) -> Graph:
        """Graph of every package below a ``src`` of the checkout."""
        modules = {}
        for home in (root / "src", *sorted(root.glob("*/src"))):
            for path in sorted(home.rglob("*.py")):
                name = ".".join(path.relative_to(home).with_suffix("").parts)
                modules[name.removesuffix(".__init__")] = path
        return cls(root, modules)

    @cached_property
    def lines(self) -> dict[str, int]:
        """Lines of each module."""
        return {
            name: len(path.read_text(encoding="utf-8").splitlines())
            for name, path in self.modules.items()
        }

    @cached_property
    def imports(self) -> set[Import]:
        """Every import of a module of the project by another."""
        found: set[Import] = set()
        for name, path in self.modules.items():
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for dotted, kind in imported_names(tree, Kind.MODULE):
                target = self._module(dotted)
                if target and target != name:
                    found.add(Import(name, target, kind))
        return found

    def _module(self, dotted: str) -> str:
        """The module that a dotted name is, or is in; empty outside the project."""
        while dotted and dotted not in self.modules:
            dotted = dotted.rpartition(".")[0]
        return dotted

    def adjacency(self, *kinds: Kind) -> dict[str, set[str]]:
        """Imported modules of each module, by imports of these kinds, or of any."""
        found: dict[str, set[str]] = defaultdict(set)
        for entry in self.imports:
            if not kinds or entry.kind in kinds:
                found[entry.importer].add(entry.imported)
        return found

    @property
    def in_core(self) -> list[Import]:
        """Imports between modules of the core."""
        return sorted(
            entry
            for entry in self.imports
            if top(entry.importer) == CORE and top(entry.imported) == CORE
        )


def imported_names(node: ast.AST, kind: Kind) -> Iterator[tuple[str, Kind]]:
    """Dotted names that a syntax tree imports, ``from a import b`` as ``a.b``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, kind) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield from ((f"{child.module}.{alias.name}", kind) for alias in child.names)
        inner = kind
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = Kind.FUNCTION
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            inner = Kind.TYPES
        yield from imported_names(child, inner)


def top(module: str) -> str:
    """Top-level package of a module."""
    return module.partition(".")[0]


def package(module: str) -> str:
    """Package below the top level that a module is in, or the module itself."""
    return [*module.split("."), "__init__"][1]


def layers(root: Path) -> dict[str, int]:
    """Rank of each package of the core in the import contract; 0 is the highest layer."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    chosen = next(contract for contract in contracts if contract["id"] == CONTRACT)
    return {
        # A layer in brackets is optional; | and : part packages that stand beside each other.
        name: rank
        for rank, layer in enumerate(chosen["layers"])
        for name in re.findall(r"\w+", layer)
    }


def cycles(adjacency: Adjacency) -> list[list[str]]:
    """Strongly connected components of more than one node (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in adjacency.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                found.append(sorted(component))

    sys.setrecursionlimit(10_000)
    for node in list(adjacency):
        if node not in index:
            visit(node)
    return found


def longest_chain(adjacency: Adjacency) -> tuple[str, ...]:
    """Longest chain of imports; in a cycle, each module counts once."""
    known: dict[str, tuple[str, ...]] = {}
    active: set[str] = set()

    def chain(node: str) -> tuple[str, ...]:
        if node not in known:
            active.add(node)
            others = [chain(other) for other in adjacency.get(node, ()) if other not in active]
            active.discard(node)
            known[node] = (node, *max(others, key=len, default=()))
        return known[node]

    return max((chain(node) for node in list(adjacency)), key=len, default=())


def show_layers(graph: Graph) -> None:
    """Print how many imports point down, up and sideways, and each that points up."""
    ranks = layers(graph.root)
    arrows: dict[str, list[Import]] = {"down": [], "up": [], "sideways": []}
    for entry in graph.in_core:
        here, there = package(entry.importer), package(entry.imported)
        if here != there and here in ranks and there in ranks:
            step = ranks[there] - ranks[here]
            arrows["down" if step > 0 else "up" if step < 0 else "sideways"].append(entry)
    print("imports", ", ".join(f"{name} {len(entries)}" for name, entries in arrows.items()))
    for name in ("up", "sideways"):
        for entry in arrows[name]:
            print(f"  {name}: {entry.importer} -> {entry.imported} ({entry.kind})")


def show_packages(graph: Graph) -> None:
    """Print which packages of the core each of them imports, and the cycles between packages."""
    between = {(package(entry.importer), package(entry.imported), entry) for entry in graph.in_core}
    known: dict[str, set[str]] = defaultdict(set)
    count: Counter[str] = Counter()
    for here, there, _ in between:
        if here != there:
            known[here].add(there)
            count[here] += 1
    print("packages that each package imports:")
    for name, others in sorted(known.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        print(f"  {name} {len(others)}, {count[name]} imports: {' '.join(sorted(others))}")
    print("cycles of packages:", cycles(known))


def show_jobs(graph: Graph) -> None:
    """Print imports between jobs, and imports of a job by the rest of the core."""
    between: Counter[tuple[str, str]] = Counter()
    outside: Counter[tuple[str, str, Kind]] = Counter()
    for entry in graph.in_core:
        here, there = job_of(entry.importer), job_of(entry.imported)
        if here and there and here != there:
            between[here, there] += 1
        elif there and package(entry.importer) != "jobs":
            outside[entry.importer, there, entry.kind] += 1
    print("imports between jobs:", between.most_common())
    print("imports of a job from outside jobs:")
    for (importer, job, kind), number in sorted(outside.items()):
        print(f"  {importer} -> {job} ({kind}) {number}")


def job_of(module: str) -> str:
    """Name of the job whose folder a module is in; empty for any other module."""
    parts = module.split(".")
    return parts[2] if parts[:2] == [CORE, "jobs"] and len(parts) > 3 else ""


def show_modules(graph: Graph) -> None:
    """Print fan-out and fan-in, cycles of modules, and the longest chain of imports."""
    every = graph.adjacency()
    out = Counter({name: len(others) for name, others in every.items() if top(name) == CORE})
    into = Counter(imported for others in every.values() for imported in others)
    print("fan-out:", *(f"{name} {number}" for name, number in out.most_common(_COMMONEST)))
    print("fan-in:", *(f"{name} {number}" for name, number in into.most_common(_COMMONEST)))
    loaded = graph.adjacency(Kind.MODULE)
    print("cycles of modules at import:", cycles(loaded))
    print("cycles of modules, with imports in functions and for types:")
    for component in cycles(every):
        print(f"  {len(component)}: {' '.join(component)}")
    kinds = Counter(entry.kind for entry in graph.in_core)
    print(f"imports in functions {kinds[Kind.FUNCTION]}, for types {kinds[Kind.TYPES]}")
    chain = longest_chain(loaded)
    print(f"longest chain ({len(chain)}):", " > ".join(chain))


def main() -> None:
    """Print the import graph of a checkout."""
    parser = argparse.ArgumentParser(description="Print the import graph of a checkout.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--json", type=Path, help="write modules, lines and imports to a file")
    arguments = parser.parse_args()
    graph = Graph.from_checkout(arguments.root.resolve())
    tops = Counter(map(top, graph.modules))
    lines: Counter[str] = Counter()
    for name, number in graph.lines.items():
        lines[top(name)] += number
    for name in sorted(tops):
        print(f"{name}: {tops[name]} modules, {lines[name]:,} lines")
    for part in (show_layers, show_packages, show_jobs, show_modules):
        part(graph)
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps({"lines": graph.lines, "imports": sorted(graph.imports)}), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
