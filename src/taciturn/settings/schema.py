"""``Settings``: what a person asks for. Each field is declared once, and here (``Setting``).

Every field is an option of the commands, a key of a settings file, where it is spelled with
hyphens, and a keyword argument of ``train``, ``check`` and ``audit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from taciturn.errors import ConfigError
from taciturn.faces import Hint, TomlFile, hyphenated
from taciturn.files import read_toml
from taciturn.settings.checked import Checked, ClassWeight, NonNegative, Positive, PositiveInt
from taciturn.settings.parties import MOST
from taciturn.settings.removed import refuse_removed, removed_batches
from taciturn.settings.setting import Panel, Scope, Setting
from taciturn.settings.table import BY_COLUMN, TableSettings

# The one that hides labels and changes nothing about the model.
DEFAULT_MECHANISM = "sealed"
Schedule = Literal["constant", "inverse", "inverse-sqrt"]
Noise = Literal["discrete", "continuous"]
Variant = Literal["printed", "one-sided", "mean-one"]
BobUpdate = Literal["released", "true"]
Over = Literal["none", "sealed"]
Evaluate = Literal["end", "epoch"]
Solver = Literal["sgd", "newton"]
TellAlice = Literal["nothing", "quality"]
Engine = Literal["local", "dask"]

_source = partial(Setting, scope=Scope.SIMULATION, panel=Panel.DATA)
_table = partial(Setting, scope=Scope.DATA, panel=Panel.DATA)
_model = partial(Setting, scope=Scope.AGREEMENT, panel=Panel.MODEL)
_protection = partial(Setting, scope=Scope.AGREEMENT, panel=Panel.PROTECTION)
_run = partial(Setting, scope=Scope.SIMULATION, panel=Panel.RUN)


@dataclass(frozen=True, slots=True)
class DatasetDefaults:
    """The paper's batch size and L_RR for a dataset, and our learning rate and epochs."""

    batch_size: int
    learning_rate: float
    epochs: int
    intercept: bool = False
    l_rr: int | None = None


# Batch sizes and L_RR are the paper's (Table III); it states neither learning rate nor epochs. Ours
# were chosen on a validation part cut from the training rows, never on the held-out ones: the
# largest rate of a coarse grid at which the loss falls steadily, and ten epochs, after which
# another ten change the validation accuracy by 0.2 to 0.6 points. give-me-some-credit takes a
# smaller rate because a few of its standardised values lie beyond 200.
DATASET_DEFAULTS: Mapping[str, DatasetDefaults] = {
    "breast-cancer": DatasetDefaults(batch_size=16, learning_rate=0.1, epochs=10, l_rr=40),
    "sklearn-digits": DatasetDefaults(batch_size=32, learning_rate=0.1, epochs=10, l_rr=70),
    "census-income": DatasetDefaults(batch_size=32, learning_rate=0.05, epochs=10, l_rr=90),
    "give-me-some-credit": DatasetDefaults(batch_size=8, learning_rate=0.003, epochs=10, l_rr=15),
}
OWN_DATA_DEFAULTS = DatasetDefaults(batch_size=64, learning_rate=0.05, epochs=10, intercept=True)
# Enough for a gap to the optimum below 1e-4 on the paper's datasets; each hands Bob one more score.
DEFAULT_PASSES = 12
# Where the model is told with noise: that grows with each pass, and few steps go most of the way.
DEFAULT_TOLD_PASSES = 4
# Several Alices do not whiten, which takes some more.
DEFAULT_SEVERAL_PASSES = 20
# Where nobody sees a score there is no search: steps on a public schedule, which need more.
DEFAULT_SHARED_PASSES = 28
# What only sgd has: refused by name with newton.
SGD_ONLY = ("epochs", "batch_size", "learning_rate")
# Those that newton has; the mechanisms say it of themselves (``whole_table``).
WHOLE_TABLE = ("none", "sealed", "mutual", "label-rr")
# Those of them that sgd has not.
WHOLE_TABLE_ONLY = ("sealed", "mutual")

# What says how own data are read: the paper's datasets are read in one way.
_OWN_ONLY = (
    *("id", "label", "positive", "negative", "keep", "drop", "type", "date_format", "date_parts"),
    *("separator", "decimal", "encoding", "null_words"),
)


