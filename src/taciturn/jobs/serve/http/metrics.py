"""What the service has done, in the text format that Prometheus reads; no value of any row.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from taciturn.jobs.serve.batcher import BUCKETS, BatcherStats, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_P = "taciturn_serve_"


@dataclass(slots=True)
class ServiceFigures:
    """Counts since the start.

    ``rows`` are counted by what became of them: scored, or the code of the refusal.
    """

    requests: Counter[int] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    seconds: Histogram = field(default_factory=Histogram)


def service_exposition(
    figures: ServiceFigures, batcher: BatcherStats, active: int, session: str
) -> str:
    """The service's metrics in Prometheus' text format."""
    statuses = {f'status="{status}"': count for status, count in sorted(figures.requests.items())}
    results = {f'result="{name}"': count for name, count in sorted(figures.rows.items())}
    up, model = int(batcher.connected), f'model="{session}"'
    lines = [
        *_metric("info", "gauge", "Which model is served; always 1.", {model: 1}),
        *_metric("requests_total", "counter", "Requests, by status.", statuses),
        *_metric(
            "rows_total", "counter", "Rows that were asked for, by what became of them.", results
        ),
        *_histogram("request_seconds", "How long requests for scores took.", figures.seconds),
        *_histogram("round_seconds", "How long rounds with the partner took.", batcher.seconds),
        *_metric("requests_active", "gauge", "Requests under way.", {"": active}),
        *_metric("partner_up", "gauge", "1 while the partner is there.", {"": up}),
        *_metric("meetings_total", "counter", "Meetings with the partner.", {"": batcher.meetings}),
        *_metric("rounds_total", "counter", "Rounds with the partner.", {"": batcher.rounds}),
        *_metric("jobs_retried_total", "counter", "Jobs asked again.", {"": batcher.retried}),
    ]
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, meaning: str, samples: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {_P}{name} {meaning}"
    yield f"# TYPE {_P}{name} {kind}"
    for labels, value in samples.items():
        yield f"{_P}{name}{{{labels}}} {value}" if labels else f"{_P}{name} {value}"


def _histogram(name: str, meaning: str, of: Histogram) -> Iterator[str]:
    yield from _metric(name, "histogram", meaning, {})
    total = 0
    for end, count in zip((*BUCKETS, "+Inf"), of.counts, strict=True):
        total += count
        yield f'{_P}{name}_bucket{{le="{end}"}} {total}'
    yield f"{_P}{name}_sum {of.total}"
    yield f"{_P}{name}_count {total}"
