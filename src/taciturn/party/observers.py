"""Observers of a running command, from other distributions (entry point ``taciturn.observers``).

An observer sees what a command publishes and decides nothing: no command and no job knows which
there are. Three kinds of entry point are in the group:

- ``dashboard`` opens the live page that ``--watch`` asks for; it is loaded only then.
- ``model-page`` acts once Bob's training is done, and is loaded only then.
- Any other is called with a party's settings when its run begins and returns a ``PartyObserver``,
  or None where the settings ask for nothing of it. ``metrics`` is loaded where they name its file.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from taciturn.extensions import OBSERVERS, Extension, installed
from taciturn.extras import OPS, RISK, not_installed

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig
    from taciturn.party.telemetry import Standing
    from taciturn.protocol.events import Event
    from taciturn.results.parties import News

DASHBOARD, METRICS, MODEL_PAGE = "dashboard", "metrics", "model-page"


class PartyObserver(Protocol):
    """Observer of one side's run."""

    def begin(self) -> None:
        """Prepare, before the first snapshot."""

    def write(self, snapshot: Standing) -> None:
        """Take a snapshot of the run, every two seconds and at its end; may raise OutputError."""

    def finish(self, file: Path) -> str:
        """Act once a training is done, given the party's file; return a remark, or nothing."""


class LivePage(Protocol):
    """The page that shows a running command."""

    def observe(self, event: Event) -> None:
        """Show an event of a program."""

    def announce(self, activity: str) -> None:
        """Show what runs now."""

    def publish(self, news: News) -> None:
        """Show figures, link states and costs."""

    def say(self, line: str) -> None:
        """Show a line."""

    def progress(self, done: int, total: int) -> None:
        """Show the fraction that is done."""

    def end(self, problem: BaseException | None) -> None:
        """Show how the command ended."""


class Dashboard(Protocol):
    """The observer ``dashboard``."""

    def page(
        self, command: str, side: str, peer: str, facts: tuple[tuple[str, str], ...]
    ) -> LivePage:
        """Page of a command; a side's own, or of both in one process."""

    def serve(
        self, page: LivePage, port: int | None, file: Path | None
    ) -> AbstractContextManager[tuple[str, str]]:
        """Serve the page; gives its address, and a remark about it, which may be empty."""


def dashboard() -> Dashboard:
    """The live page's observer; a ConfigError names the distribution that has it."""
    for entry in installed(OBSERVERS):
        if entry.name == DASHBOARD:
            return cast("Dashboard", entry.load())
    raise not_installed("the live page (--watch)", OPS)


def require_observers(config: PartyConfig) -> None:
    """Raise ConfigError where the settings name a file that only an absent observer writes."""
    names = {entry.name for entry in installed(OBSERVERS)}
    if config.output.metrics is not None and METRICS not in names:
        where = f"{config.where}, [output] metrics"
        raise not_installed("the metrics file ([output] metrics)", OPS).at(where)


def party_observers(config: PartyConfig) -> tuple[PartyObserver, ...]:
    """Observers of a run that are installed and that a party's settings ask for.

    Raises ConfigError where the settings name a file that only an absent observer writes.
    """
    require_observers(config)
    # Nothing of another distribution is loaded that a run has no use for.
    unasked = {DASHBOARD, MODEL_PAGE} | ({METRICS} if config.output.metrics is None else set())
    entries = {entry.name: entry for entry in installed(OBSERVERS) if entry.name not in unasked}
    return tuple(filter(None, (_observer(entry, config) for entry in entries.values())))


def _observer(entry: Extension, config: PartyConfig) -> PartyObserver | None:
    kind = cast("type[_FromConfig]", entry.load())
    with entry.blamed("fails"):
        return kind.from_config(config)


def remarks_after(config: PartyConfig, file: Path) -> list[str]:
    """Remarks of the observers after a training, once everything else is done."""
    remarks = [observer.finish(file) for observer in party_observers(config)]
    if config.role == "bob" and config.output.report != "":
        page = next((entry for entry in installed(OBSERVERS) if entry.name == MODEL_PAGE), None)
        if page is None:
            absent = not_installed("it", RISK)
            remarks += [f"the model's page was not made: {absent.message}; {absent.hint}"]
        elif (observer := _observer(page, config)) is not None:
            remarks += [observer.finish(file)]
    return [remark for remark in remarks if remark]


class _FromConfig(PartyObserver, Protocol):
    @classmethod
    def from_config(cls, config: PartyConfig) -> PartyObserver | None: ...
