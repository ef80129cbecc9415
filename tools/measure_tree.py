"""Measure a checkout: lines of each distribution and of its tests, and what each command loads.

Run it with the Python of an environment in which the checkout is installed::

    .venv/bin/python tools/measure_tree.py [--sizes] [ROOT]

A distribution is a folder with a ``pyproject.toml``: the checkout itself (the core), and each of
its direct subfolders that has one. Lines are all lines of every text file below its ``src``:
Python, stubs, templates and pages alike; those of its ``tests`` are counted apart. Code is a line
of a Python file that is neither blank, nor a comment of its own, nor part of a docstring. Times
are processor seconds of a new process, the best of five; ``--sizes`` leaves them out.
"""

from __future__ import annotations

import argparse
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


CORE = "core"
_GENERATED = {"__pycache__", ".mypy_cache", ".ruff_cache"}


def distributions(root: Path) -> dict[str, Path]:
    """Folder of each distribution of a checkout; its own is ``CORE``."""
    found = {CORE: root}
    found |= {path.parent.name: path.parent for path in sorted(root.glob("*/pyproject.toml"))}
    return found


def text_files(folder: Path) -> dict[Path, str]:
    """Contents of every text file below a folder, generated ones excepted."""
    found: dict[Path, str] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if not path.is_file() or any(
            part in _GENERATED or part.endswith(".egg-info") for part in inside
        ):
            continue
        content = path.read_bytes()
        try:
            found[path] = content.decode("utf-8")
        except UnicodeDecodeError:
            continue
    return found


def line_count(files: dict[Path, str]) -> int:
    """Lines of all files together."""
    return sum(len(text.splitlines()) for text in files.values())


def docstring_lines(tree: ast.Module) -> set[int]:
    """Line numbers of docstrings."""
    covered: set[int] = set()
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            covered.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return covered


def function_lengths(tree: ast.Module) -> Iterator[int]:
    """Length in lines of each function's body, without its docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[ast.get_docstring(node) is not None :]
            if body:
                yield (body[-1].end_lineno or 0) - body[0].lineno + 1


def measure(files: dict[Path, str], tests: dict[Path, str]) -> dict[str, float]:
    """Figures of one distribution: its text files, and the shape of its Python code."""
    python = {path: text for path, text in files.items() if path.suffix == ".py"}
    code = comments = classes = 0
    lengths: list[int] = []
    for text in python.values():
        tree = ast.parse(text)
        own = {
            token.start[0]
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        }
        rows = text.splitlines()
        blank = {number for number, row in enumerate(rows, 1) if not row.strip()}
        comments += len(own)
        code += len(rows) - len(own | blank | docstring_lines(tree))
        classes += sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree))
        lengths.extend(function_lengths(tree))
    return {
        "text files": len(files),
        "lines of all text files": line_count(files),
        "Python files": len(python),
        "lines of Python files": line_count(python),
        "code": code,
        "comments per 100 lines of code": round(100 * comments / code, 1),
        "median function": statistics.median(lengths),
        "longest function": max(lengths),
        "classes per file": round(classes / len(python), 1),
        "lines of tests": line_count(tests),
    }


def processor_seconds(command: list[str], folder: Path) -> float:
    """Processor time of a command: the least of a few runs."""
    best = float("inf")
    for _ in range(TURNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def loaded(arguments: list[str], folder: Path, lines: dict[str, int]) -> str:
    """Modules of the project that a command loads, their lines, and its processor time."""
    run = [sys.executable, "-c", _LOADED, *arguments]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    last = [row for row in done.stderr.splitlines() if row.startswith("LOADED")][-1]
    names = last.split()[1:]
    total = sum(lines.get(name, 0) for name in names)
    seconds = processor_seconds([sys.executable, "-m", PACKAGE, *arguments], folder)
    return f"{len(names)} modules, {total:,} lines, {seconds:.2f} s"


def installed_size() -> str:
    """Size of this environment's site-packages."""
    home = Path(next(path for path in sys.path if path.endswith("site-packages")))
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    return f"{size / 1e6:,.0f} MB"


def module_lines(distributed: dict[str, dict[Path, str]], homes: dict[str, Path]) -> dict[str, int]:
    """Lines of each module by its dotted name."""
    lines = {}
    for name, files in distributed.items():
        for path, text in files.items():
            parts = path.relative_to(homes[name] / "src").with_suffix("").parts
            if path.suffix == ".py":
                dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                lines[dotted] = len(text.splitlines())
    return lines


def main() -> None:
    """Print the figures of a checkout."""
    parser = argparse.ArgumentParser(description="Measure a checkout of the project.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--sizes", action="store_true", help="count lines only, run no command")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    homes = distributions(root)
    files = {name: text_files(home / "src") for name, home in homes.items()}
    for name, home in homes.items():
        print(name)
        for quantity, value in measure(files[name], text_files(home / "tests")).items():
            print(f"  {quantity:32}{value:>10,}")
    if arguments.sizes:
        return
    lines = module_lines(files, homes)
    folder = Path(os.environ.get("TRIAL", root / "examples" / "two-machines"))
    commands = {
        "--help": ["--help"],
        "train": ["train", "--dataset", "breast-cancer", "--epochs", "1", "--json"],
        "party": ["party", "bob.toml"],
    }
    for name, words in commands.items():
        print(f"{name:10}{loaded(words, folder, lines)}")
    print(f"installed {installed_size()}")


if __name__ == "__main__":
    main()
