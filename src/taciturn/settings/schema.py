"""``Settings``: what a person asks for. Each field is declared once, and here (``setting``).

Every field is an option of the commands, a key of a settings file, where it is spelled with
hyphens, and a keyword argument of ``train``, ``check`` and ``audit``.

The agreed solver and its parameters, apart from the L2 penalty.

The parties of a star by name, each with the fingerprint of its key.

Names alone would not do: anyone who runs the authority of the certificates could make another
certificate of any name, and be all of the parties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from taciturn import extensions
from taciturn.errors import ConfigError
from taciturn.families.registry import FAMILIES
from taciturn.files import read_toml
from taciturn.output_paths import PathUse
from taciturn.setting_syntax import Hint, SettingSyntax, TomlFile, hyphenated
from taciturn.settings.checked import (
    Checked,
    ClassWeight,
    NonNegative,
    Panel,
    Positive,
    PositiveInt,
    Scope,
    named,
    require,
    setting,
)
from taciturn.settings.mechanism_settings import collected, completed
from taciturn.settings.removed import refuse_former_key
from taciturn.settings.table import BY_COLUMN, TableSettings

SolverName = Literal["sgd", "newton"]
FamilyName = Literal["binomial", "gaussian", "poisson", "gamma"]
Schedule = Literal["constant", "inverse", "inverse-sqrt"]


class Sgd(Checked):
    """Gradient descent by batches of rows; a round is an epoch."""

    name: ClassVar[SolverName] = "sgd"
    epochs: PositiveInt
    batch_size: PositiveInt
    minimum_batch: PositiveInt = 1
    learning_rate: Positive
    schedule: Schedule = "constant"
    decay: NonNegative = 0.0
    l1: NonNegative = 0.0

    @property
    def rounds(self) -> int:
        """Number of uses of each row."""
        return self.epochs

    def with_rounds(self, rounds: int) -> Sgd:
        """The same solver with another number of epochs."""
        return self.model_copy(update={"epochs": rounds})

    def batch(self, rows: int) -> int:
        """Number of rows in one iteration, of a table of ``rows``."""
        return min(self.batch_size, rows)

    @staticmethod
    def default_l2(rows: int) -> float:
        """No penalty, as in the paper."""
        return 0.0


class Newton(Checked):
    """All rows in every pass, and no step size to choose; a round is a pass."""

    name: ClassVar[SolverName] = "newton"
    l1: ClassVar[float] = 0.0
    passes: PositiveInt

    @property
    def rounds(self) -> int:
        """Number of uses of each row."""
        return self.passes

    def with_rounds(self, rounds: int) -> Newton:
        """The same solver with another number of passes."""
        return self.model_copy(update={"passes": rounds})

    def batch(self, rows: int) -> int:
        """Number of rows in one iteration: all."""
        return rows

    @staticmethod
    def default_l2(rows: int) -> float:
        """The least that keeps the optimum finite: scikit-learn's C = 1."""
        return 1.0 / rows


Solver = Sgd | Newton
SOLVERS: Mapping[str, type[Sgd] | type[Newton]] = MappingProxyType({"sgd": Sgd, "newton": Newton})


FEWEST_PARTIES, MOST_PARTIES = 2, 16
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_FINGERPRINT = re.compile("[0-9a-f]{64}")


def is_party_name(name: str) -> bool:
    """Whether a party can be called so: a DNS name in lower case, and no address.

    >>> [is_party_name(name) for name in ("alice-1", "alice.example", "Alice", "127.0.0.1")]
    [True, True, False, False]
    """
    fits = len(name) <= 253 and _NAME.fullmatch(name) is not None
    return fits and not name.replace(".", "").isdigit()


def _parties(value: object) -> object:
    """The fingerprint of each name, from a table or from the pairs of an agreement's text."""
    if value is None:
        return value
    entries = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(entries, list | tuple) or not all(map(_is_pair, entries)):
        raise ValueError(
            "must be a table of names, each with a fingerprint; quote a name with dots"
        )
    _check(entries)
    return dict(entries)


def _is_pair(entry: object) -> bool:
    return (
        isinstance(entry, list | tuple)
        and len(entry) == 2
        and all(isinstance(part, str) for part in entry)
    )


