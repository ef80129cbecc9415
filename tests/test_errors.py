"""The tree of errors: drawn in the docstring, and true."""

from __future__ import annotations

import copy
import inspect
import re

import pytest

from taciturn import errors
from taciturn.errors import ConfigError, TaciturnError, nearest

LINE = re.compile(r"^    (?P<lead>[│├└─ ]*)(?P<name>[A-Z]\w+) +(?:exit )? *(?P<code>\d+)\b")


def drawn_tree() -> list[tuple[str, str, int]]:
    """(name, parent, exit code) of each line of the drawing."""
    rows: list[tuple[str, str, int]] = []
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := LINE.match(line):
            depth = len(match["lead"]) // 4
            path = [*path[:depth], match["name"]]
            parent = path[depth - 1] if depth else "Exception"
            rows.append((match["name"], parent, int(match["code"])))
    return rows


TREE = drawn_tree()


def test_the_drawing_names_every_class_once():
    defined = {
        name
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, TaciturnError)
    }
    names = [name for name, _, _ in TREE]
    assert len(names) == len(set(names))
    assert set(names) == defined


@pytest.mark.parametrize(("name", "parent", "code"), TREE)
def test_each_class_has_the_drawn_parent_and_exit_code(name, parent, code):
    kind = getattr(errors, name)
    assert [base.__name__ for base in kind.__bases__] == [parent]
    assert kind.exit_code == code
    assert kind("something").exit_code == code
    assert inspect.getdoc(kind)


def test_exit_codes_are_failures_that_a_shell_can_report():
    assert all(0 < code < 126 and code != 2 for _, _, code in TREE)


@pytest.mark.parametrize(
    ("where", "hint", "expected"),
    [
        ("", "", "epochs is 0"),
        ("--epochs", "", "epochs is 0\n  where: --epochs"),
        ("", "use 1 or more", "epochs is 0\n  try:   use 1 or more"),
        ("a.toml", "use 1", "epochs is 0\n  where: a.toml\n  try:   use 1"),
    ],
)
def test_diagnostics_layout(where, hint, expected):
    error = ConfigError("epochs is 0", where=where, hint=hint)
    assert error.diagnostics() == expected
    assert str(error) == expected
    assert (error.message, error.where, error.hint) == ("epochs is 0", where, hint)


def test_an_error_survives_copying():
    error = ConfigError("epochs is 0", where="--epochs", hint="use 1")
    assert copy.copy(error).diagnostics() == error.diagnostics()


def test_every_error_is_caught_at_the_root():
    for name, _, _ in TREE:
        with pytest.raises(TaciturnError, match="something"):
            raise getattr(errors, name)("something")


def test_nearest_names_the_close_word_first():
    assert nearest("seled", ["none", "sealed"]) == "did you mean sealed? known: none, sealed"


def test_nearest_lists_when_nothing_is_close():
    assert nearest("xyz", ["none", "sealed"]) == "known: none, sealed"


def test_nearest_lists_at_most_twelve_but_looks_at_all():
    known = (f"word-{letter}" for letter in "abcdefghijklmnop")
    hint = nearest("word-pp", known)
    assert hint.startswith("did you mean word-p? known: word-a, ")
    assert hint.endswith("word-l, …")
    assert "…" not in nearest("x", [str(number) for number in range(12)])
