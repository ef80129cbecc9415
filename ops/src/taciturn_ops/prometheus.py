"""Metrics of a running party in files: JSON, and Prometheus' text format.

Both files are rewritten every two seconds. So a file that is not written any more is one of a
process that has gone, and not of one that waits.

The file for Prometheus is next to the metrics file, and holds the same and what an alert needs
besides: when it was written, whether links stand, how the command ended. At Alice it has no loss.
Times are seconds since 1970. Lines have no timestamp of their own, which a textfile collector would
refuse.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from taciturn.files import remove_unfinished, write_private
from taciturn.party.config import PartyConfig
from taciturn.party.telemetry import Standing
from taciturn.results.parties import PartyFigures
from taciturn.results.serialise import record_of

Kind: TypeAlias = Literal["counter", "gauge"]
Labels: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metric:
    """A name that a file may hold.

    A counter only rises, until the command is started again. ``bob`` says whether the metric
    depends on labels: Alice's file never has it.
    """

    name: str
    kind: Kind
    meaning: str
    bob: bool = False


_P = "taciturn_"
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(f"{_P}info", "gauge", "What runs, in labels; always 1."),
        Metric(f"{_P}running", "gauge", "1 while the command runs, 0 once it has ended."),
        Metric(f"{_P}exit_code", "gauge", "How the command ended; absent while it runs."),
        Metric(f"{_P}started_timestamp_seconds", "gauge", "When the command was started."),
        Metric(f"{_P}written_timestamp_seconds", "gauge", "When this file was written."),
        Metric(f"{_P}link_up", "gauge", "1 while the link to the peer stands, else 0."),
        Metric(f"{_P}connections_total", "counter", "Connections to the peer since this start."),
        Metric(f"{_P}reconnections_total", "counter", "Connections after the first one."),
        Metric(f"{_P}iterations_done", "gauge", "Iterations, or passes, that are finished."),
        Metric(f"{_P}iterations_planned", "gauge", "How many there are, unless it ends early."),
        Metric(f"{_P}progress_ratio", "gauge", "How far the training is, from 0 to 1."),
        Metric(f"{_P}remaining_seconds", "gauge", "What is left at the pace since this start."),
        Metric(f"{_P}sent_bytes_total", "counter", "Bytes of frames sent since this start."),
        Metric(f"{_P}received_bytes_total", "counter", "Bytes of frames received."),
        Metric(f"{_P}sent_frames_total", "counter", "Frames sent since this start."),
        Metric(f"{_P}received_frames_total", "counter", "Frames received since this start."),
        Metric(f"{_P}waiting_seconds_total", "counter", "Seconds spent waiting for the peer."),
        Metric(f"{_P}computing_seconds_total", "counter", "The other seconds since it connected."),
        Metric(f"{_P}checkpoint_timestamp_seconds", "gauge", "When the last checkpoint was made."),
        Metric(f"{_P}loss_recent", "gauge", "Mean training loss of this epoch so far.", bob=True),
        Metric(f"{_P}train_loss", "gauge", "Training loss of the last whole epoch.", bob=True),
        Metric(f"{_P}held_out_loss", "gauge", "Held-out loss, as last evaluated.", bob=True),
        Metric(f"{_P}held_out_auc", "gauge", "Held-out AUC, as last evaluated.", bob=True),
    )
}
"""Every metric, by name, in the order of the file."""


def exposition(snapshot: Standing) -> str:
    """Metrics of a party in Prometheus' text format.

    Invariant: of a party that is not Bob, no metric that depends on labels is in it.
    """
    bob = snapshot.setup.identity.role == "bob"
    values: dict[str, list[tuple[Labels, float]]] = {}
    for name, labels, value in _samples(snapshot):
        values.setdefault(f"{_P}{name}", []).append((labels, value))
    lines: list[str] = []
    for metric in METRICS.values():
        if metric.name in values and (bob or not metric.bob):
            lines += [f"# HELP {metric.name} {metric.meaning}"]
            lines += [f"# TYPE {metric.name} {metric.kind}"]
            lines += [
                f"{metric.name}{{{labels_text(labels)}}} {number(value)}"
                for labels, value in values[metric.name]
            ]
    return "\n".join(lines) + "\n"


def _samples(snapshot: Standing) -> Iterator[tuple[str, Labels, float]]:
    identity = snapshot.setup.identity
    side = {"role": identity.role, "peer": identity.peer}
    about = {
        "mechanism": identity.mechanism,
        "scheme": identity.scheme,
        "solver": snapshot.setup.solver,
        "version": identity.version,
    }
    yield "info", {**side, **about}, 1
    yield "running", side, snapshot.exit_code is None
    if snapshot.exit_code is not None:
        yield "exit_code", side, snapshot.exit_code
    yield "started_timestamp_seconds", side, snapshot.started
    yield "written_timestamp_seconds", side, snapshot.written
    for peer, link in snapshot.links.items():
        labels = {"role": identity.role, "peer": peer}
        yield "link_up", labels, link.state == "connected"
        yield "connections_total", labels, link.connections
        yield "reconnections_total", labels, max(0, link.connections - 1)
    if snapshot.checkpoint is not None:
        yield "checkpoint_timestamp_seconds", side, snapshot.checkpoint
    if snapshot.figures is not None:
        for name, value in _of_figures(snapshot.figures):
            yield name, side, value


def _of_figures(figures: PartyFigures) -> Iterator[tuple[str, float]]:
    yield "iterations_done", figures.iterations
    if figures.iterations_total:
        yield "iterations_planned", figures.iterations_total
        yield "progress_ratio", figures.iterations / figures.iterations_total
    if figures.remaining_seconds is not None:
        yield "remaining_seconds", figures.remaining_seconds
    yield "sent_bytes_total", figures.bytes_sent
    yield "received_bytes_total", figures.bytes_received
    yield "sent_frames_total", figures.frames_sent
    yield "received_frames_total", figures.frames_received
    yield "waiting_seconds_total", figures.waiting_seconds
    yield "computing_seconds_total", figures.computing_seconds
    if figures.loss_recent is not None:
        yield "loss_recent", figures.loss_recent
    for name in ("train_loss", "held_out_loss", "held_out_auc"):
        values = [value for point in figures.curve if (value := getattr(point, name)) is not None]
        if values:
            yield name, values[-1]


def labels_text(labels: Labels) -> str:
    r"""Labels as the text format writes them between braces.

    >>> print(labels_text({"role": "bob", "peer": 'a "quoted"\\name'}))
    role="bob",peer="a \"quoted\"\\name"
    """
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def number(value: float) -> str:
    """A value as the format spells it.

    >>> number(True), number(12), number(0.25), number(math.inf), number(math.nan)
    ('1', '12', '0.25', '+Inf', 'NaN')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, int) else repr(float(value))


@dataclass(frozen=True, slots=True)
class MetricsFiles:
    """Observer of a party's run: writes the file of ``[output] metrics``, and Prometheus' one."""

    metrics: Path
    prometheus: Path

    @classmethod
    def from_config(cls, config: PartyConfig) -> MetricsFiles | None:
        """Observer with the files that a party's settings name; None where they name none."""
        metrics, prometheus = config.output.metrics, config.output.prometheus
        if metrics is None or prometheus is None:
            return None
        return cls(config.path(metrics), config.path(prometheus))

    def begin(self) -> None:
        """Remove what an interrupted writing has left."""
        for file in (self.metrics, self.prometheus):
            # A Prometheus collector may read every file of the folder.
            remove_unfinished(file)

    def write(self, snapshot: Standing) -> None:
        """Rewrite both files."""
        if snapshot.figures is not None:
            text = json.dumps(record_of(snapshot.figures), indent=1)
            write_private(self.metrics, f"{text}\n")
        write_private(self.prometheus, exposition(snapshot))

    def finish(self, file: Path) -> str:
        """Nothing: the last snapshot has the exit code."""
        return ""
