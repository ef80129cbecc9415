"""Written by ``tools/write_signatures.py`` from the declarations of settings."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict, dataclass_transform

class SettingsOptions(TypedDict, total=False):
    mechanism: str
    epsilon: float | None
    noise: Literal["discrete", "continuous"] | None
    variant: Literal["printed", "one-sided", "mean-one"] | None
    b1: float | None
    b2: float | None
    subset_size: int | None
    bob_update: Literal["released", "true"] | None
    base_mechanism: Literal["none", "sealed"] | None
    reveal: bool | None
    reveal_epsilon: float | None
    reveal_delta: float | None
    fresh_keys: bool | None
    reveal_bob: bool | None
    score_range: float | None
    sigmoid_error: float | None
    mechanism_settings: dict[str, Any] | None
    positive: Sequence[str] | None
    negative: Sequence[str] | None
    exposure: str | None
    weights: str | None
    keep: Sequence[str] | None
    drop: Sequence[str] | None
    type: (
        Literal["number", "category", "date", "text"]
        | dict[str, Literal["number", "category", "date", "text"]]
        | None
    )
    impute: Literal["median", "mean", "bin", "none"] | None
    missing_indicator: bool | None
    winsorise: float | Literal["none"] | dict[str, float] | None
    transform: (
        Literal["none", "log", "rank", "yeo-johnson"]
        | dict[str, Literal["none", "log", "rank", "yeo-johnson"]]
        | None
    )
    bins: int | dict[str, int | Sequence[float]] | None
    scale: Literal["standard", "none"] | None
    clip: float | None
    max_levels: int | None
    min_frequency: float | None
    normalise_categories: bool | None
    date_format: str | Sequence[str] | dict[str, str | Sequence[str]] | None
    date_parts: Sequence[Literal["year", "month", "weekday"]] | None
    separator: str | None
    decimal: Literal[".", ","] | dict[str, Literal[".", ","]] | None
    encoding: str | None
    na_values: Sequence[str] | None
    duplicates: Literal["error", "first", "last"] | None
    dataset: str | None
    alice_data: object
    id: str | None
    label: str | None
    data_dir: str | None
    test_fraction: float
    alice_columns: str | int | Sequence[str]
    parties: int
    family: Literal["binomial", "gaussian", "poisson", "gamma"]
    intercept: bool | None
    l_rr: int | None
    budget: float | None
    delta: float
    scheme: str
    key_bits: int | None
    solver: Literal["sgd", "newton"] | None
    passes: int | None
    batch_size: int | None
    minimum_batch: int
    epochs: int | None
    learning_rate: float | None
    schedule: Literal["constant", "inverse", "inverse-sqrt"]
    decay: float
    l1: float
    l2: float | None
    class_weight: Sequence[float] | None
    feature_bits: int
    residue_bits: int
    table_memory: int
    engine: Literal["local", "dask"]
    cores: int | None
    workers: int | None
    seed: int | None
    seeds: int
    compare_optimum: bool | None
    permute_labels: bool
    permute_rows: bool

@dataclass_transform(kw_only_default=True)
class _Parameters:
    defaults: ClassVar[Mapping[str, object]]
    texts: ClassVar[Mapping[str, str]]

class ClassifierParameters(_Parameters):
    alice_columns: object = "all"
    parties: int = 1
    mechanism: str = "mutual"
    epsilon: float | None = None
    noise: Literal["discrete", "continuous"] | None = None
    variant: Literal["printed", "one-sided", "mean-one"] | None = None
    b1: float | None = None
    b2: float | None = None
    subset_size: int | None = None
    bob_update: Literal["released", "true"] | None = None
    base_mechanism: Literal["none", "sealed"] | None = None
    reveal: bool | None = None
    reveal_epsilon: float | None = None
    reveal_delta: float | None = None
    fresh_keys: bool | None = None
    reveal_bob: bool | None = None
    score_range: float | None = None
    sigmoid_error: float | None = None
    mechanism_settings: dict[str, Any] | None = None
    l_rr: int | None = None
    budget: float | None = None
    delta: float = 1e-06
    scheme: str = "bfv"
    key_bits: int | None = None
    solver: Literal["sgd", "newton"] | None = None
    passes: int | None = None
    batch_size: int | None = None
    minimum_batch: int = 1
    epochs: int | None = None
    learning_rate: float | None = None
    schedule: Literal["constant", "inverse", "inverse-sqrt"] = "constant"
    decay: float = 0.0
    l1: float = 0.0
    l2: float | None = None
    feature_bits: int = 16
    residue_bits: int = 20
    fit_intercept: bool = True
    class_weight: object = None
    random_state: object = None

class RegressorParameters(_Parameters):
    alice_columns: object = "all"
    parties: int = 1
    mechanism: str = "mutual"
    reveal: bool | None = None
    fresh_keys: bool | None = None
    scheme: str = "bfv"
    passes: int | None = None
    l2: float | None = None
    feature_bits: int = 16
    residue_bits: int = 20
    fit_intercept: bool = True
    random_state: object = None
