"""Measures a tree of the project: its size, its comments, and what each command loads.

Run it with the Python of an environment in which the tree is installed::

    .venv/bin/python tools/measure_tree.py [ROOT]

Lines are all lines of the sources of each distribution; code is a line that is neither
blank, nor a comment of its own, nor part of a docstring. Times are processor seconds of a new
process, the best of five.
"""

from __future__ import annotations

import ast
import io
import os
import resource
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "taciturn"
TURNS = 5
# What a command loads is asked of the command itself, in a process that ends as it would.
_LOADED = """
import atexit, sys
def tell():
    names = sorted(name for name in sys.modules if name.split(".")[0].startswith("taciturn"))
    print("LOADED", *names, file=sys.stderr)
atexit.register(tell)
import os
real = os._exit
def leave(code):
    tell()
    real(code)
os._exit = leave
from taciturn.__main__ import main
sys.argv = ["taciturn", *sys.argv[1:]]
main()
"""


HOMES = {"product": "src"} | {name: f"{name}/src" for name in ("audit", "ops", "paper", "risk")}


def sources(root: Path) -> dict[str, list[Path]]:
    """The files of each distribution in a checkout."""
    homes = {name: root / home for name, home in HOMES.items()}
    return {name: sorted(home.rglob("*.py")) for name, home in homes.items() if home.exists()}


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines that docstrings cover."""
    covered: set[int] = set()
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            covered.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return covered


def function_lengths(tree: ast.Module) -> Iterator[int]:
    """Lines of each function's body, docstring left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[ast.get_docstring(node) is not None :]
            if body:
                yield (body[-1].end_lineno or 0) - body[0].lineno + 1


def measure(files: list[Path]) -> dict[str, float]:
    """Counts lines, code, comments, functions and classes."""
    lines = code = comments = classes = 0
    lengths: list[int] = []
    for path in files:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        own = {
            token.start[0]
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        }
        rows = text.splitlines()
        blank = {number for number, row in enumerate(rows, 1) if not row.strip()}
        lines += len(rows)
        comments += len(own)
        code += len(rows) - len(own | blank | docstring_lines(tree))
        classes += sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree))
        lengths.extend(function_lengths(tree))
    return {
        "files": len(files),
        "lines": lines,
        "code": code,
        "comments per 100 lines of code": round(100 * comments / code, 1),
        "median function": statistics.median(lengths),
        "longest function": max(lengths),
        "classes per file": round(classes / len(files), 1),
    }


def processor_seconds(command: list[str], folder: Path) -> float:
    """The least processor time of a few turns."""
    best = float("inf")
    for _ in range(TURNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def loaded(arguments: list[str], folder: Path, lines: dict[str, int]) -> str:
    """How many of our modules and lines a command loads, and its processor time."""
    run = [sys.executable, "-c", _LOADED, *arguments]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    last = [row for row in done.stderr.splitlines() if row.startswith("LOADED")][-1]
    names = last.split()[1:]
    total = sum(lines.get(name, 0) for name in names)
    seconds = processor_seconds([sys.executable, "-m", PACKAGE, *arguments], folder)
    return f"{len(names)} modules, {total:,} lines, {seconds:.2f} s"


def installed_size() -> str:
    """Bytes of everything in this environment's site-packages."""
    home = Path(next(path for path in sys.path if path.endswith("site-packages")))
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    return f"{size / 1e6:,.0f} MB"


def module_lines(files: dict[str, list[Path]], root: Path) -> dict[str, int]:
    """Lines of each module by its dotted name."""
    lines = {}
    for name, listed in files.items():
        for path in listed:
            parts = path.relative_to(root / HOMES[name]).with_suffix("").parts
            dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            lines[dotted] = len(path.read_text(encoding="utf-8").splitlines())
    return lines


def main() -> None:
    """Prints the figures."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    files = sources(root)
    for name, listed in files.items():
        print(name)
        for quantity, value in measure(listed).items():
            print(f"  {quantity:32}{value:>10,}")
    lines = module_lines(files, root)
    folder = Path(os.environ.get("TRIAL", root / "examples" / "two-machines"))
    commands = {
        "--help": ["--help"],
        "train": ["train", "--dataset", "breast-cancer", "--epochs", "1", "--json"],
        "party": ["party", "bob.toml"],
    }
    for name, arguments in commands.items():
        print(f"{name:10}{loaded(arguments, folder, lines)}")
    print(f"installed {installed_size()}")


if __name__ == "__main__":
    main()
