"""Settings: what is wrong is named by its key, and one agreement has one text."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from taciturn.errors import ConfigError
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import with_row_defaults
from taciturn.setting_syntax import hyphenated
from taciturn.settings.agreement import Agreement, differences
from taciturn.settings.schema import (
    DATASET_DEFAULTS,
    DEFAULT_PASSES,
    OWN_DATA_DEFAULTS,
    Newton,
    Settings,
    Sgd,
    settings_file,
)
from tests.expected import refused

RUN = {"mechanism": "none", "dataset": "breast-cancer"}


def of(**values: object) -> Settings:
    return Settings.from_mapping({**RUN, **values})


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "near"),
    [("epoch", "epochs"), ("batch-sise", "batch-size"), ("learning_rat", "learning-rate")],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one_as_it_is_spelled_there(key, near):
    with refused(ConfigError, names=(key, near.replace("-", "_"))):
        Settings.from_mapping({**RUN, key: 1})
    with refused(ConfigError, names=(key, near, "run.toml")):
        Settings.from_mapping({**RUN, key: 1}, syntax=settings_file(Path("run.toml")))


def test_a_key_like_no_other_gets_the_list():
    with refused(ConfigError, names=("zzzz", "mechanism", "epsilon")) as raised:
        Settings.from_mapping({**RUN, "zzzz": 1}, syntax=settings_file(Path("run.toml")))
    assert raised.value.where == "run.toml"


@pytest.mark.parametrize("key", ["batch_size", "batch-size"])
def test_hyphens_and_underscores_spell_the_same_key_which_is_given_once(key):
    assert Settings.from_mapping({**RUN, key: 7}).batch_size == 7
    with refused(ConfigError, setting="batch_size"):
        Settings.from_mapping({**RUN, "batch_size": 7, "batch-size": 7})


def test_labels_are_sealed_where_nothing_is_said():
    assert Settings.from_mapping({"dataset": "breast-cancer"}).mechanism == "sealed"


# --- values --------------------------------------------------------------------------------------


WRONG: dict[str, list[object]] = {
    "epochs": ["3", 0, -1, 2.0, True],
    "batch-size": [0, "all"],
    "learning-rate": [0.0, -0.1, math.nan, math.inf, "0.1"],
    "l1": [-1e-9],
    "l2": [-1.0, math.nan, math.inf],
    "decay": [-1.0, math.nan],
    "schedule": ["cosine"],
    "test-fraction": [0.0, 1.0, math.nan],
    "clip": [0.0, math.nan],
    "impute": ["zero"],
    "scale": ["minmax"],
    "intercept": ["yes", 1],
    "mechanism": [1],
    "scheme": [None],
    "key-bits": ["2048"],
    "feature-bits": [3, 31],
    "residue-bits": [7, 41],
    "seed": [-1, 1.5],
    "seeds": [0],
    "permute-labels": ["true"],
    "alice-columns": [1.5, True, [1, 2]],
    "dataset": [3],
    "epsilon": [0.0, -1.0, math.nan, math.inf],
    "noise": ["gaussian"],
    "variant": ["two-sided"],
    "b1": [0.0, math.inf],
    "b2": [-1.0, math.nan],
    "subset-size": [0, 1.5],
    "l-rr": [0],
    "bob-update": ["never", True],
    "budget": [0.0, math.inf],
    "delta": [-1e-9, 1.0, math.nan],
}


@pytest.mark.parametrize(("key", "value"), [(key, one) for key in WRONG for one in WRONG[key]])
def test_a_value_of_the_wrong_kind_or_range_is_refused_by_its_key_and_shown(key, value):
    with refused(ConfigError, setting=key.replace("-", "_"), names=key) as raised:
        Settings.from_mapping({**RUN, key: value})
    shown = "" if isinstance(value, list) else str(value).removesuffix(".0")
    assert shown.lower() in raised.value.message.lower()


@pytest.mark.parametrize(
    ("name", "given_value", "kept"),
    [
        ("learning_rate", 1, 1.0),
        ("feature_bits", 4, 4),
        ("feature_bits", 30, 30),
        ("alice_columns", "half", "half"),
        ("alice_columns", 3, 3),
        ("alice_columns", ["mean radius", "mean area"], ("mean radius", "mean area")),
        ("alice_columns", [], ()),
    ],
)
def test_a_value_within_its_range_is_kept_and_cannot_be_changed(name, given_value, kept):
    settings = of(**{name: given_value})
    assert getattr(settings, name) == kept
    with pytest.raises(ValidationError):
        setattr(settings, name, kept)


# --- sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"dataset": "breast-cancer", "data": "mine.csv", "label": "y"},
        {"data": "mine.csv"},
        {"dataset": "breast-cancer", "id": "x"},
        {"dataset": "breast-cancer", "label": "x"},
        {"dataset": "breast-cancer", "keep": "a"},
    ],
)
def test_sources_that_do_not_go_together_are_refused(given):
    with refused(ConfigError):
        Settings.from_mapping({"mechanism": "none", **given})


def test_the_source_is_named():
    own = Settings.from_mapping({"mechanism": "none", "data": "mine.csv", "label": "y"})
    assert (of().source, own.source) == ("breast-cancer", "mine.csv")
    # exact: a value in JSON
    assert Settings.from_mapping({"mechanism": "none", "label": "y"}).source == "own data"


# --- defaults ------------------------------------------------------------------------------------


def test_the_batch_sizes_and_l_rr_are_the_papers():
    """[Tan22, Table III]."""
    sizes = {name: (one.batch_size, one.l_rr) for name, one in DATASET_DEFAULTS.items()}
    assert sizes == {
        "breast-cancer": (16, 40),
        "sklearn-digits": (32, 70),
    }
    assert OWN_DATA_DEFAULTS.l_rr is None


def test_nothing_about_the_protection_is_assumed():
    settings = resolved(of())
    names = ("epsilon", "noise", "variant", "b1", "b2", "subset_size", "l_rr", "bob_update")
    assert [getattr(settings, name) for name in names] == [None] * 8
    assert (settings.budget, settings.delta) == (None, 1e-6)


@pytest.mark.parametrize("name", DATASET_DEFAULTS)
def test_a_dataset_brings_its_defaults_and_no_intercept(name):
    settings = resolved(of(dataset=name))
    expected = DATASET_DEFAULTS[name]
    assert (settings.batch_size, settings.learning_rate, settings.epochs) == (
        expected.batch_size,
        expected.learning_rate,
        expected.epochs,
    )
    assert settings.intercept is False


def test_own_data_has_its_own_defaults_and_an_intercept():
    own = {"mechanism": "none", "data": "mine.csv", "label": "y"}
    settings = resolved(Settings.from_mapping({**own, "solver": "sgd"}))
    assert (settings.batch_size, settings.epochs) == (
        OWN_DATA_DEFAULTS.batch_size,
        OWN_DATA_DEFAULTS.epochs,
    )
    assert settings.intercept is True
    settings = resolved(Settings.from_mapping(own))
    assert (settings.solver, with_row_defaults(settings, 100).passes) == ("newton", DEFAULT_PASSES)
    assert (settings.batch_size, settings.epochs, settings.learning_rate) == (None, None, None)
    assert settings.intercept is True


@pytest.mark.parametrize(
    ("more", "solver"),
    [
        ({"dataset": "breast-cancer"}, "sgd"),
        ({"mechanism": "add", "epsilon": 1.0}, "sgd"),
        ({"mechanism": "hybrid"}, "sgd"),
        ({"scheme": "paillier"}, "sgd"),
        ({"batch_size": 8}, "sgd"),
        ({"l1": 0.1}, "sgd"),
        ({"l2": 0.0}, "sgd"),
        ({"l2": 0.1}, "newton"),
        ({"mechanism": "label-rr", "epsilon": 1.0}, "newton"),
        ({"passes": 3}, "newton"),
    ],
)
def test_newton_is_the_default_on_own_data_where_it_can_be_had(more, solver):
    assert resolved(Settings.from_mapping({"mechanism": "none", **more})).solver == solver


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"solver": "newton", "epochs": 2}, "epochs"),
        ({"solver": "newton", "batch_size": 2}, "batch_size"),
        ({"solver": "newton", "learning_rate": 0.1}, "learning_rate"),
        ({"solver": "newton", "schedule": "inverse"}, "schedule"),
        ({"solver": "newton", "l1": 0.1}, "l1"),
        ({"solver": "newton", "l2": 0.0}, "l2"),
        ({"solver": "sgd", "passes": 3}, "passes"),
        ({"dataset": "breast-cancer", "passes": 3}, "passes"),
        ({"epochs": 3, "passes": 3}, "passes"),
    ],
)
def test_a_setting_of_the_other_solver_is_refused_by_name(given, setting):
    with pytest.raises(ConfigError) as raised:
        resolved(Settings.from_mapping({"mechanism": "none", **given}))
    assert raised.value.setting == setting
    assert "solver" in raised.value.diagnostics()


def test_what_was_asked_for_stays():
    asked = resolved(of(batch_size=3, learning_rate=0.7, epochs=2, intercept=True, l2=0.5))
    assert (asked.batch_size, asked.learning_rate, asked.epochs) == (3, 0.7, 2)
    assert (asked.intercept, asked.l2) == (True, 0.5)
    own = Settings.from_mapping(
        {"mechanism": "none", "data": "a", "label": "y", "intercept": False}
    )
    assert resolved(own).intercept is False
    assert resolved(asked) == asked


# --- TOML ----------------------------------------------------------------------------------------


@pytest.fixture
def toml(tmp_path):
    def write(text: str | bytes):
        path = tmp_path / "run.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_file_of_settings_is_read(toml):
    path = toml('dataset = "breast-cancer"\nbatch-size = 5\nalice-columns = ["a", "b"]\n')
    values = Settings.read_toml(path)
    assert values == {"dataset": "breast-cancer", "batch_size": 5, "alice_columns": ["a", "b"]}
    assert Settings.from_mapping({"mechanism": "none", **values}).alice_columns == ("a", "b")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (b"epochs", ""),
        (b"epochs = ", ""),
        (b"{}", ""),
        (b"\xff\xfe", ""),
        (b"epochs = 1\nepochs = 2", ""),
        (b"epoch = 1", ""),
        (b'epochs = "1"', ", epochs"),
        (b"epochs = 2024-01-01", ", epochs"),
        (b"l2 = nan", ", l2"),
        (b"batch-size = 1\nbatch_size = 2", ", batch-size"),
        (b'data = "mine.csv"', ", label"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_the_file_and_the_key(toml, text, key):
    path = toml(text)
    with refused(ConfigError) as raised:
        Settings.read_toml(path)
    assert raised.value.where == f"{path}{key}"


def test_an_absent_file_a_folder_and_sections_are_refused(toml, tmp_path):
    for path in (tmp_path / "absent.toml", tmp_path):
        with refused(ConfigError) as raised:
            Settings.read_toml(path)
        assert raised.value.where == str(path)
    for text in ("[train]\nepochs = 1\n", "epochs = {first = 1}\n", "[data]\nage = 5\n"):
        with refused(ConfigError):
            Settings.read_toml(toml(text))


# --- the agreement --------------------------------------------------------------------------------

positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
not_negative = st.floats(min_value=0, allow_infinity=False).map(abs)
counts = st.integers(1, 2**40)
agreements = st.builds(
    lambda **values: Agreement.from_mapping(values),
    mechanism=st.text(max_size=20),
    epsilon=st.none() | positive,
    noise=st.sampled_from([None, "discrete", "continuous"]),
    variant=st.sampled_from([None, "printed", "one-sided", "mean-one"]),
    b1=st.none() | positive,
    b2=st.none() | positive,
    subset_size=st.none() | counts,
    bob_update=st.sampled_from([None, "released", "true"]),
    scheme=st.text(max_size=20),
    key_bits=st.integers(0, 8192),
    epochs=counts,
    batch_size=counts,
    learning_rate=positive,
    schedule=st.sampled_from(["constant", "inverse", "inverse-sqrt"]),
    decay=not_negative,
    l1=not_negative,
    l2=not_negative,
    feature_bits=counts,
    residue_bits=counts,
)


@given(agreements)
def test_an_agreement_survives_its_text(agreement):
    text = agreement.canonical()
    assert Agreement.parse(text) == agreement
    assert Agreement.parse(text).canonical() == text


@given(agreements, agreements)
def test_two_agreements_are_alike_exactly_when_their_texts_are(one, two):
    assert (one == two) == (one.canonical() == two.canonical())
    ours, theirs = one.model_dump(), two.model_dump()
    changed = {hyphenated(key) for key in ours if ours[key] != theirs[key]}
    named = {line.split(":")[0] for line in differences(one.canonical(), two.canonical())}
    # Of settings that follow from another one only that one is named.
    assert named <= changed
    assert bool(named) == bool(changed)


AGREED = Agreement.from_mapping(
    {
        "mechanism": "none",
        "scheme": "clear",
        "key-bits": 0,
        "epochs": 2,
        "batch-size": 16,
        "learning-rate": 0.05,
        "schedule": "constant",
        "decay": 0.0,
        "l1": 0.0,
        "l2": 0,
        "feature-bits": 16,
        "residue-bits": 20,
    }
)


def test_the_text_of_an_agreement_is_pinned():
    """Two versions of the program compare it byte by byte."""
    assert AGREED.canonical() == (
        '{"b1":null,"b2":null,"base_mechanism":null,"batch_size":16,"bob_update":null,'
        '"class_weight":null,"decay":0.0,'
        '"epochs":2,"epsilon":null,"evaluate":"end","feature_bits":16,"fresh_keys":null,'
        '"held_out":null,"intercept":false,"key_bits":0,"l1":0.0,"l2":0.0,'
        '"learning_rate":0.05,"mechanism":"none","metrics_epsilon":null,"minimum_batch":1,'
        '"noise":null,'
        '"patience":null,"residue_bits":20,"reveal":null,"reveal_bob":null,"reveal_delta":null,'
        '"reveal_epsilon":null,"schedule":"constant",'
        '"scheme":"clear","score_range":null,"share_metrics":"nothing","sigmoid_error":null,'
        '"solver":"sgd","split_seed":null,"subset_size":null,'
        '"variant":null}'
    )


NEWTON = AGREED.model_copy(update={"solver": Newton(passes=3)})


def test_the_text_has_the_settings_of_its_solver_alone():
    batches, passes = (json.loads(agreed.canonical()).keys() for agreed in (AGREED, NEWTON))
    assert batches - passes == set(Sgd.model_fields)
    assert passes - batches == {"passes"}
    assert Agreement.parse(NEWTON.canonical()) == NEWTON


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (AGREED.canonical().replace('"sgd"', '"bfgs"'), "bfgs"),
        (AGREED.canonical().replace('"sgd"', '"newton"'), "passes"),
        (NEWTON.canonical().replace('"l2"', '"epochs":2,"l2"'), "epochs"),
        ("", "JSON"),
        ("{", "JSON"),
        ("[]", "JSON"),
        ("3", "JSON"),
        ("{}", ()),
        (AGREED.canonical().replace('"epochs":2', '"epochs":0'), "epochs"),
        (AGREED.canonical().replace('"l2":0.0', '"l2":NaN'), "l2"),
        (AGREED.canonical().replace('"l2"', '"l3"'), "l3"),
    ],
)
def test_a_text_that_is_no_agreement_is_refused(text, names):
    with refused(ConfigError, names=names):
        Agreement.parse(text)


@pytest.mark.parametrize("text", ["[" * 60_000, '{"a":' * 12_000], ids=["lists", "objects"])
def test_a_deeply_nested_text_is_no_agreement(text):
    with pytest.raises(ConfigError):
        Agreement.parse(text)
    assert differences(AGREED.canonical(), text)


def test_differences_name_each_key_and_both_values():
    lines = differences('{"a":1,"b":"x","d":0}', '{"a":2,"b":"y","c":[1],"d":0}')
    for line, shown in zip(
        lines, (("a:", "1", "2"), ("b:", '"x"', '"y"'), ("c:", "[1]")), strict=True
    ):
        assert line.startswith(shown[0])
        assert all(value in line for value in shown)
    assert len(differences('{"a":null}', "{}")) == 1
    assert differences(AGREED.canonical(), AGREED.canonical()) == []
    # Texts of another form, and a long value, which is shown in part.
    assert all("JSON" in differences("{}", theirs)[0] for theirs in ("x", "[]"))
    (line,) = differences("{}", json.dumps({"a": "x" * 1000}))
    assert len(line) < 120


def test_class_weights_are_the_same_from_a_text_a_list_and_an_agreements_text():
    spelled = [
        Settings.from_mapping({"class-weight": value})
        for value in ("0.25,1", [0.25, 1], (0.25, 1.0))
    ]
    assert {settings.class_weight for settings in spelled} == {(0.25, 1.0)}
    agreed = AGREED.model_copy(update={"class_weight": (0.25, 1.0)})
    assert Agreement.parse(agreed.canonical()) == agreed


@pytest.mark.parametrize("given", ["1", "a,b", "1,2", "-1,1", "0,0", "nan,1", [1], [1, 1, 1], 3])
def test_class_weights_out_of_range_are_refused_by_name(given):
    with refused(ConfigError, setting="class_weight"):
        Settings.from_mapping({"class-weight": given})


STAR = {"carol": "c" * 64, "alice.example": "a" * 64}


def test_the_parties_of_an_agreement_keep_their_order_in_its_text():
    agreed = AGREED.model_copy(update={"parties": STAR})
    again = Agreement.parse(agreed.canonical())
    assert again == agreed
    assert (
        again.canonical()
        == agreed.canonical()
        == Agreement.from_mapping(agreed.model_dump()).canonical()
    )
    assert list(again.parties or ()) == list(STAR)
    turned = AGREED.model_copy(update={"parties": dict(reversed(STAR.items()))})
    assert turned.canonical() != agreed.canonical()


def test_an_agreement_with_one_alice_says_nothing_of_parties():
    assert "parties" not in AGREED.model_dump()
    assert Agreement.parse(AGREED.canonical()).parties is None


def test_parties_that_differ_are_named_one_by_one():
    ours = AGREED.model_copy(update={"parties": STAR}).canonical()
    other = {**STAR, "alice.example": "b" * 64, "dora": "d" * 64}
    theirs = AGREED.model_copy(update={"parties": other}).canonical()
    second, third = differences(ours, theirs)
    assert "2:" in second
    assert f"alice.example {'a' * 64}" in second
    assert f"alice.example {'b' * 64}" in second
    assert "3:" in third
    assert f"dora {'d' * 64}" in third
    assert len(differences('{"parties":[["a",3],7]}', '{"parties":"x"}')) == 3


@pytest.mark.parametrize(
    ("parties", "names"),
    [
        ({"alice": "a" * 64}, 1),
        ({f"alice-{n}": f"{n:064x}" for n in range(17)}, 17),
        ({**STAR, "Bob": "b" * 64}, "'Bob'"),
        ({**STAR, "dora": "D" * 64}, "dora"),
        ({**STAR, "dora": "a" * 64}, ()),
        ([*STAR.items(), ("carol", "d" * 64)], ()),
        ({**STAR, "dora": 3}, ()),
        ("carol", ()),
        ([["carol"]], ()),
        (3, ()),
    ],
)
def test_parties_that_are_none_are_refused_by_name(parties, names):
    with refused(ConfigError, setting="parties", names=names):
        Agreement.from_mapping({**AGREED.model_dump(), "parties": parties})


OWN = {"data": "a.csv", "label": "y"}

# --- by column -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("transform", "log", {"*": "log"}),
        ("transform", "income=log,age=rank", {"income": "log", "age": "rank"}),
        ("transform", {"income": "log"}, {"income": "log"}),
        ("bins", "5,income=10", {"*": 5, "income": 10}),
        ("bins", 4, {"*": 4}),
        ("bins", "age=25,35,50", {"age": (25.0, 35.0, 50.0)}),
        ("bins", "5,age=25, 35,income=10", {"*": 5, "age": (25.0, 35.0), "income": 10}),
        ("bins", "age=25,", {"age": (25.0,)}),
        ("bins", {"age": [25, 35.5], "income": 10}, {"age": (25.0, 35.5), "income": 10}),
        ("winsorise", "none", {"*": 0.0}),
        ("winsorise", "0.01,income=none", {"*": 0.01, "income": 0.0}),
        ("type", "a=b=category", {"a=b": "category"}),
        ("date_format", {"opened": "%d.%m.%Y"}, {"opened": ("%d.%m.%Y",)}),
        ("date_format", ["iso", "%d.%m.%Y"], {"*": ("iso", "%d.%m.%Y")}),
        ("date_format", "a=%b %d, %Y|iso,b=%Y", {"a": ("%b %d, %Y", "iso"), "b": ("%Y",)}),
        ("decimal", ",", {"*": ","}),
        ("decimal", "a=,,b=.", {"a": ",", "b": "."}),
        ("keep", "a, b", ("a", "b")),
        ("keep", ["a", "b"], ("a", "b")),
        ("positive", "yes", ("yes",)),
        ("positive", 2, ("2",)),
        ("separator", "tab", "\t"),
        ("encoding", "Latin-1", "iso8859-1"),
    ],
)
def test_a_choice_by_column_is_read_from_every_face(name, given, meant):
    assert getattr(Settings.from_mapping({**OWN, name: given}), name) == meant


@pytest.mark.parametrize(
    ("name", "given", "names"),
    [
        ("transform", "income=logg", "log"),
        ("transform", {"income": 3}, 3),
        ("bins", "income=1", 2),
        ("bins", "many", "'many'"),
        ("bins", 2.5, 2.5),
        ("bins", "age=25,25", 25),
        ("bins", {"age": [25, float("nan")]}, "nan"),
        ("bins", {"age": []}, ()),
        ("bins", "age=25,old", "'old'"),
        ("bins", [25, 35], ()),
        ("winsorise", 0.5, 0.5),
        ("winsorise", True, ()),
        ("date_format", "dd.mm.yyyy", "%d.%m.%Y"),
        ("date_format", ["%d.%m.%Y", "dd/mm"], "'dd/mm'"),
        ("date_format", [], ()),
        ("decimal", ";", "';'"),
        ("duplicates", "any", ()),
        ("separator", ";;", "tab"),
        ("encoding", "latn", "'latn'"),
        ("date_parts", "hour", ()),
        ("min_frequency", 1.0, ()),
    ],
)
def test_a_choice_that_is_not_possible_is_refused(name, given, names):
    with refused(ConfigError, setting=name, names=names):
        Settings.from_mapping({**OWN, name: given})


def test_a_file_may_hold_choices_by_column(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('data = "a.csv"\nlabel = "y"\ntransform.income = "log"\n[bins]\nage = 5\n')
    read = Settings.read_toml(path)
    assert read["transform"] == {"income": "log"}
    assert read["bins"] == {"age": 5}
