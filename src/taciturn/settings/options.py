"""``SettingsOptions``: the fields of ``Settings`` as keyword arguments with types.

A ``TypedDict`` must be written out; a test compares it with ``Settings``, name by name and type by
type. ``data`` is not among them: the functions that take these options take a table of that name.

Checked settings from the arguments of the Python functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

from taciturn.errors import ConfigError
from taciturn.setting_syntax import Hint
from taciturn.settings.checked import named
from taciturn.settings.mechanism_settings import collected
from taciturn.settings.removed import refuse_former_keyword
from taciturn.settings.schema import (
    BaseMechanism,
    BobUpdate,
    Engine,
    FamilyName,
    Noise,
    Schedule,
    Settings,
    SolverName,
    Variant,
)
from taciturn.settings.table import (
    ColumnType,
    DatePart,
    Decimal,
    Duplicates,
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
    mechanism_settings: dict[str, Any] | None
    dataset: str | None
    alice_data: object
    id: str | None
    label: str | None
    data_dir: str | None
    test_fraction: float
    positive: Sequence[str] | None
    negative: Sequence[str] | None
    exposure: str | None
    weights: str | None
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
    normalise_categories: bool | None
    date_format: str | Sequence[str] | dict[str, str | Sequence[str]] | None
    date_parts: Sequence[DatePart] | None
    separator: str | None
    decimal: Decimal | dict[str, Decimal] | None
    encoding: str | None
    na_values: Sequence[str] | None
    duplicates: Duplicates | None
    alice_columns: str | int | Sequence[str]
    parties: int
    family: FamilyName
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


P = ParamSpec("P")
T = TypeVar("T")


def refusing_former_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which refuses keywords of earlier versions with a ConfigError."""
    known = inspect.signature(function).parameters
    name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*given: P.args, **keywords: P.kwargs) -> T:
        for keyword in keywords.keys() - known.keys():
            refuse_former_keyword(keyword, name)
        return function(*given, **keywords)

    return checked


def given_options(options: SettingsOptions, function: Callable[..., object]) -> dict[str, object]:
    """The options by their settings' names, without those that are None, which means not given.

    Raises:
        ConfigError: One is neither a setting nor a parameter of the function.
    """
    parameters = [name for name in inspect.signature(function).parameters if name != "options"]
    for name in options.keys() - Settings.model_fields.keys():
        refuse_former_keyword(name, function.__name__)
    known = [*Settings.model_fields, *parameters]
    given = named(collected(options, known), known)
    return {name: value for name, value in given.items() if value is not None}


def record_target(record: str | Path | None, settings: Settings) -> Path | None:
    """Path of the transcript; raise ConfigError if there are several runs."""
    if record is not None and settings.seeds > 1:
        raise ConfigError(
            "a transcript holds one run", setting="record", hint=Hint("leave {seeds} out")
        )
    return None if record is None else Path(record)


def per_seed(settings: Settings) -> list[Settings]:
    """One run's settings for each seed; without a first seed they count from 0."""
    if settings.seeds == 1:
        return [settings]
    first = settings.seed or 0
    return [
        settings.model_copy(update={"seed": first + number}) for number in range(settings.seeds)
    ]