class Protection(Checked):
    """How labels are protected: a mechanism, and the settings of which each takes some.

    One that is not given is None; so is, once agreed on, one that the mechanism does not take.
    """

    mechanism: Annotated[
        str,
        _protection(
            "What protects the labels: `sealed`, `mutual` (Alice's columns too), `label-rr`, "
            "`none`, `add`, `mult` or `hybrid`.",
            detail="[What each is worth](threat_model.md)",
        ),
    ] = DEFAULT_MECHANISM
    epsilon: Annotated[
        Positive | None,
        _protection(
            "The privacy parameter: of one release in `add`, `mult` and `hybrid`, in total in "
            "`label-rr`.",
            detail="`add`, `mult` and `label-rr` need it; `hybrid` defaults to 1",
            example=1.0,
        ),
    ] = None
    noise: Annotated[
        Noise | None,
        _protection(
            "`add`, `mult`: `discrete` (exact, on the grid) or `continuous` (as printed; leaky) "
            "(default: discrete).",
            detail="Continuous noise leaks through its last bits and is refused here",
            example="discrete",
        ),
    ] = None
    variant: Annotated[
        Variant | None,
        _protection(
            "`mult`: `printed`, `one-sided` or `mean-one` (default: printed).",
            example="mean-one",
        ),
    ] = None
    b1: Annotated[
        Positive | None,
        _protection(
            "`mult`: residues are clipped to at least this size (default: 0.1).", example=0.1
        ),
    ] = None
    b2: Annotated[
        Positive | None,
        _protection(
            "`mult`: outputs are clipped to at most this size (default: 10).", example=10.0
        ),
    ] = None
    subset_size: Annotated[
        PositiveInt | None,
        _protection(
            "`hybrid`: rows among which the batch hides; from L_RR or Alice's columns unless given."
        ),
    ] = None
    bob_update: Annotated[
        BobUpdate | None,
        _protection(
            "`add`, `mult`: Bob's own weights learn from `released` or `true` residues (default: "
            "released).",
            detail="With true ones every total in the ledger is infinite",
            example="released",
        ),
    ] = None
    over: Annotated[
        Over | None,
        _protection(
            "`label-rr`: the conversation on the flipped labels, `none` or `sealed` (default: "
            "none).",
            example="none",
        ),
    ] = None
    reveal: Annotated[
        bool | None,
        _protection(
            "`sealed`, `mutual`: Bob reveals Alice's weights at the end, a release without "
            "protection.",
            example=True,
        ),
    ] = None
    reveal_epsilon: Annotated[
        Positive | None,
        _protection(
            "`sealed`: the weights are revealed with noise, at this price in all.",
            detail="[What it is worth](reveal.md)",
            example=1.0,
        ),
    ] = None
    reveal_delta: Annotated[
        Annotated[float, Field(gt=0, lt=1)] | None,
        _protection(
            "`sealed`: the delta that belongs to `reveal-epsilon` (default: 1e-06).",
            example=1e-6,
        ),
    ] = None
    fresh_keys: Annotated[
        bool | None,
        _protection("`sealed`: a new key for each encrypted vector.", example=True),
    ] = None
    reveal_bob: Annotated[
        bool | None,
        _protection(
            "`mutual`: Alice reveals Bob's weights to him at the end.",
            detail="Without it they stay shared, and he scores rows with her",
            example=True,
        ),
    ] = None
    score_range: Annotated[
        Annotated[float, Field(ge=4, le=256)] | None,
        _protection(
            "`mutual`: the largest score that does not wrap (default: 64).",
            detail="A larger one takes more numbers a row and leaves fewer digits",
            example=32.0,
        ),
    ] = None
    sigmoid_error: Annotated[
        Annotated[float, Field(ge=1e-6, le=1e-2)] | None,
        _protection(
            "`mutual`: the most by which the sigmoid of a shared score may be off (default: "
            "0.003).",
            example=0.001,
        ),
    ] = None


