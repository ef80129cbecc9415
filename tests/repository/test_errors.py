"""Errors: the tree in the docstring, the form of every error, and how settings are spelled."""

from __future__ import annotations

import copy
import inspect
import re
import subprocess
import sys

import pytest
from typer.exceptions import TyperException

from taciturn import errors
from taciturn.__main__ import USAGE
from taciturn.errors import (
    ConfigError,
    TaciturnError,
    nearest,
    nearest_setting,
    rendering_errors_as,
)
from taciturn.setting_syntax import COMMAND_LINE, PYTHON, CommandLine, Hint, SettingSyntax, TomlFile
from tests.repository.bad_input import CASES, Case, outcome

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
WORDS = [f"word-{number}" for number in range(16)]


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
        ("a.toml", "", "epochs is 0\n  where: a.toml"),
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
    error = ConfigError("epochs is 0", setting="epochs", hint=Hint("use {epochs}", epochs=1))
    for twin in (copy.copy(error), copy.deepcopy(error)):
        assert twin.diagnostics() == error.diagnostics()
        assert twin.diagnostics(COMMAND_LINE) == error.diagnostics(COMMAND_LINE)


@pytest.mark.parametrize(
    ("word", "known", "listed"),
    [
        ("seled", ["none", "sealed"], ["sealed", "none", "sealed"]),
        ("xyz", ["none", "sealed"], ["none", "sealed"]),
        ("word-12", WORDS, ["word-12", *WORDS[:12]]),
        ("x", WORDS[:12], WORDS[:12]),
    ],
)
def test_nearest_names_the_close_word_first_and_at_most_twelve(word, known, listed):
    hint = nearest(word, known)
    assert [name for name in re.findall(r"[\w-]+", hint) if name in known] == listed
    assert hint.endswith("…") == (len(known) > 12)


# --- every user error has the form of one --------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command)
def test_a_wrong_input_gets_its_error_in_the_form_of_one(case: Case):
    result = outcome(case)
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err
    assert max(len(line) for line in result.err.splitlines()) <= 107  # "error: " and 100 columns
    if case.kind is TyperException:
        assert isinstance(result.error, TyperException)
        assert result.exit_code == USAGE
        return
    assert isinstance(result.error, TaciturnError)
    assert type(result.error) is case.kind
    assert (result.error.setting, result.exit_code) == (case.setting, case.kind.exit_code)
    assert result.error.diagnostics(COMMAND_LINE).split() == result.err.split()[1:]
    for problem in getattr(result.error, "problems", ()) or (result.error,):
        # One sentence that says what is wrong, with the place and a way out.
        assert problem.message
        assert not re.search(r"\n|\.$|[.!?] [A-Z]", problem.message)
        assert problem.where
        # What is wrong with a setting's value says what the setting takes.
        assert problem.hint or problem.setting


# --- a setting, spelled by the face in use -------------------------------------------------------

FILE = TomlFile("bob.toml", {"epsilon": "agreement", "variant": "agreement", "budget": "privacy"})
RUN = TomlFile("run.toml", {"epsilon": "", "variant": "", "budget": ""})


@pytest.mark.parametrize(
    ("syntax", "expected"),
    [
        (
            PYTHON,
            "where: budget=\n"
            '  try:   use epsilon=0.5 or variant="printed" or "mean-one", or leave budget out '
            "(fresh=True)",
        ),
        (
            COMMAND_LINE,
            "where: --budget\n"
            "  try:   use --epsilon 0.5 or --variant printed or mean-one, or leave --budget out "
            "(--fresh)",
        ),
        (
            FILE,
            "where: bob.toml, [privacy] budget\n"
            '  try:   use epsilon = 0.5 or variant = "printed" or "mean-one", or leave budget out '
            "(--fresh)",
        ),
        (
            RUN,
            "where: run.toml, budget\n"
            '  try:   use epsilon = 0.5 or variant = "printed" or "mean-one", or leave budget out '
            "(--fresh)",
        ),
    ],
    ids=["python", "command line", "party's file", "settings file"],
)
def test_every_face_spells_a_setting_in_its_own_way(syntax: SettingSyntax, expected: str):
    hint = Hint(
        "use {epsilon} or {variant}, or leave {budget} out ({fresh})",
        epsilon=0.5,
        variant=("printed", "mean-one"),
        fresh=True,
    )
    error = ConfigError("unpaid", setting="budget", hint=hint)
    assert error.diagnostics(syntax) == f"unpaid\n  {expected}"
    with pytest.raises(ConfigError) as raised, rendering_errors_as(syntax):
        raise error
    assert str(raised.value) == f"unpaid\n  {expected}"


def test_the_nearest_face_spells_an_error():
    with (
        pytest.raises(ConfigError) as raised,
        rendering_errors_as(COMMAND_LINE),
        rendering_errors_as(FILE),
    ):
        raise ConfigError("epsilon is 0", setting="epsilon")
    assert raised.value.diagnostics(PYTHON).endswith("bob.toml, [agreement] epsilon")


@pytest.mark.parametrize(
    ("syntax", "expected"),
    [
        (PYTHON, 'mechanism="sealed"'),
        (COMMAND_LINE, "--mechanism sealed"),
        (FILE.within("agreement"), 'bob.toml, [agreement] mechanism = "sealed"'),
        (RUN.within(""), 'run.toml, mechanism = "sealed"'),
    ],
    ids=str,
)
def test_a_place_may_say_the_value_too(syntax: SettingSyntax, expected: str):
    assert syntax.place("mechanism", "sealed") == expected


def test_a_value_of_a_settings_file_is_placed_there_and_changed_by_an_option():
    syntax = CommandLine(RUN, frozenset({"epsilon"}))
    assert (syntax.place("epsilon"), syntax.place("variant")) == ("run.toml, epsilon", "--variant")
    assert syntax.assignment("epsilon", 1.0) == "--epsilon 1"


def test_what_a_person_wrote_is_never_taken_for_a_template():
    hint = Hint("{0}, {1}, {data_dir}", "{weird}.csv", "/a{b}")
    assert hint.text(COMMAND_LINE) == "{weird}.csv, /a{b}, --data-dir"
    assert ConfigError("x", hint="{not} a template").hint == "{not} a template"


def test_an_error_moves_with_its_hint():
    error = ConfigError("x", setting="clip", hint=Hint("raise {clip}"))
    moved = error.at("new.csv")
    assert moved.diagnostics(COMMAND_LINE) == "x\n  where: new.csv\n  try:   raise --clip"
    assert error.where == "clip="


def test_it_moves_beside_a_library_that_changes_how_errors_are_copied():
    """Dask sends errors between processes, and teaches Python how."""
    program = (
        "import distributed\n"
        "from taciturn.errors import ConfigError\n"
        "error = ConfigError('x', setting='clip')\n"
        "assert error.at('new.csv').where == 'new.csv'\n"
        "assert error.where == 'clip='\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_nearest_setting_is_spelled_by_the_face():
    hint = nearest_setting("batch-sise", ["batch_size", "epochs"])
    file = TomlFile("run.toml", {"batch_size": "", "epochs": ""})
    for syntax, named in ((file, "batch-size"), (PYTHON, "batch_size")):
        assert re.findall(r"batch\Wsize|batch_size|epochs", hint.text(syntax)) == [
            named,
            named,
            "epochs",
        ]
