"""A binding is named by what it holds: some words never are such a name."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VAGUE = frozenset({"found", "each", "told", "what", "mine"})
SEARCHED = ("src", "audit", "ops", "paper", "risk", "tools", "examples", "tests")


def bindings(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds, without those that its children bind."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.arg():
            yield node.arg
        case ast.alias():
            # Without "as", `import a.b` binds a, and `from a import b` binds b.
            yield node.asname or node.name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name


def vague(source: str) -> list[tuple[int, str]]:
    """The line and the name of each binding with a vague name, in the order of the lines."""
    pairs = []
    for node in ast.walk(ast.parse(source)):
        # Every node that binds has a line; only the type of all nodes does not say so.
        pairs += [(getattr(node, "lineno", 0), name) for name in bindings(node) if name in VAGUE]
    return sorted(pairs)


def searched() -> Iterator[Path]:
    """Every file of Python code and every notebook."""
    for folder in SEARCHED:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".ipynb"):
                yield path


def code(path: Path) -> str:
    """A file's Python code; of a notebook, that of its cells one after another."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_no_binding_has_a_vague_name():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} binds {name}"
        for path in searched()
        for line, name in vague(code(path))
    ]
    assert wrong == []


def test_the_search_covers_the_tree():
    files = {str(path.relative_to(ROOT)) for path in searched()}
    assert {"src/taciturn/files.py", "tests/test_names.py", "examples/story.ipynb"} <= files
    assert all(any(name.startswith(f"{folder}/") for name in files) for folder in SEARCHED)


@pytest.mark.parametrize(
    "template",
    [
        "{0} = 1",
        "{0}: int = 1",
        "{0} += 1",
        "first, (second, *{0}) = 1, (2, 3)",
        "self.{0} = 1",
        "class Record:\n    {0}: str",
        "class {0}: ...",
        "def {0}(): ...",
        "async def {0}(): ...",
        "def function({0}, /): ...",
        "def function(*, {0}=1): ...",
        "def function(*{0}): ...",
        "def function(**{0}): ...",
        "lambda {0}: 1",
        "for {0} in (): ...",
        "async def function():\n    async for {0} in stream: ...",
        "[1 for {0} in ()]",
        "if {0} := 1: ...",
        "with open(path) as {0}: ...",
        "try: ...\nexcept OSError as {0}: ...",
        "import {0}",
        "import {0}.part",
        "import module as {0}",
        "from module import {0}",
        "from module import name as {0}",
        "match value:\n    case {0}: ...",
        "match value:\n    case int() as {0}: ...",
        "match value:\n    case [first, *{0}]: ...",
        "match value:\n    case {{'key': 1, **{0}}}: ...",
    ],
)
def test_every_kind_of_binding_is_seen(template):
    for name in VAGUE:
        assert [binding for _, binding in vague(template.format(name))] == [name]


@pytest.mark.parametrize(
    "source",
    [
        "print(found, record['told'], object.what)",
        "function(what='a keyword of somebody else')",
        "from module import found as rule",
        "'found = 1'  # each = 2",
        "def founder(teach, whatever, mined, foretold): ...",
    ],
)
def test_a_use_a_text_and_a_longer_name_are_no_such_binding(source):
    assert vague(source) == []
