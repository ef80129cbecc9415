"""``--watch`` and ``--watch-port``: the live dashboard of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import Meter, progress_bar
from taciturn.errors import ConfigError
from taciturn.files import settings_home
from taciturn.party.observers import dashboard

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig

Watch = Annotated[
    bool,
    typer.Option("--watch", help="Serve a live dashboard on localhost and print its URL."),
]
WatchPort = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        help="Serve the live dashboard on this port, so that its URL stays the same.",
        hidden=True,
    ),
]


@contextmanager
def watched_bar(
    command: str, watch: bool, port: int | None, facts: dict[str, object] | None = None
) -> Iterator[Meter]:
    """Progress bar and, with ``watch`` or a port, a live page of both sides in one process."""
    named = tuple((name, str(value)) for name, value in (facts or {}).items())
    with _watched("", watch, port, (command, "both", "", named), None) as meter:
        yield meter


@contextmanager
def watched_side(
    command: str, watch: bool, port: int | None, config: PartyConfig
) -> Iterator[Meter]:
    """Progress bar and live page of one side; the state folder keeps its address.

    Without a ``port`` the page uses the last one again, or any.
    """
    file = config.path(config.state.folder) / "watch.json"
    with _watched(config.role, watch, port, (command, config.role, config.peer, ()), file) as meter:
        yield meter


@contextmanager
def _watched(
    name: str,
    watch: bool,
    port: int | None,
    title: tuple[str, str, str, tuple[tuple[str, str], ...]],
    file: Path | None,
) -> Iterator[Meter]:
    if not watch and port is None:
        with progress_bar(name) as meter:
            yield meter
        return
    observer = dashboard()
    page = observer.page(*title)
    with (
        progress_bar(name, page) as meter,
        observer.serve(page, port, file or _own_file(port)) as (address, remark),
    ):
        if remark:
            meter.say(remark)
        meter.print(f"live page: {address}")
        yield meter


def _own_file(port: int | None) -> Path | None:
    if port is None:
        return None
    try:
        return settings_home() / "taciturn" / f"watch-{port}.json"
    except RuntimeError:
        raise ConfigError(
            "this account has no home folder for the live page's address",
            where="--watch-port",
            hint="use --watch alone, or set XDG_CONFIG_HOME",
        ) from None
