"""Operator's log of one JSON object a line, and the figures of a training.

Neither holds a secret: no label, no score, no weight, no key, no frame; rows are counted, not
named. Losses are Bob's own, and stand in Bob's files only: all files are their owner's alone.
"""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.data.label_table import LabelTable
from taciturn.engine.callbacks import Announce
from taciturn.families.registry import BINOMIAL
from taciturn.files import append_private, reporting_write_errors
from taciturn.numerics.label_metrics import labels_loss
from taciturn.numerics.metrics import Metrics
from taciturn.numerics.row_changes import RowChanges
from taciturn.party.config import PartyConfig
from taciturn.party.link import Traffic
from taciturn.protocol.events import Event, HeldOutSeen, Progress
from taciturn.protocol.outcome import Trained
from taciturn.results.parties import CurvePoint, PartyFigures


class Log:
    """Appends to a log file, and calls ``announce`` with each event in words."""

    def __init__(self, path: Path | None, role: str, announce: Announce) -> None:
        self._path, self._role, self._announce = path, role, announce

    @classmethod
    def from_config(cls, config: PartyConfig, announce: Announce) -> Log:
        """The log that a party's file names."""
        name = config.output.log
        return cls(config.path(name) if name else None, config.role, announce)

    def __call__(self, event: str, **facts: Any) -> None:  # noqa: ANN401 - JSON
        """Notes an event."""
        self._announce(event if not facts else f"{event}: {_in_words(facts)}")
        if self._path is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "role": self._role, "event": event, **facts})
        with reporting_write_errors(self._path, "log"):
            append_private(self._path, line + "\n")


def on_change(say: Announce) -> Announce:
    """Callback that skips a text equal to the last one.

    >>> say = on_change(print)
    >>> for text in ("a", "a", "b", "a"):
    ...     say(text)
    a
    b
    a
    """
    last = [""]

    def say_new(text: str) -> None:
        if text != last[0]:
            last[0] = text
            say(text)

    return say_new


def _in_words(facts: dict[str, Any]) -> str:
    # What a note is about, or why a session is aborted, needs no name.
    names = {
        name: "" if name in ("about", "reason") else f"{name.replace('_', ' ')} " for name in facts
    }
    return ", ".join(f"{names[name]}{value}" for name, value in facts.items())


class Figures:
    """Follows a training: how far, how fast, how good. Any thread may ask.

    ``labels`` are Bob's, for the loss; ``class_weight`` is what a row of label 0 and one of label 1
    counts.
    """

    def __init__(
        self,
        labels: LabelTable | None,
        per_epoch: int,
        log: Log,
        class_weight: tuple[float, float] | None = None,
    ) -> None:
        self._labels, self._log = labels, log
        self._class_weight = class_weight
        self._per_epoch = per_epoch
        self._losses: list[float] = []
        # After a restart there is no pass to compare the first one with.
        self._row_changes = RowChanges(BINOMIAL if labels is None else labels.family)
        self._start = time.monotonic()
        # Who tells of them does so in a thread of its own.
        self._lock = threading.RLock()
        # When the first progress was seen, and how far it was: a resumed training begins later.
        self._first: tuple[float, int] | None = None
        self.curve: list[dict[str, float | int]] = []
        self.figures: dict[str, Any] = {"iterations": 0, "iterations_total": None}

    def observe(self, event: Event) -> None:
        """Takes note of an event."""
        if isinstance(event, Progress):
            with self._lock:
                self.figures["iterations"] = event.done
                self.figures["iterations_total"] = event.total
                self._first = self._first or (time.monotonic(), event.done)
                self._note_loss(event)
        elif isinstance(event, HeldOutSeen):
            held_out = {"held_out_loss": event.metrics.loss}
            if isinstance(event.metrics, Metrics):
                held_out["held_out_auc"] = event.metrics.auc
            done = event.iteration + 1
            with self._lock:
                self._point(done).update(held_out)
            self._log("held-out rows evaluated", iteration=done, **_rounded(held_out))

    def finish(self, trained: Trained) -> None:
        """Takes note of the training's end."""
        with self._lock:
            self.figures["iterations"] = trained.iterations
        if trained.stopped is not None:
            self._log(
                "training ended early", iteration=trained.iterations, reason=trained.stopped.value
            )

    def _note_loss(self, event: Progress) -> None:
        if self._labels is None:
            return
        # An empty hidden batch has no loss; it may be the last of an epoch.
        if len(event.scores):
            loss = labels_loss(event.scores, self._labels, self._class_weight, event.rows)
            self._losses.append(loss)
        if not self._losses:
            return
        self.figures["loss_recent"] = float(np.mean(self._losses))
        if event.done % self._per_epoch == 0:
            self._point(event.done)["train_loss"] = self.figures["loss_recent"]
            self._losses = []
        if event.objective is not None:
            self._point(event.done)["objective"] = event.objective
        change = None if event.rows is not None else self._row_changes.note(event.scores)
        if change is not None:
            self._point(event.done)["row_change"] = change

    def _point(self, iteration: int) -> dict[str, float | int]:
        if not self.curve or self.curve[-1]["iteration"] != iteration:
            self.curve.append({"iteration": iteration})
        return self.curve[-1]

    def to_json(self) -> dict[str, Any]:
        """Figures for a checkpoint."""
        return {"curve": self.curve, "losses": self._losses}

    def restore(self, record: dict[str, Any]) -> None:
        """Resumes from a checkpoint."""
        self.curve, self._losses = list(record["curve"]), list(record["losses"])

    def _remaining(self) -> float | None:
        """Seconds left at the pace since the first progress; None before there is one."""
        done, total = self.figures["iterations"], self.figures["iterations_total"]
        if self._first is None or total is None or not self._first[1] < done < total:
            return None
        since, before = self._first
        return float((time.monotonic() - since) * (total - done) / (done - before))

    def so_far(self, traffic: Traffic) -> PartyFigures:
        """The figures so far."""
        now = time.monotonic()
        seconds, waited = now - (traffic.since or self._start), traffic.waited(now)
        with self._lock:
            return PartyFigures(
                **self.figures,
                curve=tuple(_curve_point(point) for point in self.curve),
                seconds=seconds,
                waiting_seconds=waited,
                computing_seconds=seconds - waited,
                remaining_seconds=self._remaining(),
                frames_sent=traffic.sent,
                frames_received=traffic.received,
                bytes_sent=traffic.bytes_sent,
                bytes_received=traffic.bytes_received,
                links=traffic.links,
            )


def _curve_point(point: dict[str, float | int]) -> CurvePoint:
    losses = {name: value for name, value in point.items() if name != "iteration"}
    return CurvePoint(int(point["iteration"]), **losses)


def _rounded(facts: dict[str, float | int]) -> dict[str, float | int]:
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in facts.items()
    }
