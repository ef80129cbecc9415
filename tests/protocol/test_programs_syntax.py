"""A helper called without ``yield from`` does nothing, and no type checker notices: this does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import taciturn.protocol

ROOM = Path(taciturn.protocol.__file__).parent
JOBS = ROOM.parent / "jobs"
FILES = [
    *sorted(ROOM.rglob("*.py")),
    *sorted(JOBS.glob("*/alice.py")),
    *sorted(JOBS.glob("*/bob.py")),
]
STEPS = frozenset({"send", "receive", "emit", "keep"})
# These drive the programs that they are given, step by step.
DRIVERS = frozenset({"gather", "with_peer", "ask", "run"})
BY_STEPS = "steps.py"


def is_program(node: ast.AST) -> bool:
    """Whether a function is annotated to return ``Program[...]``."""
    return (
        isinstance(node, ast.FunctionDef)
        and isinstance(node.returns, ast.Subscript)
        and isinstance(node.returns.value, ast.Name)
        and node.returns.value.id == "Program"
    )


def programs(tree: ast.AST) -> frozenset[str]:
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and is_program(node)
    )


def called(node: ast.Call) -> str:
    """The last part of the name that is called: of ``send(...)`` and of ``steps.send(...)``."""
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def forgotten(tree: ast.AST, helpers: frozenset[str]) -> Iterator[int]:
    """The lines on which a helper is called, but not directly under ``yield from``."""
    driven = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.YieldFrom)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in DRIVERS:
            driven |= {id(inner) for given in node.args for inner in ast.walk(given)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in helpers and id(node) not in driven:
            # A store is opened without arguments, a conversation never.
            if called(node) != "open" or node.args:
                yield node.lineno


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


HELPERS = STEPS.union(*(programs(parse(path)) for path in FILES))


def test_the_helpers_of_the_room_are_known():
    assert HELPERS >= STEPS | {
        "shake_hands",
        "train",
        "answer_rows",
        "ask_rows",
        "receive_scores",
        "agree_as_alice",
        "agree_as_bob",
        "greet",
        "with_key",
        "with_seed",
        "unmasked_product",
        "released_product",
        "_offer",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOM.parent)))
def test_every_helper_is_called_with_yield_from(path):
    if path.name != BY_STEPS:
        assert list(forgotten(parse(path), HELPERS)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOM.parent)))
def test_every_generator_that_is_driven_is_annotated_as_a_program(path):
    """Without the annotation the check above would not know it for a helper."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef) and not is_program(node):
            assert not any(isinstance(inner, ast.YieldFrom) for inner in ast.walk(node))


@pytest.mark.parametrize("path", sorted((ROOM / "alice").glob("*.py")))
def test_alices_files_hold_at_least_one_program_each(path):
    assert path.name in (
        "__init__.py",
        "inputs.py",
        "prepared.py",
        "registry.py",
        "score_noise.py",
        "whitened.py",
    ) or programs(parse(path))


BAD = """
def talk(x) -> Program[int]:
    send(Hello())                           # line 3: forgotten
    got = receive(Hello)                    # line 4: forgotten
    yield emit(Progress(1, 2))              # line 5: yield without from
    yield from [send(Hello())]              # line 6: under a list
    steps.send(Hello())                     # line 7: by its module's name
    scores = (yield from mine(1)) + mine(2) # line 8: the second one
    gather({"a": mine(4)})                # line 9: what drives others, forgotten itself
    yield from gather({"a": mine(5)})
    yield from send(Hello())
    got = yield from receive(Hello)
    return (yield from mine(3))

def gather(x) -> Program[int]:
    yield from emit(Progress(1, 2))

def mine(x) -> Program[int]:
    yield from emit(Progress(1, 2))
    return x
"""


def test_the_check_finds_each_way_of_forgetting():
    tree = ast.parse(BAD)
    assert sorted(forgotten(tree, STEPS | programs(tree))) == [3, 4, 5, 6, 7, 8, 9]
    assert programs(tree) == {"talk", "mine", "gather"}
