"""Doctests of the source, collected from its text: a module is imported when one of them runs.

Pytest's own collector imports every module first, which took longer than many of the tests.
"""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

# What all tests share: datasets, profiles, long proofs.
pytest_plugins = ("tests.plugin",)
DISTRIBUTIONS = (".", "audit", "ops", "paper", "risk")
SOURCES = tuple(Path(__file__).parent / folder / "src" for folder in DISTRIBUTIONS)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Takes the files of the source that hold examples."""
    for source in SOURCES:
        if file_path.suffix == ".py" and file_path.is_relative_to(source):
            if ">>> " not in file_path.read_text(encoding="utf-8"):
                return None
            examples: ExamplesFile = ExamplesFile.from_parent(parent, path=file_path)
            examples.module = ".".join(file_path.relative_to(source).with_suffix("").parts)
            return examples
    return None


class ExamplesFile(pytest.File):
    """The docstrings of one file that hold examples."""

    module: str

    def collect(self) -> Iterator[pytest.Item]:
        """One test for each docstring."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        for name, line in documented(tree, ""):
            example: Example = Example.from_parent(self, name=name or "module")
            example.module, example.attribute, example.line = self.module, name, line
            yield example


def documented(node: ast.Module | ast.ClassDef, within: str) -> Iterator[tuple[str, int]]:
    """Name and line of everything in a class or module whose docstring holds examples."""
    if ">>> " in (ast.get_docstring(node) or ""):
        yield within.removesuffix("."), getattr(node, "lineno", 1)
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from documented(child, f"{within}{child.name}.")
        elif isinstance(child, ast.FunctionDef) and ">>> " in (ast.get_docstring(child) or ""):
            yield f"{within}{child.name}", child.lineno


class Example(pytest.Item):
    """The examples of one docstring."""

    module: str
    attribute: str
    line: int

    def runtest(self) -> None:
        """Runs them; what differs is the failure's text."""
        module = import_module(self.module)
        documented = attrgetter(self.attribute)(module) if self.attribute else module
        finder = doctest.DocTestFinder(recurse=False)
        (test,) = finder.find(documented, f"{self.module}.{self.name}", module, module.__dict__)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        printed: list[str] = []
        if runner.run(test, out=printed.append).failed:
            pytest.fail("".join(printed), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is."""
        return self.path, self.line - 1, f"{self.module}.{self.name}"
