"""What a person sees while a command runs: progress on standard error, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from taciturn.files import to_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from taciturn.protocol.events import Event
    from taciturn.report.blocks import Block
    from taciturn.results.serialise import Result

WIDTH = 100
T = TypeVar("T", bound="Result | Mapping[str, Any]")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def show(result: T, as_json: bool, blocks: Callable[[T], Iterable[Block]]) -> None:
    """Prints a result: as JSON, or as blocks.

    Args:
        result: What a command gave.
        as_json: Whether to print its record.
        blocks: Makes blocks of it.
    """
    if as_json:
        typer.echo(to_json(result if isinstance(result, Mapping) else result.to_dict()))
        return
    from taciturn.report.terminal import render

    console().print(render(blocks(result)))


def console(*, error: bool = False) -> Console:
    """A console no wider than 100 columns; colours only on a terminal."""
    default = Console(stderr=error, highlight=False)
    return (
        Console(stderr=error, highlight=False, width=min(default.width, WIDTH))
        if default.is_terminal
        else Console(stderr=error, highlight=False, width=WIDTH)
    )


class Meter:
    """Turns a run's events into a progress bar."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task = None if progress is None else progress.add_task("training", total=None)

    def observe(self, event: Event) -> None:
        """Shows how far a training, a prediction or an alignment is."""
        from taciturn.protocol.events import Advance

        if isinstance(event, Advance) and self._progress and self._task is not None:
            self._progress.update(
                self._task, description=event.work, completed=event.done, total=event.total
            )

    def announce(self, activity: str) -> None:
        """Shows what runs now."""
        if self._progress and self._task is not None:
            self._progress.update(self._task, description=activity, completed=0, total=None)

    def say(self, line: str) -> None:
        """Shows a line above the bar; without a terminal it goes to standard error as it is."""
        if self._progress is not None:
            self._progress.console.print(line, markup=False, style="dim")
        else:
            print(line, file=sys.stderr, flush=True)

    def progress(self, done: int, total: int) -> None:
        """Shows how much of it is done."""
        if self._progress and self._task is not None:
            self._progress.update(self._task, completed=done, total=total)


@contextmanager
def progress_bar() -> Iterator[Meter]:
    """A bar with the time left, on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield Meter(None)
        return
    # Loaded here: without a terminal there is no bar.
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        yield Meter(progress)
