"""``SettingsOptions``: the fields of ``Settings`` as keyword arguments with types.

A ``TypedDict`` must be written out; a test compares it with ``Settings``, name by name and type by
type. ``data`` is not among them: the functions that take these options take a table of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from taciturn.settings.schema import (
    BaseMechanism,
    BobUpdate,
    Engine,
    Noise,
    Variant,
)
from taciturn.settings.solver import Schedule, SolverName
from taciturn.settings.table import (
    ColumnType,
    DatePart,
    Decimal,
    Impute,
    Scale,
    TransformChoice,
)


class SettingsOptions(TypedDict, total=False):
    """Settings of a simulated run; omitted ones have their defaults."""

    mechanism: str
    epsilon: float | None
    noise: Noise | None
    variant: Variant | None
    b1: float | None
    b2: float | None
    subset_size: int | None
    bob_update: BobUpdate | None
    base_mechanism: BaseMechanism | None
    reveal: bool | None
    reveal_epsilon: float | None
    reveal_delta: float | None
    fresh_keys: bool | None
    reveal_bob: bool | None
    score_range: float | None
    sigmoid_error: float | None
    dataset: str | None
    id: str | None
    label: str | None
    data_dir: str | None
    test_fraction: float
    positive: Sequence[str] | None
    negative: Sequence[str] | None
    keep: Sequence[str] | None
    drop: Sequence[str] | None
    type: ColumnType | dict[str, ColumnType] | None
    impute: Impute | None
    missing_indicator: bool | None
    winsorise: float | Literal["none"] | dict[str, float] | None
    transform: TransformChoice | dict[str, TransformChoice] | None
    bins: int | dict[str, int | Sequence[float]] | None
    scale: Scale | None
    clip: float | None
    max_levels: int | None
    min_frequency: float | None
    date_format: str | dict[str, str] | None
    date_parts: Sequence[DatePart] | None
    separator: str | None
    decimal: Decimal | None
    encoding: str | None
    na_values: Sequence[str] | None
    alice_columns: str | int | Sequence[str]
    parties: int
    intercept: bool | None
    l_rr: int | None
    budget: float | None
    delta: float
    scheme: str
    key_bits: int | None
    solver: SolverName | None
    passes: int | None
    batch_size: int | None
    minimum_batch: int
    epochs: int | None
    learning_rate: float | None
    schedule: Schedule
    decay: float
    l1: float
    l2: float | None
    class_weight: Sequence[float] | None
    feature_bits: int
    residue_bits: int
    table_memory: int
    engine: Engine
    cores: int | None
    workers: int | None
    seed: int | None
    seeds: int
    compare_optimum: bool | None
    permute_labels: bool
    permute_rows: bool
