"""A setting is declared once; whatever is made from the declaration says the same."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer
from tools.write_signatures import STUB, stub

import taciturn
from taciturn.cli.options import SHARED, merged
from taciturn.data.datasets import SHIPPED
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import ConfigError
from taciturn.estimator import VerticalLogisticRegression
from taciturn.party.config import (
    DERIVED,
    UNWRITTEN,
    file_default,
    party_file,
    section_settings,
)
from taciturn.privacy.registry import MECHANISMS
from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn.setting_syntax import COMMAND_LINE, plain_value
from taciturn.settings.agreement import AGREEMENT_KEYS, ALSO_SIMULATED, Agreement
from taciturn.settings.checked import declared
from taciturn.settings.mechanism_settings import FIELD
from taciturn.settings.schema import (
    DEFAULT_FEW_ROWS_PASSES,
    DEFAULT_FEW_ROWS_RANGE,
    DEFAULT_MECHANISM,
    DEFAULT_PASSES,
    DEFAULT_SCORE_RANGE,
    DEFAULT_SEVERAL_PASSES,
    DEFAULT_SHARED_PASSES,
    DEFAULT_TOLD_PASSES,
    MOST_PARTIES,
    OWN_DATA_DEFAULTS,
    SGD_ONLY,
    Newton,
    Settings,
)
from taciturn.settings.signatures import SettingsOptions
from taciturn.settings.study import Study
from taciturn.settings.table import TableSettings
from tests import settings_page
from tests.expected import refused
from tests.settings_page import ALL_SECTIONS

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = declared(Settings)


# --- the declarations themselves -----------------------------------------------------------------


def test_every_setting_of_a_simulation_is_declared_with_a_panel():
    # What a mechanism of another package declares is given under its own name.
    assert list(SETTINGS) == [name for name in Settings.model_fields if name != FIELD]
    assert all(setting.panel is not None for setting in SETTINGS.values())


@pytest.mark.parametrize("section", ALL_SECTIONS)
def test_every_key_of_a_partys_file_is_declared_for_its_section(section):
    settings = section_settings(section)
    # What follows from the file of an agreement is no key of any file.
    assert set(settings) >= set(ALL_SECTIONS[section].model_fields) - set(UNWRITTEN)
    assert not set(settings) & set(UNWRITTEN)
    assert {setting.scope for setting in settings.values()} == {section}


@pytest.mark.parametrize("section", ["agreement", "data", "privacy"])
def test_a_setting_is_declared_in_one_place(section):
    """What a simulation has too is declared there, and nowhere else."""
    own = declared(ALL_SECTIONS[section])
    shared = {"agreement": Agreement.__mro__[1], "data": TableSettings}
    inherited = set(declared(shared[section])) if section in shared else set()
    simulated = {name for name, setting in SETTINGS.items() if setting.scope == section}
    assert not (own.keys() - inherited) & simulated


def test_what_both_parties_share_is_what_an_agreement_holds():
    common = set(AGREEMENT_KEYS) & Settings.model_fields.keys()
    # A simulation has a number of Alices; an agreement has their names.
    assert ALSO_SIMULATED - set(DERIVED) == common - {"parties"}


@pytest.mark.parametrize("name", [*SETTINGS, *declared(Agreement)])
def test_the_help_is_a_sentence_of_a_few_words(name):
    text = declared(Settings, Agreement)[name].help
    assert text.endswith(".")
    assert text[0].isupper() or text[0] == "`"
    assert text.count("`") % 2 == 0
    assert len(text) < 140


def test_an_example_is_a_value_that_an_agreement_may_hold():
    """Those of the other sections stand in the files to begin with, whose tests read them."""
    settings = section_settings("agreement")
    names = [name for name in Agreement.model_fields if name in settings and name != "solver"]
    least = {name: file_default("agreement", name) for name in names}
    examples = {name: settings[name].example for name in least if settings[name].example}
    assert len(examples) >= 10
    assert (
        Agreement.from_mapping(
            {**least, "key_bits": 0, **examples, "solver": Newton(passes=1)}
        ).epsilon
        == examples["epsilon"]
    )


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [(mechanism, name) for mechanism, entry in MECHANISMS.items() for name in entry.takes],
)
def test_the_help_of_a_mechanisms_setting_names_the_mechanism_and_its_default(mechanism, name):
    text = f"{SETTINGS[name].help} {SETTINGS[name].detail}"
    assert f"`{mechanism}`" in text
    default = MECHANISMS[mechanism].defaults.get(name)
    if default not in (None, False):
        words = (
            f"(default: {plain_value(default)})",
            f"`{mechanism}` defaults to {plain_value(default)}",
        )
        assert any(word in text for word in words)


def test_the_help_names_what_there_is():
    for name in MECHANISMS:
        assert f"`{name}`" in SETTINGS["mechanism"].help
    for name in SHIPPED:
        assert f"`{name}`" in SETTINGS["dataset"].help
    for name in ("impute", "scale", "max_levels", "min_frequency"):
        assert f"(default: {getattr(DEFAULTS, name)})" in SETTINGS[name].help
    assert f"(default: {DEFAULTS.winsorise['*']})" in SETTINGS["winsorise"].help
    # exact: figures of the settings
    assert f"up to {MOST_PARTIES}" in SETTINGS["parties"].help
    ranges = f"{DEFAULT_SCORE_RANGE:g}; {DEFAULT_FEW_ROWS_RANGE:g}"
    # exact: figures of the settings
    assert (
        f"(default: {ranges} below {OPENING_ROWS:,} training rows)" in SETTINGS["score_range"].help
    )
    passes = SETTINGS["passes"]
    assert f"{DEFAULT_SHARED_PASSES}, or {DEFAULT_FEW_ROWS_PASSES} below" in passes.help
    assert f"else {DEFAULT_PASSES})" in passes.help
    # exact: figures of the settings
    assert f"default is {DEFAULT_SEVERAL_PASSES}" in passes.detail
    assert f"`reveal-epsilon` {DEFAULT_TOLD_PASSES}." in passes.detail


# --- the command line ----------------------------------------------------------------------------


def option(name: str) -> tuple[Any, Any]:
    kind, metadata = get_args(SHARED[name])
    return kind, metadata


def test_every_setting_is_an_option_and_the_other_way_round():
    assert set(SHARED) == set(Settings.model_fields) - {FIELD} | {"config", "record"}


@pytest.mark.parametrize("name", SETTINGS)
def test_an_option_has_the_help_and_the_panel_of_its_declaration(name):
    _, made = option(name)
    assert made.rich_help_panel == SETTINGS[name].panel
    assert made.help.startswith(SETTINGS[name].help.replace("`", "").removesuffix("."))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("epsilon", float),
        ("epochs", int),
        ("seed", int),
        ("test_fraction", float),
        ("permute_labels", bool),
        ("permute_rows", bool),
        ("reveal", bool),
        ("noise", str),
        ("alice_columns", str),
        ("class_weight", str),
        ("dataset", str),
    ],
)
def test_an_option_reads_a_number_a_switch_or_a_text(name, kind):
    assert option(name)[0] == kind | None


def test_a_default_is_told_where_there_is_one():
    assert "(default: 0.2)" in option("test_fraction")[1].help
    assert "(default: 64" in option("batch_size")[1].help
    assert "(default: on" in option("intercept")[1].help
    assert "default" not in option("epsilon")[1].help


def test_options_lie_over_the_file_and_errors_know_where_a_value_came_from(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("epochs = 3\nbatch-size = 5\n")
    settings, syntax = merged({"config": path, "epochs": 4, "seed": None})
    assert settings == {"epochs": 4, "batch_size": 5}
    assert syntax.place("epochs") == "--epochs"
    assert syntax.place("batch_size") == f"{path}, batch-size"
    assert merged({"config": None, "epochs": 4}) == ({"epochs": 4}, COMMAND_LINE)


# --- Python --------------------------------------------------------------------------------------


def test_the_signatures_that_type_checkers_read_are_those_of_the_settings():
    assert STUB.read_text(encoding="utf-8") == stub()
    # The table of a function is its own parameter.
    assert set(get_type_hints(SettingsOptions)) == set(Settings.model_fields) - {"data"}
    assert not SettingsOptions.__required_keys__


def test_a_mistyped_parameter_of_the_function_gets_the_nearest():
    mistyped: dict[str, Any] = {"recrod": "run"}
    with refused(ConfigError, names="record"):
        taciturn.train(**mistyped)
    with refused(ConfigError) as raised:
        taciturn.estimate(**mistyped)
    assert "record" not in raised.value.hint


# --- the estimator -------------------------------------------------------------------------------

# What scikit-learn calls otherwise, and what it has a meaning of its own for.
SKLEARN = {"fit_intercept": "intercept", "random_state": "seed", "class_weight": "class_weight"}
PARAMETERS = inspect.signature(VerticalLogisticRegression).parameters
# An estimator is given rows and labels as they are, once.
NOT_ITS_BUSINESS = {
    "dataset",
    "data",
    "id",
    "label",
    "alice_data",
    "data_dir",
    "test_fraction",
    "family",
    *TableSettings.model_fields,
    "seeds",
    "compare_optimum",
    "permute_labels",
    "permute_rows",
    "table_memory",
    "engine",
    "cores",
    "workers",
}


def test_the_parameters_of_the_estimator_are_settings():
    named = {SKLEARN.get(name, name) for name in PARAMETERS}
    assert named == Settings.model_fields.keys() - NOT_ITS_BUSINESS
    assert len(PARAMETERS) == len(named)


@pytest.mark.parametrize("name", [name for name in PARAMETERS if name != "random_state"])
def test_a_parameter_has_the_default_of_own_data(name):
    setting = SKLEARN.get(name, name)
    # What belongs to one solver has a value once it is known which.
    usual = None if setting in SGD_ONLY else getattr(OWN_DATA_DEFAULTS, setting, None)
    expected = Settings.model_fields[setting].default if usual is None else usual
    if setting == "mechanism":
        expected = Settings.from_mapping({}).mechanism
    assert PARAMETERS[name].default == expected


@pytest.mark.parametrize(
    "name", [name for name in PARAMETERS if name not in ("random_state", "class_weight", FIELD)]
)
def test_a_parameter_is_documented_in_the_words_of_the_declaration(name):
    text = inspect.getdoc(VerticalLogisticRegression) or ""
    (description,) = re.findall(rf"^    {name}: (.*(?:\n        .*)*)", text, flags=re.MULTILINE)
    words = " ".join(description.split())
    assert words.startswith(SETTINGS[SKLEARN.get(name, name)].help)


# --- files ---------------------------------------------------------------------------------------


def test_the_page_names_what_an_agreement_refuses():
    page = settings_page.PAGE.read_text(encoding="utf-8")
    refused = {name for name, setting in SETTINGS.items() if setting.refused}
    assert refused == {"seed", "seeds", "permute_labels", "permute_rows", "budget", "delta"}
    for name in refused:
        assert f"`{name.replace('_', '-')}`" in page.split("Refused here")[1].split("\n")[0]


def test_the_defaults_of_a_partys_file():
    """Two versions of the program must mean the same by a file that leaves a key out."""
    defaults = {name: file_default("agreement", name) for name in section_settings("agreement")}
    assert {name: value for name, value in defaults.items() if value is not None} == {
        "mechanism": DEFAULT_MECHANISM,
        "family": "binomial",
        "scheme": "bfv",
        "epochs": 10,
        "batch_size": 64,
        "minimum_batch": 8,
        "evaluate": "end",
        "held_out": 0.2,
        "few_labels": "refused",
        "split_seed": "",
        "share_metrics": "nothing",
        "learning_rate": 0.05,
        "schedule": "constant",
        "decay": 0.0,
        "l1": 0.0,
        "intercept": True,
        "feature_bits": 16,
        "residue_bits": 20,
        "signed": False,
    }


# --- nobody else speaks of options ---------------------------------------------------------------

COMMANDS = {
    "taciturn": ("cli", "__main__.py", "faces.py"),
    "taciturn_audit": ("cli.py",),
    "taciturn_ops": ("certs.py", "init.py"),
    "taciturn_risk": (),
    # The second runs a command.
    "taciturn_paper": ("cli.py", "wire.py"),
}


def literals(tree: ast.AST) -> Iterator[str]:
    """The texts of a module that are not docstrings."""
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def modules() -> Iterator[tuple[str, ast.AST]]:
    """The modules that are no face, by name."""
    for package, faces in COMMANDS.items():
        (root,) = ROOT.glob(f"**/src/{package}")
        for path in root.rglob("*.py"):
            name = path.relative_to(root).as_posix()
            if not name.startswith(faces) and path.name != "command.py":
                yield f"{package}/{name}", ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.slow  # some seconds
def test_no_place_or_hint_of_an_error_is_an_option():
    spoken = {
        name: text
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in ("where", "hint", "setting")
        for text in literals(node)
        if text.startswith("--")
    }
    assert spoken == {}


def named_settings() -> Iterator[tuple[str, str]]:
    """Every name in a ``Hint``, and every ``setting=`` of an error, that is written out."""
    for path, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id == "Hint" and isinstance(node.args[0], ast.Constant):
                template = str(node.args[0].value)
                yield from ((path, name) for name in re.findall(r"\{([a-z]\w*)\}", template))
                yield from ((path, value.arg) for value in node.keywords if value.arg)
            for keyword in node.keywords:
                if keyword.arg == "setting" and isinstance(keyword.value, ast.Constant):
                    yield path, str(keyword.value.value)


@pytest.mark.slow  # some seconds
def test_what_errors_name_are_settings_or_parameters_of_commands():
    sections = [name for section in ALL_SECTIONS for name in section_settings(section)]
    known = {*SETTINGS, *sections, *Study.model_fields, *command_parameters()}
    unknown = {(path, name) for path, name in named_settings() if name not in known}
    assert unknown == set()


def command_parameters() -> set[str]:
    from taciturn.cli.app import whole_app

    command = typer.main.get_command(whole_app())
    groups = [command, *command.commands.values()]  # type: ignore[attr-defined]
    groups += [inner for group in groups for inner in getattr(group, "commands", {}).values()]
    return {parameter.name for group in groups for parameter in group.params}


def test_a_partys_file_spells_its_keys_and_leaves_the_commands_own_to_the_command_line():
    syntax = party_file("bob.toml")
    assert syntax.place("clip") == "bob.toml, [data] clip"
    assert syntax.place("budget") == "bob.toml, [privacy] budget"
    assert syntax.place("learning_rate") == "bob.toml, [agreement] learning-rate"
    assert syntax.assignment("fresh", True) == "--fresh"


def test_python_is_the_default_face():
    with refused(ConfigError, setting="epsilon", names=("epsilon=", "epsilon=1")):
        taciturn.train(dataset="breast-cancer", mechanism="add", scheme="clear")
