"""A worker process of a simulated study: trains one model after the other on the same tables.

It receives the tables, with the fold of each training row, and then each training as JSON; it
replies with the training's record, or why there is none. It ends when the connection does.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress
from dataclasses import astuple, replace
from itertools import product
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import Preparation
from taciturn.data.split import VerticalData
from taciturn.data.tables import FeatureTable
from taciturn.errors import TaciturnError
from taciturn.families.base import Response
from taciturn.jobs.train.simulation import simulate_search, simulate_training
from taciturn.protocol.terms import SummedLosses
from taciturn.results.serialise import record_of
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy

_FEATURES = ("alice_train", "bob_train", "alice_test", "bob_test")
_LABELS = ("labels_train", "labels_test")
_BESIDE = ("exposure", "weights")


def to_bytes(data: VerticalData, folds: IndexArray) -> bytes:
    """Columns, labels and folds; ids become numbers, and the preparation is left out."""
    stream = io.BytesIO()
    facts = {
        "columns": {name: getattr(data, name).columns for name in _FEATURES},
        "held_out": data.held_out,
        "family": data.labels_train.family,
        "response": astuple(data.labels_train.response),
        "alices": [[name, place.start, place.stop] for name, place in data.alices],
    }
    arrays: dict[str, Any] = {name: getattr(data, name).values for name in (*_FEATURES, *_LABELS)}
    for name, part in product(_LABELS, _BESIDE):
        if getattr(getattr(data, name), part) is not None:
            arrays[f"{name}.{part}"] = getattr(getattr(data, name), part)
    text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    np.savez(stream, facts=text, folds=folds, **arrays)
    return stream.getvalue()


def from_bytes(content: bytes) -> tuple[VerticalData, IndexArray]:
    """Inverse of ``to_bytes``."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        facts = json.loads(arrays["facts"].tobytes())
        ids = {name[-5:]: RowIds.numbered(len(arrays[name])) for name in _LABELS}
        tables: dict[str, Any] = {
            name: FeatureTable(ids[name[-5:]], tuple(facts["columns"][name]), arrays[name])
            for name in _FEATURES
        }
        response = Response(*facts["response"])
        for name in _LABELS:
            exposure, weights = (arrays.get(f"{name}.{part}") for part in _BESIDE)
            rows, family = ids[name[-5:]], facts["family"]
            tables[name] = LabelTable(rows, arrays[name], family, exposure, weights, response)
        data = VerticalData(
            **tables,
            preparation=Preparation(()),
            notes=(),
            held_out=facts["held_out"],
            alices=tuple((name, slice(start, stop)) for name, start, stop in facts["alices"]),
        )
        return data, arrays["folds"]


def without_fold(data: VerticalData, folds: IndexArray, fold: int) -> VerticalData:
    """The training rows without those of a fold, which are held out instead."""
    inside = folds == fold
    rest, judged = np.flatnonzero(~inside), np.flatnonzero(inside)
    return replace(
        data,
        alice_train=data.alice_train.take(rest),
        bob_train=data.bob_train.take(rest),
        labels_train=data.labels_train.take(rest),
        alice_test=data.alice_train.take(judged),
        bob_test=data.bob_train.take(judged),
        labels_test=data.labels_train.take(judged),
        held_out=True,
    )


def train(training: dict[str, Any], data: VerticalData, folds: IndexArray) -> dict[str, Any]:
    """The records of a training's models; of a fold, without its rows, which are tested on instead.

    ``penalties`` are those of several models that share a search. Where a sum judges a training its
    shares come with the record.
    """
    if training["fold"] is not None:
        data = without_fold(data, folds, training["fold"])
    settings, entropy = (
        Settings.from_mapping(training["settings"]),
        RunEntropy.for_seed(training["seed"]),
    )
    try:
        if training["penalties"]:
            runs = simulate_search(settings, data, entropy, training["penalties"])
            return {"runs": [record_of(run) for run in runs]}
        summed = None if training["summed"] is None else SummedLosses(*training["summed"])
        outcome = simulate_training(settings, data, entropy=entropy, summed=summed)
        return {"runs": [record_of(outcome.result)], "loss_shares": outcome.loss_shares}
    except TaciturnError as problem:
        return {"problem": problem.message, "hint": problem.hint}


def main() -> None:
    """Train over the connection whose file descriptor is the only argument."""
    with Connection(int(sys.argv[1])) as channel, suppress(EOFError, BrokenPipeError):
        data, folds = from_bytes(channel.recv_bytes())
        while True:
            training = json.loads(channel.recv_bytes())
            channel.send_bytes(json.dumps(train(training, data, folds)).encode())


if __name__ == "__main__":
    main()