class Settings(TableSettings, Protection):
    """One simulated run, as a person asks for it. ``None`` means the dataset's default."""

    dataset: Annotated[
        str | None,
        _source(
            "A dataset of the paper: `breast-cancer`, `sklearn-digits`, `census-income` or "
            "`give-me-some-credit`."
        ),
    ] = None
    data: Annotated[
        str | None, _source("Own data: a CSV or Parquet file, or a folder of Parquet files.")
    ] = None
    id: Annotated[
        str | None,
        _table(
            "The column that names the rows.",
            in_file="The column that names the rows; the same names on both sides.",
            detail="Align first if a side lacks some; leading zeros matter",
            example="id",
        ),
    ] = None
    label: Annotated[
        str | None,
        _table(
            "The column of labels: 0 and 1, or words (`positive` says which).",
            detail="Bob must name it, and Alice must not",
            example="label",
            owner="bob",
        ),
    ] = None
    data_dir: Annotated[str | None, _source("The folder of the datasets' files.")] = None
    test_fraction: Annotated[float, Field(gt=0, lt=1), _source("Fraction of rows held out.")] = 0.2
    alice_columns: Annotated[
        str | int | tuple[str, ...],
        Setting(
            "Alice's columns: `all`, `half`, `equal`, a number (counted from the first), or names "
            "separated by commas, `;` between Alices.",
            Scope.AGREEMENT,
            Panel.DATA,
            in_file="How many prepared columns Alice has. Without it Bob accepts 1,000; `hybrid` "
            "needs it on both sides.",
            example=30,
        ),
    ] = "all"
    parties: Annotated[
        int,
        Field(ge=1, le=MOST),
        _source(
            f"How many Alices there are, up to {MOST}: they share her columns, and Bob "
            "learns sums of their scores.",
            detail="Dealt in order, as evenly as can be; `equal` counts Bob among them. `hybrid`, "
            "`mutual` and `reveal-epsilon` have one Alice. A party's file names them instead, in "
            "`[agreement.parties]`",
        ),
    ] = 1
    intercept: Annotated[
        bool | None,
        Setting(
            "An intercept at Bob, without penalty.",
            Scope.AGREEMENT,
            Panel.MODEL,
            detail="Alice never has one. In `newton` both sides centre their columns where there "
            "is one",
            both_ways=True,
        ),
    ] = None
    l_rr: Annotated[
        PositiveInt | None,
        _protection(
            "`hybrid`: how many rows of a subset Alice scores on average (L_RR), in place of its "
            "size."
        ),
    ] = None
    budget: Annotated[
        Positive | None,
        Setting(
            "Stop before a label's epsilon, summed over releases, exceeds this.",
            Scope.PRIVACY,
            Panel.PROTECTION,
            detail="Bob's file only",
            example=4.0,
            owner="bob",
            refused="is not part of the agreement: it belongs in [privacy], in Bob's file",
        ),
    ] = None
    delta: Annotated[
        float,
        Field(ge=0, lt=1),
        Setting(
            "The delta of the tighter total in the ledger.",
            Scope.PRIVACY,
            Panel.PROTECTION,
            refused="is not part of the agreement: it belongs in [privacy], in Bob's file",
        ),
    ] = 1e-6
    scheme: Annotated[
        str,
        _protection(
            "Encryption: `bfv`, `paillier` (small messages, slower), or `clear` (none: for "
            "simulations only).",
            detail="Not used by `add` and `mult`",
        ),
    ] = "bfv"
    key_bits: Annotated[
        int | None,
        _protection("Key size: 3072 or 2048 for `paillier`; `bfv` has 128-bit security."),
    ] = None
    solver: Annotated[
        Solver | None,
        _model(
            "`newton`: all rows in a few passes, nothing to tune; `sgd`: batches and a learning "
            "rate (default: newton for `sealed`, `mutual`, own data).",
            detail="`sealed` and `mutual` have `newton`, under `bfv`; `none` and `label-rr` have "
            "both; the others have `sgd`. Naming `epochs`, `batch-size` or `learning-rate` without "
            "a solver means `sgd` where the mechanism has both",
            example="newton",
        ),
    ] = None
    passes: Annotated[
        Annotated[int, Field(ge=1, le=1000)] | None,
        _model(
            f"`newton`: passes over the rows (default: {DEFAULT_PASSES}; with `reveal-epsilon` "
            f"{DEFAULT_TOLD_PASSES}, with several Alices {DEFAULT_SEVERAL_PASSES}, with `mutual` "
            f"{DEFAULT_SHARED_PASSES}).",
            detail="Each gives Bob one more score of every row, but in `mutual`",
            example=DEFAULT_PASSES,
        ),
    ] = None
    batch_size: Annotated[PositiveInt | None, _model("`sgd`: rows per iteration.")] = None
    minimum_batch: Annotated[
        PositiveInt,
        _model(
            "Smallest batch: a shorter last batch is merged with the one before it.",
            file_default=8,
        ),
    ] = 1
    epochs: Annotated[
        PositiveInt | None,
        _model(
            "`sgd`: passes over the rows.",
            detail="A row is released once per epoch, and pays each time",
        ),
    ] = None
    learning_rate: Annotated[
        Positive | None, _model("`sgd`: step size of the gradient descent.")
    ] = None
    schedule: Annotated[
        Schedule, _model("How the learning rate falls: `constant`, `inverse` or `inverse-sqrt`.")
    ] = "constant"
    decay: Annotated[NonNegative, _model("How fast the schedule falls.")] = 0.0
    l1: Annotated[
        NonNegative,
        _model("L1 penalty, not in `sealed`, `mutual`; each side applies it to its own weights."),
    ] = 0.0
    l2: Annotated[
        NonNegative | None,
        _model(
            "L2 penalty on all weights but the intercept (default: one divided by the training "
            "rows in `newton`, 0 in `sgd`).",
            detail="`newton` needs one; its default is scikit-learn's",
            example=0.001,
        ),
    ] = None
    class_weight: Annotated[
        ClassWeight | None,
        _model(
            "Weights of label 0 and label 1, each from 0 to 1, such as 0.2,1; public.",
            detail="Never compute it from the labels of a protected training. Only `none`, "
            "`hybrid`, `sealed` and `mutual` accept it",
        ),
    ] = None
    feature_bits: Annotated[
        int, Field(ge=4, le=30), _protection("Fractional bits of a feature.")
    ] = 16
    residue_bits: Annotated[
        int, Field(ge=8, le=40), _protection("Fractional bits of a residue.")
    ] = 20
    table_memory: Annotated[
        PositiveInt,
        Setting(
            "`newton`: MiB that Alice's table may take in encrypted arithmetic's own form; with "
            "less a pass takes longer.",
            Scope.COMPUTE,
            Panel.RUN,
            detail="24 bytes of each value, shared by the processes that work on it; what does "
            "not fit is made anew in every pass",
        ),
    ] = 1024
    engine: Annotated[
        Engine,
        Setting(
            "`newton`: what computes encrypted products: `local`, this machine, or `dask`, a "
            "cluster of this side's own.",
            Scope.COMPUTE,
            Panel.RUN,
            detail="Each side chooses for itself, and may choose otherwise when it resumes: the "
            "weights are the same, bit for bit ([scale.md](scale.md))",
        ),
    ] = "local"
    cores: Annotated[
        PositiveInt | None,
        Setting(
            "`local`: how many processes compute encrypted products (default: one for each core, "
            "up to 8).",
            Scope.COMPUTE,
            Panel.RUN,
            example=2,
        ),
    ] = None
    workers: Annotated[
        PositiveInt | None,
        _run(
            "`dask`: how many worker processes a simulation starts on this machine, and ends "
            "(default: one for each core).",
            detail="A party's file names the scheduler of a cluster instead",
        ),
    ] = None
    seed: Annotated[
        Annotated[int, Field(ge=0)] | None,
        _run(
            "Makes a simulation repeatable; protects nothing from whoever knows it.",
            refused="is refused in a real training: whoever knows it knows all masks and noise",
        ),
    ] = None
    seeds: Annotated[
        PositiveInt,
        _run(
            "Run this many seeds, from the given one or 0, and report means.",
            refused="is refused in a real training: whoever knows them knows all masks and noise",
        ),
    ] = 1
    permute_labels: Annotated[
        bool,
        _run(
            "Canary run: shuffle the labels before training.",
            refused="is refused in a real training: canary runs are for simulations",
        ),
    ] = False
    permute_rows: Annotated[
        bool,
        _run(
            "Canary run of Bob's seat: permute Alice's rows against Bob's before training.",
            refused="is refused in a real training: canary runs are for simulations",
        ),
    ] = False

    @field_validator("alice_columns", mode="before")
    @classmethod
    def _list_of_names(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.dataset is not None and self.data is not None:
            raise ConfigError(
                "give dataset or data, not both",
                setting="dataset",
                hint=Hint("leave {dataset} or {data} out"),
            )
        if self.data is not None and self.label is None:
            raise missing_label()
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
    def read_toml(cls, path: Path) -> dict[str, Any]:
        """Values of a TOML file of settings, by field; the command's options are laid over it."""
        values = read_toml(path, "file of settings", "name a file that can be read")
        face = settings_file(path)
        for key, value in values.items():
            if isinstance(value, dict) and key.replace("-", "_") not in BY_COLUMN:
                refuse_removed(key, face)
                raise ConfigError(
                    f"[{key}] is a table; settings belong at the top level",
                    where=str(path),
                    hint=f"leave the line [{key}] out",
                )
        cls.of(values, face=face)
        return cls.named(values, face=face)

    @property
    def source(self) -> str:
        """The name of the data: a dataset's, or the own file's."""
        return self.dataset or self.data or "own data"

    def resolved(self) -> Settings:
        """The same settings with the solver's and the dataset's defaults filled in."""
        if self.solver == "sgd" and self.whole_table_only:
            raise removed_batches(self.mechanism, self._over)
        fallback = DATASET_DEFAULTS.get(self.dataset or "", OWN_DATA_DEFAULTS)
        filled: dict[str, object] = {
            "solver": self.solver or self._usual_solver(),
            "intercept": fallback.intercept if self.intercept is None else self.intercept,
        }
        if filled["solver"] == "newton":
            self._refuse_steps()
            filled["passes"] = self.passes or self.default_passes
            return self.model_copy(update=filled)
        require_shared_work(self.engine)
        if self.passes is not None:
            raise ConfigError(
                "sgd has epochs; passes are newton's",
                setting="passes",
                hint=Hint("use {epochs}, or {solver}", solver="newton"),
            )
        for name in SGD_ONLY:
            filled[name] = getattr(self, name) or getattr(fallback, name)
        return self.model_copy(update=filled)

    @property
    def default_passes(self) -> int:
        """How many passes newton takes where the number is not given."""
        if self.mechanism == "mutual":
            return DEFAULT_SHARED_PASSES
        if self.reveal_epsilon is not None:
            return DEFAULT_TOLD_PASSES
        return DEFAULT_PASSES if self.parties == 1 else DEFAULT_SEVERAL_PASSES

    def _usual_solver(self) -> Solver:
        """Newton, unless what is asked for has sgd alone, is the paper's, or names steps of sgd."""
        if self.whole_table_only:
            return "newton"
        steps = any(getattr(self, name) is not None for name in SGD_ONLY)
        sgd = (
            self.dataset is not None
            or steps
            or self.mechanism not in WHOLE_TABLE
            or self.scheme == "paillier"
            or self.l1 > 0
            or self.l2 == 0
            or self.schedule != "constant"
        )
        return "sgd" if sgd else "newton"

    @property
    def whole_table_only(self) -> bool:
        """Whether the mechanism, or the one that it runs over, has no sgd."""
        return not {self.mechanism, self._over}.isdisjoint(WHOLE_TABLE_ONLY)

    @property
    def _over(self) -> Over | None:
        return self.over if self.mechanism == "label-rr" else None

    def _refuse_steps(self) -> None:
        for name in SGD_ONLY:
            if getattr(self, name) is not None:
                raise ConfigError(
                    f"newton has no {hyphenated(name)}: every pass uses all rows, and its step "
                    "follows from the data",
                    setting=name,
                    hint=self._or_sgd(f"leave {{{name}}} out"),
                )
        if self.schedule != "constant" or self.decay:
            raise ConfigError(
                "newton has no learning rate that could fall",
                setting="schedule" if self.schedule != "constant" else "decay",
                hint=self._or_sgd("leave it out"),
            )
        if self.l1 > 0:
            raise ConfigError(
                "newton has no L1 penalty",
                setting="l1",
                hint=self._or_sgd("use {l2}"),
            )
        if self.l2 == 0:
            raise ConfigError(
                "newton needs an L2 penalty above 0: without one there may be no optimum",
                setting="l2",
                hint=self._or_sgd("leave {l2} out for scikit-learn's"),
            )

    def _or_sgd(self, way_out: str) -> Hint:
        if self.whole_table_only:
            return Hint(f"{way_out}, or use {{mechanism}} with sgd", mechanism="none")
        return Hint(f"{way_out}, or use {{solver}}", solver="sgd")


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
    if engine == "dask":
        raise ConfigError(
            "sgd's batches are too small to be shared: a cluster would stand idle",
            setting="engine",
            hint=Hint("use {engine}, or {solver}", engine="local", solver="newton"),
        )


def settings_file(path: Path) -> TomlFile:
    """How a settings file of the commands spells settings: at its top level."""
    return TomlFile(str(path), dict.fromkeys(Settings.model_fields, ""))


def missing_label() -> ConfigError:
    """The error of own data whose label column is not named."""
    return ConfigError(
        "own data needs the name of its label column",
        setting="label",
        hint=Hint("use {label}", label="COLUMN"),
    )
