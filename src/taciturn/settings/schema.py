"""``Settings``: what a person asks for.

Every field is an option of the commands and a key of the TOML file, spelled with hyphens there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from taciturn.errors import ConfigError
from taciturn.settings.checked import Checked, ClassWeight, NonNegative, Positive, PositiveInt

# The one that hides labels and changes nothing about the model.
DEFAULT_MECHANISM = "sealed"
Schedule = Literal["constant", "inverse", "inverse-sqrt"]
Noise = Literal["discrete", "continuous"]
Variant = Literal["printed", "one-sided", "mean-one"]
BobUpdate = Literal["released", "true"]
Over = Literal["none", "sealed"]
Evaluate = Literal["end", "epoch"]


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


class Protection(Checked):
    """How labels are protected: a mechanism, and the settings of which each takes some.

    One that is not given is None; so is, once agreed on, one that the mechanism does not take.
    """

    mechanism: str
    epsilon: Positive | None = None
    noise: Noise | None = None
    variant: Variant | None = None
    b1: Positive | None = None
    b2: Positive | None = None
    subset_size: PositiveInt | None = None
    bob_update: BobUpdate | None = None
    over: Over | None = None
    reveal: bool | None = None
    dither: NonNegative | None = None
    fresh_keys: bool | None = None


class Settings(Protection):
    """One simulated run, as a person asks for it. ``None`` means the dataset's default."""

    dataset: str | None = None
    data: str | None = None
    id: str | None = None
    label: str | None = None
    data_dir: str | None = None
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    impute: Literal["median", "mean", "none"] | None = None
    scale: Literal["standard", "none"] | None = None
    clip: Positive | None = None
    max_levels: PositiveInt | None = None
    alice_columns: str | int | tuple[str, ...] = "all"
    intercept: bool | None = None
    mechanism: str = DEFAULT_MECHANISM
    l_rr: PositiveInt | None = None
    budget: Positive | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] = 1e-6
    scheme: str = "bfv"
    key_bits: int | None = None
    batch_size: PositiveInt | None = None
    minimum_batch: PositiveInt = 1
    epochs: PositiveInt | None = None
    learning_rate: Positive | None = None
    schedule: Schedule = "constant"
    decay: NonNegative = 0.0
    l1: NonNegative = 0.0
    l2: NonNegative = 0.0
    class_weight: ClassWeight | None = None
    feature_bits: Annotated[int, Field(ge=4, le=30)] = 16
    residue_bits: Annotated[int, Field(ge=8, le=40)] = 20
    seed: Annotated[int, Field(ge=0)] | None = None
    seeds: PositiveInt = 1
    permute_labels: bool = False

    @field_validator("alice_columns", mode="before")
    @classmethod
    def _list_of_names(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.dataset is not None and self.data is not None:
            raise ValueError("give dataset or data, not both")
        if self.data is not None and self.label is None:
            raise ValueError("own data needs the name of its label column: --label COLUMN")
        if self.dataset is not None and (self.id is not None or self.label is not None):
            raise ValueError("id and label name columns of own data; a dataset has its own")
        return self

    @classmethod
    def read_toml(cls, path: Path) -> dict[str, Any]:
        """Reads a TOML file of settings; the command's own options are laid over it.

        Raises:
            ConfigError: The file is absent, is not TOML, or holds a table.
        """
        try:
            with path.open("rb") as stream:
                values = tomllib.load(stream)
        except OSError as problem:
            raise ConfigError(
                f"the settings cannot be read: {problem.strerror}", where=str(path)
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise ConfigError(f"this is not TOML: {problem}", where=str(path)) from None
        for key, value in values.items():
            if isinstance(value, dict):
                raise ConfigError(
                    f"[{key}] is a table; settings stand at the top level", where=str(path)
                )
        cls.of({"mechanism": "none", **values}, where=str(path))
        return values

    @property
    def source(self) -> str:
        """The name of the data: a dataset's, or the own file's."""
        return self.dataset or self.data or "own data"

    def resolved(self) -> Settings:
        """The same settings with the dataset's defaults filled in."""
        fallback = DATASET_DEFAULTS.get(self.dataset or "", OWN_DATA_DEFAULTS)
        filled = {
            "batch_size": self.batch_size or fallback.batch_size,
            "learning_rate": self.learning_rate or fallback.learning_rate,
            "epochs": self.epochs or fallback.epochs,
            "intercept": fallback.intercept if self.intercept is None else self.intercept,
        }
        return self.model_copy(update=filled)