def _check(entries: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> None:
    if not FEWEST_PARTIES <= len(entries) <= MOST_PARTIES:
        raise ValueError(
            f"must name {FEWEST_PARTIES} to {MOST_PARTIES} parties, not {len(entries)}; with one "
            "Alice leave it out"
        )
    for name, fingerprint in entries:
        if not is_party_name(name):
            raise ValueError(f"{name[:80]!r} cannot be a party's name")
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise ValueError(
                f"the fingerprint of {name} is 64 hexadecimal digits in lower case, "
                f"not {fingerprint[:80]!r}"
            )
    for column, kind in enumerate(("name", "fingerprint")):
        if len({entry[column] for entry in entries}) < len(entries):
            raise ValueError(f"two parties have the same {kind}")


Parties = Annotated[dict[str, str] | None, BeforeValidator(_parties)]
"""Names with fingerprints, in the order of the star; None with one Alice."""


DEFAULT_MECHANISM = "mutual"
"""Mechanism of a training that names none; the paper's datasets name theirs."""
Noise = Literal["discrete", "continuous"]
Variant = Literal["printed", "one-sided", "mean-one"]
BobUpdate = Literal["released", "true"]
BaseMechanism = Literal["none", "sealed"]
Evaluate = Literal["end", "epoch"]
ShareMetrics = Literal["nothing", "quality"]
Engine = Literal["local", "dask"]

_source = partial(setting, scope=Scope.SIMULATION, panel=Panel.DATA)
_table = partial(setting, scope=Scope.DATA, panel=Panel.DATA)
_model = partial(setting, scope=Scope.AGREEMENT, panel=Panel.MODEL)
_protection = partial(setting, scope=Scope.AGREEMENT, panel=Panel.PROTECTION)
_run = partial(setting, scope=Scope.SIMULATION, panel=Panel.RUN)


@dataclass(frozen=True, slots=True)
class DatasetDefaults:
    """The paper's batch size and L_RR for a dataset; our mechanism, learning rate and epochs."""

    batch_size: int
    learning_rate: float
    epochs: int
    intercept: bool = False
    l_rr: int | None = None
    mechanism: str = "sealed"


# Batch sizes and L_RR are the paper's (Table III); it states neither learning rate nor epochs. Ours
# were chosen on a validation part cut from the training rows, never on the held-out ones: the
# largest rate of a coarse grid at which the loss falls steadily, and ten epochs, after which
# another ten change the validation accuracy by 0.2 to 0.6 points.
DATASET_DEFAULTS: Mapping[str, DatasetDefaults] = {
    "breast-cancer": DatasetDefaults(batch_size=16, learning_rate=0.1, epochs=10, l_rr=40),
    "sklearn-digits": DatasetDefaults(batch_size=32, learning_rate=0.1, epochs=10, l_rr=70),
}
OWN_DATA_DEFAULTS = DatasetDefaults(
    batch_size=64, learning_rate=0.05, epochs=10, intercept=True, mechanism=DEFAULT_MECHANISM
)


def dataset_defaults(name: object) -> DatasetDefaults:
    """Defaults of a dataset, of another package too; those of own data where there is no name."""
    known = str(name or "")
    if known in DATASET_DEFAULTS:
        return DATASET_DEFAULTS[known]
    added = extensions.extension(extensions.DATASETS, known, DATASET_DEFAULTS)
    declared: Any = None if added is None else added.load()
    return OWN_DATA_DEFAULTS if declared is None else cast("DatasetDefaults", declared.defaults)


# Enough for a gap to the optimum below 1e-4 on the paper's datasets; each hands Bob one more score.
DEFAULT_PASSES = 12
# Where the model is released with noise: that grows with each pass, and few steps go most of the
# way.
DEFAULT_TOLD_PASSES = 4
# Several Alices do not whiten, which takes some more.
DEFAULT_SEVERAL_PASSES = 20
# Where nobody sees a score there is no search: steps on a public schedule, which need more.
DEFAULT_SHARED_PASSES, DEFAULT_SCORE_RANGE = 28, 64.0
# Of few rows nothing is opened that would show that these do not suffice.
DEFAULT_FEW_ROWS_PASSES, DEFAULT_FEW_ROWS_RANGE = 56, 128.0
# What only sgd has: refused by name with newton.
SGD_ONLY = ("epochs", "batch_size", "learning_rate")

# What says how own data are read: the paper's datasets are read in one way.
_OWN_ONLY = (
    *(
        "alice_data",
        "id",
        "label",
        "positive",
        "negative",
        "exposure",
        "weights",
        "keep",
        "drop",
        "type",
        "date_format",
        "date_parts",
    ),
    *("separator", "decimal", "encoding", "na_values", "normalise_categories", "duplicates"),
)


class Protection(Checked):
    """Label protection: a mechanism, and the settings of which each takes some.

    One that is not given is None; so is, once agreed on, one that the mechanism does not take.
    """

    mechanism: str = _protection(DEFAULT_MECHANISM)
    """Protection: `mutual` (labels, columns; default on own data), `sealed` (labels), `label-rr`,
    `none`, `add`, `mult`, `hybrid`.

    The default on the paper's datasets is `sealed`. Several Alices, and families that `mutual`
    lacks, have none. [What each protects](threat_model.md).
    """
    epsilon: Positive | None = _protection(example=1.0)
    """Privacy parameter: per release for `add`, `mult` and `hybrid`, in total for `label-rr`.

    Required by `add`, `mult` and `label-rr`; `hybrid` defaults to 1.
    """
    noise: Noise | None = _protection(example="discrete")
    """`add`, `mult`: noise distribution, `discrete` (exact) or `continuous` (as in the paper;
    leaks) (default: discrete).

    Continuous noise leaks through its low-order bits and is refused here.
    """
    variant: Variant | None = _protection(example="mean-one")
    """`mult`: variant of the mechanism, `printed`, `one-sided` or `mean-one` (default: printed)."""
    b1: Positive | None = _protection(example=0.1)
    """`mult`: smallest magnitude of a residue; smaller ones are raised to it (default: 0.1)."""
    b2: Positive | None = _protection(example=10.0)
    """`mult`: largest magnitude of an output; larger ones are clipped (default: 10)."""
    subset_size: PositiveInt | None = _protection()
    """`hybrid`: number of rows among which a batch is hidden; derived from `l-rr` or Alice's
    columns by default.
    """
    bob_update: BobUpdate | None = _protection(example="released")
    """`add`, `mult`: residues that update Bob's own weights, `released` or `true` (default:
    released).

    With `true`, every total in the ledger is infinite.
    """
    base_mechanism: BaseMechanism | None = _protection(example="none")
    """`label-rr`: mechanism that trains on the flipped labels, `none` or `sealed` (default:
    none)."""
    reveal: bool | None = _protection(example=True)
    """`sealed`, `mutual`: reveal Alice's weights to her after training, an unprotected release."""
    reveal_epsilon: Positive | None = _protection(example=1.0)
    """`sealed`: add noise to the revealed weights, at this total epsilon.

    [What it protects](how-to/agreements.md#reveal-the-model-with-noise).
    """
    reveal_delta: Annotated[float, Field(gt=0, lt=1)] | None = _protection(example=1e-6)
    """`sealed`: delta that belongs to `reveal-epsilon` (default: 1e-06)."""
    fresh_keys: bool | None = _protection(example=True)
    """`sealed`: use a new key for each encrypted vector."""
    reveal_bob: bool | None = _protection(example=True)
    """`mutual`: reveal Bob's weights to him after training.

    Without it they stay secret-shared, and Bob scores rows together with Alice.
    """
    score_range: Annotated[float, Field(ge=4, le=256)] | None = _protection(example=32.0)
    """`mutual`: largest magnitude of a score; larger ones wrap around (default: 64;
    128 below 8,192 training rows).

    A larger range takes more numbers per row and leaves fewer digits.
    """
    sigmoid_error: Annotated[float, Field(ge=1e-6, le=1e-2)] | None = _protection(example=0.001)
    """`mutual`: maximum error of the sigmoid of a shared score (default: 0.003)."""
    # Those that a mechanism of another package declares: they are given under their own names.
    mechanism_settings: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        if self.mechanism_settings:
            completed(self.mechanism, self.mechanism_settings)
        return self


class Settings(TableSettings, Protection):
    """One simulated run, as a person asks for it. ``None`` means the dataset's default."""

    dataset: str | None = _source()
    """Dataset of the paper: `breast-cancer`, `sklearn-digits`, `census-income` or
    `give-me-some-credit` (these two with taciturn-paper).
    """
    data: str | None = _source(path=PathUse.READ)
    """Your table: a CSV or Parquet file, or a folder of Parquet files."""
    alice_data: str | None = _source(path=PathUse.READ)
    """Alice's table, if it is a separate file; joined to `data` by `id`."""
    id: str | None = _table(
        in_file="Name of the id column; both sides have the same ids.", example="id"
    )
    """Name of the id column.

    Run `taciturn align` first if a side lacks some rows; leading zeros matter.
    """
    label: str | None = _table(example="label", owner="bob")
    """Name of the label column: 0 and 1, or words (see `positive`); numbers for other families.

    Required in Bob's file, refused in Alice's.
    """
    data_dir: str | None = _source()
    """Folder of the dataset files."""
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = _source(0.2)
    """Fraction of rows held out for testing."""
    alice_columns: str | int | tuple[str, ...] = setting(
        "all",
        scope=Scope.AGREEMENT,
        panel=Panel.DATA,
        in_file="Number of Alice's prepared columns. Without it Bob accepts 1,000; `hybrid` "
        "needs it on both sides.",
        example=30,
    )
    """Alice's columns: `all`, `half`, `equal`, a number (the first ones), or names separated by
    commas (`;` between Alices).
    """
    parties: Annotated[int, Field(ge=1, le=MOST_PARTIES)] = _source(1)
    """Number of Alices, up to 16; they share Alice's columns, and Bob learns only sums of
    their scores.

    Columns are assigned in order, as evenly as possible; `equal` counts Bob too. `hybrid`, `mutual`
    and `reveal-epsilon` support one Alice. A party's file names the Alices in `[agreement.parties]`
    instead.
    """
    family: FamilyName = _model("binomial")
    """Distribution of the label: `binomial` (0 and 1), `gaussian` (numbers), `poisson` (counts) or
    `gamma` (amounts).

    All but `binomial` are trained by `newton`, in `none` and `sealed`, `gaussian` in `mutual` too
    ([glm.md](glm.md)).
    """
    intercept: bool | None = setting(scope=Scope.AGREEMENT, panel=Panel.MODEL, both_ways=True)
    """Fit an intercept, at Bob and without penalty.

    Alice never has one. In `newton` both sides centre their columns where there is one.
    """
    l_rr: PositiveInt | None = _protection()
    """`hybrid`: average number of rows of a subset that Alice scores (L_RR), in place of
    `subset-size`.
    """
    budget: Positive | None = setting(
        scope=Scope.PRIVACY,
        panel=Panel.PROTECTION,
        example=4.0,
        owner="bob",
        refused="is not part of the agreement: it belongs in [privacy], in Bob's file",
    )
    """Stop before the total epsilon of a label exceeds this.

    Bob's file only.
    """
    delta: Annotated[float, Field(ge=0, lt=1)] = setting(
        1e-6,
        scope=Scope.PRIVACY,
        panel=Panel.PROTECTION,
        refused="is not part of the agreement: it belongs in [privacy], in Bob's file",
    )
    """Delta at which the ledger states its tighter total."""
    scheme: str = _protection("bfv")
    """Encryption scheme: `bfv`, `paillier` (smaller messages, slower), or `clear` (no encryption;
    simulations only).

    Not used by `add` and `mult`.
    """
    key_bits: int | None = _protection()
    """Key size in bits: 3072 or 2048 for `paillier`; `bfv` has 128-bit security."""
    solver: SolverName | None = _model(example="newton")
    """`newton`: all rows in a few passes; `sgd`: mini-batches (default: newton for `sealed`,
    `mutual` and own data).

    `sealed` and `mutual` support `newton`, with `bfv`; `none` and `label-rr` support both; the
    others support `sgd`. Setting `epochs`, `batch-size` or `learning-rate` without a solver selects
    `sgd` where the mechanism supports both.
    """
    passes: Annotated[int, Field(ge=1, le=1000)] | None = _model()
    """`newton`: number of passes over the rows (default: with `mutual` 28, or 56
    below 8,192 training rows; else 12).

    With several Alices the default is 20, with `reveal-epsilon` 4. Each gives Bob one more score of
    every row, except in `mutual`.
    """
    batch_size: PositiveInt | None = _model()
    """`sgd`: rows per batch."""
    minimum_batch: PositiveInt = _model(1, file_default=8)
    """`sgd`: smallest batch; a shorter last batch is merged with the one before it."""
    epochs: PositiveInt | None = _model()
    """`sgd`: number of passes over the rows.

    Each epoch releases every row once and is charged.
    """
    learning_rate: Positive | None = _model()
    """`sgd`: step size of the gradient descent."""
    schedule: Schedule = _model("constant")
    """`sgd`: schedule of the learning rate, `constant`, `inverse` or `inverse-sqrt`."""
    decay: NonNegative = _model(0.0)
    """`sgd`: rate at which the schedule lowers the learning rate."""
    l1: NonNegative = _model(0.0)
    """L1 penalty, applied by each side to its own weights; not supported by `sealed` and
    `mutual`."""
    l2: NonNegative | None = _model(example=0.001)
    """L2 penalty on all weights except the intercept (default: 1 / training rows for `newton`, 0
    for `sgd`).

    `newton` needs one above 0; its default is scikit-learn's.
    """
    class_weight: ClassWeight | None = _model()
    """Weights of label 0 and label 1, each from 0 to 1, such as 0.2,1; both parties see them.

    Do not compute it from the labels of a protected training. Supported by `none`, `hybrid`,
    `sealed` and `mutual`.
    """
    feature_bits: Annotated[int, Field(ge=4, le=30)] = _protection(16)
    """Fractional bits of a feature in fixed-point arithmetic."""
    residue_bits: Annotated[int, Field(ge=8, le=40)] = _protection(20)
    """Fractional bits of a residue in fixed-point arithmetic."""
    table_memory: PositiveInt = setting(1024, scope=Scope.COMPUTE, panel=Panel.RUN)
    """`newton`: memory limit (MiB) for Alice's encoded table; a lower limit makes each pass slower.

    24 bytes per value, shared by the worker processes; what does not fit is encoded again in every
    pass.
    """
    engine: Engine = setting("local", scope=Scope.COMPUTE, panel=Panel.RUN)
    """`newton`: where encrypted products are computed, `local` (this machine) or `dask` (this
    side's own cluster).

    Each side chooses for itself, and may change it when it resumes: the weights are the same, bit
    for bit, in `mutual` to the last places ([performance.md](performance.md#a-cluster)).
    """
    cores: PositiveInt | None = setting(scope=Scope.COMPUTE, panel=Panel.RUN, example=2)
    """`local`: number of worker processes (default: one per core, up to 8)."""
    workers: PositiveInt | None = _run()
    """`dask`: number of worker processes that a simulation starts on this machine (default: one per
    core).

    A party's file names the scheduler of a cluster instead.
    """
    seed: Annotated[int, Field(ge=0)] | None = _run(
        refused="is refused in a real training: it determines all masks and noise"
    )
    """Random seed; anyone who knows it can remove all masks and noise."""
    seeds: PositiveInt = _run(
        1, refused="is refused in a real training: they determine all masks and noise"
    )
    """Number of seeds to run, counted from `seed` or 0; means are reported."""
    compare_optimum: bool | None = _run(both_ways=True)
    """`newton`: also fit the pooled data and its optimum, to compare (default: for up to 1,000
    columns and 50 million values).

    It takes as long as the training where there are many columns, and no estimate includes it.
    """
    permute_labels: bool = _run(
        False, refused="is refused in a real training: canary runs are for simulations"
    )
    """Canary run: shuffle the labels before training."""
    permute_rows: bool = _run(
        False, refused="is refused in a real training: canary runs are for simulations"
    )
    """Canary run against Bob: shuffle Alice's rows relative to Bob's before training."""

    @model_validator(mode="before")
    @classmethod
    def _usual_mechanism(cls, values: Any) -> Any:  # noqa: ANN401 - before validation
        if values.get("mechanism") is not None:
            return values
        # Where the default cannot be had, who trains is asked to choose (``agree``).
        defaults = dataset_defaults(values.get("dataset"))
        return {**values, "mechanism": defaults.mechanism}

    @field_validator("alice_columns", mode="before")
    @classmethod
    def _list_of_names(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        require(
            self.dataset is None or self.data is None,
            "give dataset or data, not both",
            "dataset",
            "leave {dataset} or {data} out",
        )
        if self.data is not None and self.label is None:
            raise missing_label()
        require(
            self.alice_data is None or self.id is not None,
            "two tables need an id column by which they are joined",
            "id",
            "name it: {id}",
            id="COLUMN",
        )
        require(
            self.dataset is None or FAMILIES[self.family].has_classes,
            f"the labels of a dataset are 0 and 1, and not of {self.family}",
            "family",
            "leave {family} out, or use {data}",
            data="FILE",
        )
        for name in _OWN_ONLY if self.dataset is not None else ():
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"{hyphenated(name)} is about own data; a dataset has its own columns and "
                    "labels",
                    setting=name,
                    hint=Hint(f"leave {{{name}}} out, or use {{data}}", data="FILE"),
                )
        return self

    @model_validator(mode="after")
    def _one_engine(self) -> Self:
        require_engine(self.engine, {"cores": self.cores, "workers": self.workers})
        return self

    @classmethod
    def named(
        cls, values: Mapping[str, Any], *, syntax: SettingSyntax | None = None
    ) -> dict[str, Any]:
        """The same values under the names of the fields, those of the mechanism in one field."""
        return named(collected(values, cls.model_fields), cls.model_fields, syntax, cls.section)

    @classmethod
    def read_toml(cls, path: Path) -> dict[str, Any]:
        """Values of a TOML file of settings, by field; the command's options are laid over it."""
        hint = Hint("{data} names a table; a file of settings is TOML, with a line for each")
        values = read_toml(path, "file of settings", hint)
        if values.get("role") in ("alice", "bob"):
            raise ConfigError(
                "this is a party's file, and not a file of settings",
                where=str(path),
                hint=f"run taciturn party {path} or taciturn check {path}",
            )
        syntax = settings_file(path)
        for key, value in values.items():
            if isinstance(value, dict) and key.replace("-", "_") not in BY_COLUMN:
                refuse_former_key(key, cls.section, syntax)
                raise ConfigError(
                    f"[{key}] is a table; settings belong at the top level",
                    where=str(path),
                    hint=f"leave the line [{key}] out",
                )
        cls.from_mapping(values, syntax=syntax)
        return cls.named(values, syntax=syntax)

    @property
    def source(self) -> str:
        """The name of the data: a dataset's, or the own file's."""
        return self.dataset or self.data or "own data"


def require_engine(engine: Engine, given: Mapping[str, object]) -> None:
    """Refuse settings of the other engine; None is one that was not given."""
    other: Engine = "local" if engine == "dask" else "dask"
    for name, value in given.items():
        if value is not None and (name == "cores") == (engine == "dask"):
            raise ConfigError(
                f"the setting {hyphenated(name)} belongs to the engine {other}, and the engine is "
                f"{engine}",
                setting=name,
                hint=Hint(f"leave {{{name}}} out, or use {{engine}}", engine=other),
            )


def require_shared_work(engine: Engine) -> None:
    """Refuses a cluster for a training by batches."""
    require(
        engine == "local",
        "sgd's batches are too small to be shared: a cluster would be idle",
        "engine",
        "use {engine}, or {solver}",
        engine="local",
        solver="newton",
    )


def settings_file(path: Path) -> TomlFile:
    """Setting syntax of a settings file: keys at its top level."""
    return TomlFile(str(path), dict.fromkeys(Settings.model_fields, ""))


def missing_label() -> ConfigError:
    """The error of own data whose label column is not named."""
    return ConfigError(
        "the label column is not named",
        setting="label",
        hint=Hint("use {label}", label="COLUMN"),
    )
