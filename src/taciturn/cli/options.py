"""The options that commands share: one table, so that ``train`` and ``audit`` never drift apart.

Every option is a field of ``Settings`` and a key of the TOML file of the same name. An option that
is given lies over the file's key; one that is not is left to the file, and then to the default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.settings.schema import Settings

_DATA, _MODEL, _PROTECTION, _RUN = "Data", "Model", "Protection", "Run"


def _option(kind: Any, help_text: str, panel: str, *names: str) -> Any:  # noqa: ANN401 - a type form
    return Annotated[kind | None, typer.Option(*names, help=help_text, rich_help_panel=panel)]


SHARED: dict[str, Any] = {
    "dataset": _option(
        str,
        "breast-cancer, sklearn-digits, census-income or give-me-some-credit.",
        _DATA,
    ),
    "data": _option(str, "Own data: a CSV or Parquet file.", _DATA),
    "id": _option(str, "Own data: the column of row ids.", _DATA),
    "label": _option(str, "Own data: the column of 0/1 labels.", _DATA),
    "data_dir": _option(str, "Where the datasets' files lie.", _DATA),
    "test_fraction": _option(float, "Share of rows held out (0.2).", _DATA),
    "impute": _option(
        str, "Missing numbers become the median, the mean, or an error (none).", _DATA
    ),
    "scale": _option(str, "Numbers are standardised (standard) or left as they are (none).", _DATA),
    "clip": _option(float, "Clip prepared values to this size.", _DATA),
    "max_levels": _option(int, "Most levels a text column may have (100).", _DATA),
    "alice_columns": _option(
        str, "Alice's columns: all, half, a number, or names separated by commas.", _DATA
    ),
    "intercept": _option(
        bool,
        "An intercept at Bob (on for own data, off for the paper's datasets).",
        _MODEL,
        "--intercept/--no-intercept",
    ),
    "batch_size": _option(int, "Rows per iteration (the paper's).", _MODEL),
    "minimum_batch": _option(
        int, "A last batch with fewer rows joins the one before it (1).", _MODEL
    ),
    "epochs": _option(int, "Passes over the rows.", _MODEL),
    "learning_rate": _option(float, "Step size.", _MODEL),
    "schedule": _option(str, "constant, inverse or inverse-sqrt.", _MODEL),
    "decay": _option(float, "How fast the schedule falls.", _MODEL),
    "l1": _option(float, "L1 penalty.", _MODEL),
    "l2": _option(float, "L2 penalty.", _MODEL),
    "class_weight": _option(
        str, "What rows of label 0 and of label 1 count, from 0 to 1, as 0.2,1. Public.", _MODEL
    ),
    "mechanism": _option(
        str,
        "What protects the labels: sealed (the default), label-rr, none, add, mult or hybrid.",
        _PROTECTION,
    ),
    "epsilon": _option(float, "The privacy parameter the paper names (hybrid: 1).", _PROTECTION),
    "noise": _option(
        str, "discrete (exact, on the grid) or continuous (as printed; leaky).", _PROTECTION
    ),
    "variant": _option(str, "mult: printed, one-sided or mean-one.", _PROTECTION),
    "b1": _option(float, "mult: residues are clipped to at least this size (0.1).", _PROTECTION),
    "b2": _option(float, "mult: outputs are clipped to at most this size (10).", _PROTECTION),
    "subset_size": _option(int, "hybrid: rows among which the batch hides; or", _PROTECTION),
    "l_rr": _option(int, "hybrid: how many of them Alice scores, on average.", _PROTECTION),
    "bob_update": _option(
        str, "add, mult: Bob's own weights learn from released or true residues.", _PROTECTION
    ),
    "over": _option(
        str, "label-rr: the conversation on the flipped labels: none or sealed.", _PROTECTION
    ),
    "reveal": _option(
        bool, "sealed: Bob reveals Alice's weights at the end: a release.", _PROTECTION, "--reveal"
    ),
    "dither": _option(
        float, "sealed: noise up to this size that Alice adds to her scores (0).", _PROTECTION
    ),
    "fresh_keys": _option(
        bool, "sealed: a new key for each of Bob's messages.", _PROTECTION, "--fresh-keys"
    ),
    "budget": _option(
        float, "Stop before a label's epsilon, summed over releases, exceeds this.", _PROTECTION
    ),
    "delta": _option(float, "The delta of the tighter total in the ledger (1e-6).", _PROTECTION),
    "scheme": _option(
        str, "bfv, paillier, or clear (no protection: simulation only).", _PROTECTION
    ),
    "key_bits": _option(
        int, "Key size: 3072 or 2048 for paillier; bfv has 128-bit security.", _PROTECTION
    ),
    "feature_bits": _option(int, "Binary digits of a feature (16).", _PROTECTION),
    "residue_bits": _option(int, "Binary digits of a residue (20).", _PROTECTION),
    "seed": _option(int, "Repeatable simulation; no protection against who knows it.", _RUN),
    "seeds": _option(int, "Run this many seeds, from --seed or 0 on, and report means.", _RUN),
    "permute_labels": _option(
        bool, "Canary run: shuffle the labels before training.", _RUN, "--permute-labels"
    ),
    "config": _option(Path, "A TOML file with any of these settings.", _RUN),
    "record": _option(Path, "Write the transcript to this file.", _RUN),
}


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the shared options; it receives those that were set in ``settings``."""
    own = [
        parameter
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != "settings"
    ]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in SHARED.items()
    ]

    @wraps(command)
    def run(**values: object) -> None:
        mine = {each.name: values.pop(each.name) for each in own}
        command(settings=merged(values), **mine)

    keyword_only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    run.__signature__ = inspect.Signature(keyword_only + shared)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in keyword_only + shared}
    del run.__dict__["__wrapped__"]
    return run


def merged(values: dict[str, object]) -> dict[str, object]:
    """Lays the options that were given over the file's keys."""
    config = values.pop("config", None)
    given = {key: value for key, value in values.items() if value is not None}
    if not isinstance(config, Path):
        return given
    base = {key.replace("-", "_"): value for key, value in Settings.read_toml(config).items()}
    return {**base, **given}
