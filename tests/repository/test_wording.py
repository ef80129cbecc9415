"""Tests do not pin wording: an error, a help text or a page may be reworded and no test changes.

Errors are expected by type, setting and what they name (``tests/expected.py``); of pages and help
texts tests read structure and numbers. What other programs read must stay exact, and says so:
``# exact: why`` on the line, or above it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = [ROOT / folder / "tests" for folder in (".", "audit", "ops", "paper", "risk")]
# Two plain words in a row: a setting, a column, a file or a number is none.
PROSE = re.compile(r"[a-z']{2,} [a-z']{2,}")
SEARCHES = ("startswith", "endswith", "count", "index", "find")


def text_of(node: ast.AST) -> str:
    """The literal text in an expression, with something else where values are put in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "\0".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return ""


def compared(test: ast.AST) -> Iterator[ast.expr]:
    """What an assertion compares with, or searches for."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from node.args if node.func.attr in SEARCHES else ()


def pinned(path: Path) -> list[str]:
    """Where a file's assertions hold prose."""
    text = path.read_text(encoding="utf-8")
    lines, places = text.splitlines(), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.keyword) and node.arg == "match":
            literals, line = [node.value], node.value.lineno
        elif isinstance(node, ast.Assert):
            literals, line = list(compared(node.test)), node.lineno
        else:
            continue
        exact = any("# exact:" in lines[at] for at in (line - 1, max(line - 2, 0)))
        if not exact and any(PROSE.search(text_of(literal)) for literal in literals):
            places.append(f"{path.parent.name}/{path.name}:{line}")
    return places


def test_no_assertion_pins_wording():
    files = sorted(path for folder in TESTS for path in folder.rglob("*.py"))
    assert [place for path in files for place in pinned(path)] == []


def test_pinned_wording_is_noticed(tmp_path):
    lines = [
        "assert 'rows are missing' in message",
        "assert error.setting == 'epochs'",
        "with pytest.raises(ConfigError, match='is not possible'): pass",
        "# exact: a header that other programs read",
        "assert text.startswith('taciturn journal file')",
        "assert text",
        "assert text.startswith('taciturn journal file')",
    ]
    path = tmp_path / "pinning.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert sorted(int(place.split(":")[1]) for place in pinned(path)) == [1, 3, 7]
