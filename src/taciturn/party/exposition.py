"""``exposition``: a party's figures in the text format that Prometheus reads.

The file stands beside the metrics file, and holds the same and what an alert needs besides: when it
was written, whether links stand, how the command ended. At Alice it has no loss. Times are seconds
since 1970. Lines have no timestamp of their own, which a textfile collector would refuse.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from taciturn.results.live import LinkState, Setup
from taciturn.results.parties import PartyFigures

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


@dataclass(slots=True)
class LinkSeen:
    """The link to one peer: its state, and how often it was connected since this start."""

    state: LinkState = "waiting"
    connections: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """All that a file publishes; times are seconds since 1970."""

    setup: Setup
    started: float
    written: float
    figures: PartyFigures | None = None
    links: Mapping[str, LinkSeen] = field(default_factory=dict)
    checkpoint: float | None = None
    exit_code: int | None = None


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


def exposition(standing: Standing) -> str:
    """A whole file.

    Invariant: of a party that is not Bob, no metric that depends on labels is in it.
    """
    bob = standing.setup.identity.role == "bob"
    values: dict[str, list[tuple[Labels, float]]] = {}
    for name, labels, value in _samples(standing):
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


def _samples(standing: Standing) -> Iterator[tuple[str, Labels, float]]:
    identity = standing.setup.identity
    side = {"role": identity.role, "peer": identity.peer}
    about = {
        "mechanism": identity.mechanism,
        "scheme": identity.scheme,
        "solver": standing.setup.solver,
        "version": identity.version,
    }
    yield "info", {**side, **about}, 1
    yield "running", side, standing.exit_code is None
    if standing.exit_code is not None:
        yield "exit_code", side, standing.exit_code
    yield "started_timestamp_seconds", side, standing.started
    yield "written_timestamp_seconds", side, standing.written
    for peer, link in standing.links.items():
        one = {"role": identity.role, "peer": peer}
        yield "link_up", one, link.state == "connected"
        yield "connections_total", one, link.connections
        yield "reconnections_total", one, max(0, link.connections - 1)
    if standing.checkpoint is not None:
        yield "checkpoint_timestamp_seconds", side, standing.checkpoint
    if standing.figures is not None:
        for name, value in _of_figures(standing.figures):
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
    r"""Labels as they stand between braces.

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
