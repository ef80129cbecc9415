"""The observer ``dashboard``: serves the live page of a command (entry point)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taciturn_ops.dashboard.dashboard_state import BobDashboardState, DashboardState, Side
from taciturn_ops.dashboard.server import open_server


def page(
    command: str,
    side: Side,
    peer: str,
    facts: tuple[tuple[str, str], ...],
) -> DashboardState:
    """Page of a command; Alice's has no field for what depends on labels."""
    kind = DashboardState if side == "alice" else BobDashboardState
    return kind(command, side, peer, facts=facts)


@contextmanager
def serve(state: DashboardState, port: int | None, file: Path | None) -> Iterator[tuple[str, str]]:
    """Serve the page until the command ends; gives its address, and a remark about it."""
    server, remark = open_server(state, port, file)
    with server.serving():
        try:
            yield server.address.url, remark
        except BaseException as problem:
            state.end(problem)
            raise
        state.end(None)
