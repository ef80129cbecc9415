"""The commands of a real training between two machines: files to begin with, and one side."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import Json, console, progress_bar, show
from taciturn.errors import ConfigError, PeerStopped, shown_by
from taciturn.files import require_writable, to_json
from taciturn.settings.schema import DEFAULT_MECHANISM

if TYPE_CHECKING:
    from taciturn.deploy.config import PartyConfig
    from taciturn.engine.callbacks import Callbacks
    from taciturn.report.blocks import Block
    from taciturn.results.parties import DryRun, PartyRun


def init(
    folder: Annotated[Path, typer.Option(help="The folder to write to.")] = Path(),
    mechanism: Annotated[str, typer.Option(help="What protects the labels.")] = DEFAULT_MECHANISM,
    serves: Annotated[
        str, typer.Option(help="Which side listens on a port: alice or bob.")
    ] = "bob",
    address: Annotated[
        str, typer.Option(help="Where the other side reaches it, as host:port.")
    ] = "localhost:9443",
    alice_table: Annotated[str | None, typer.Option(help="Alice's table, for her file.")] = None,
    bob_table: Annotated[str | None, typer.Option(help="Bob's table, for his file.")] = None,
    id: Annotated[
        str | None, typer.Option(help="The column that names the rows, in both tables.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Bob's column of labels.")] = None,
    json: Json = False,
) -> None:
    """Write commented settings for both sides of a training between two machines.

    [bold]Examples[/bold]

    taciturn init --folder trial --mechanism add --address bob.example:9443

    taciturn init --alice-table telco.csv --bob-table bank.csv --id customer --label defaulted
    """
    # Imported here: no other command needs it.
    from taciturn.deploy.templates import Trial, write_templates
    from taciturn.deploy.transport.address import check_address
    from taciturn.privacy.registry import mechanism_class

    chosen = mechanism_class(mechanism)
    if serves not in ("alice", "bob"):
        raise ConfigError(f"unknown side {serves}", where="--serves", hint="use alice or bob")
    check_address(address, where="--address")
    side: Any = serves
    given: dict[Any, str | None] = {"alice": alice_table, "bob": bob_table}
    tables = {role: table for role, table in given.items() if table is not None}
    trial = Trial(mechanism, side, address, tables=tables, id=id, label=label)
    written = write_templates(folder, trial)
    record = {"files": [str(path) for path in written]}
    if json:
        typer.echo(to_json(record))
        return
    screen = console()
    for path in written:
        screen.print(f"wrote {path}", markup=False)
    naming = "" if len(tables) == 2 else "name each side's table in its file, "
    screen.print(
        f"Next: {naming}make certificates (taciturn certs), send each side its own file and "
        "certificates, and run taciturn party FILE --dry-run on both; before that, "
        "where the tables differ in rows, taciturn align FILE.",
        markup=False,
    )
    if not chosen.claims_protection:
        screen.print(
            f"Note: {mechanism} gives labels no protection; taciturn check FILE shows what Alice "
            "can learn, and Bob's side begins only with accept-leak in his [privacy].",
            markup=False,
        )


def party(
    config: Annotated[
        Path, typer.Argument(help="This side's TOML file; taciturn init writes one.")
    ],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Meet the peer, compare certificates, versions, settings and rows, and stop.",
        ),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard an unfinished session and start a new one.")
    ] = False,
    record: Annotated[
        Path | None, typer.Option(help="Write the transcript of this side to this file.")
    ] = None,
    json: Json = False,
) -> None:
    """Run one side of a training between two machines; run it again to resume.

    [bold]Examples[/bold]

    taciturn party bob.toml --dry-run

    taciturn party bob.toml
    """
    # Imported here: the transport takes a second to load, and no other command needs it.
    from taciturn.deploy.config import PartyConfig
    from taciturn.deploy.train import Party
    from taciturn.deploy.way import way_to_peer

    settings = PartyConfig.read(config)
    output = settings.output
    require_writable(*map(settings.path, output.files), record)
    with (
        shown_by(settings.face),
        stoppable(),
        _going_on(dry_run),
        shown(settings) as callbacks,
        way_to_peer(settings, callbacks.announce) as endpoint,
    ):
        side = Party.of(settings, endpoint, callbacks, dry_run=dry_run)
        result = side.dry_run() if dry_run else side.run(record=record, fresh=fresh)
    show(result, json, _blocks)


def _blocks(result: PartyRun | DryRun) -> list[Block]:
    """Loaded only where a person reads: with ``--json`` a party loads no report."""
    from taciturn.report.parties import party_blocks

    return party_blocks(result)


@contextmanager
def _going_on(dry_run: bool) -> Iterator[None]:
    """Says after a stop what comes next."""
    try:
        yield
    except KeyboardInterrupt:
        if not dry_run:
            print("stopped; run the same command again on both sides to resume", file=sys.stderr)
        raise
    except PeerStopped as problem:
        raise PeerStopped(
            problem.message,
            where=problem.where,
            hint="fix what it reports, then run both sides again: the training resumes where it "
            "stopped",
        ) from None


@contextmanager
def shown(settings: PartyConfig) -> Iterator[Callbacks]:
    """Shows what happens on one side while it waits for the peer and works with it."""
    from taciturn.deploy.link import BROKEN, CONNECTED
    from taciturn.deploy.log import Log, on_change
    from taciturn.deploy.transport.corelog import handshake_reasons
    from taciturn.engine.callbacks import Callbacks

    link = settings.link
    waiting = f"waiting for {settings.peer}, {link.connect_seconds:g} s at most"
    with progress_bar(settings.role) as meter:
        meter.announce(waiting)

        def announce(text: str) -> None:
            if text == CONNECTED:
                meter.announce(f"connected to {settings.peer}")
            elif text == BROKEN:
                meter.announce(waiting)
            meter.say(text)

        log = Log.of(settings, announce)
        failed = on_change(lambda why: log("a connection failed in its handshake", reason=why))
        # Why callers fail before they are callers, which the side that calls has none of; this
        # command owns its process.
        listens = link.listen is not None
        with handshake_reasons(failed if listens else None, for_good=True):
            yield Callbacks(announce, meter.observe, meter.progress)


@contextmanager
def stoppable() -> Iterator[None]:
    """A request to end ends as an interrupt does: the peer is told, and the state is kept."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
