"""The commands of an agreement that both sides sign: propose, review, sign."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from taciturn.cli.console import Json, console, progress_bar, show
from taciturn.cli.help import Command
from taciturn.cli.output import moment, typed, write_page
from taciturn.errors import ConfigError, rendering_errors_as
from taciturn.files import require_writable, to_json, write_private
from taciturn.output_paths import PathUse
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn_ops.agreement.result import AgreementRecord

agreement = typer.Typer(
    name="agreement",
    help="Propose, review and sign the agreement of both parties.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Agreement: TypeAlias = Annotated[
    Path,
    PathUse.READ,
    typer.Argument(help="The agreement's file; taciturn agreement propose writes one."),
]
_File: TypeAlias = Annotated[Path, PathUse.READ, typer.Argument(help="This side's TOML file.")]


@agreement.command(cls=Command)
def propose(
    config: _File,
    out: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="Write the agreement to this file (default: print it)."),
    ] = None,
    valid_until: Annotated[
        str | None,
        typer.Option(
            help="Date until which a training may start, such as 2026-12-31, optionally "
            "with a time."
        ),
    ] = None,
    valid_days: Annotated[
        int | None, typer.Option(min=1, help="Validity in days from now (default: 30).")
    ] = None,
    purpose: Annotated[str, typer.Option(help="Purpose in words; part of the signed text.")] = "",
    peer_certificate: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(help="The peer's certificate, whose key the agreement then names."),
    ] = None,
    hide_columns: Annotated[
        bool,
        typer.Option(
            "--hide-columns", help="Share the number of this side's columns, but not their names."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Write the agreement of a party's file, for both sides to review and sign.

    Either side may propose. Every agreed setting is written with its value, defaults too.

    Examples:
    taciturn agreement propose bob.toml > agreement.toml

    taciturn agreement propose bob.toml --out agreement.toml --purpose "Credit scoring, pilot"
    """
    # Imported here: no other command needs it.
    from taciturn.party.config import PartyConfig
    from taciturn.party.credentials import credentials_of
    from taciturn.party.tables import load_tables
    from taciturn.transport.tls import day
    from taciturn_ops.agreement.propose import proposal_text
    from taciturn_ops.agreement.propose import propose as made_by
    from taciturn_ops.agreement.result import Proposal
    from taciturn_ops.agreement.sign import lines_for, record_of_agreement

    end = _end(valid_until, valid_days)
    settings = PartyConfig.read(config)
    if out is not None and out.exists():
        raise ConfigError(
            "the file already exists, and it may be signed",
            where=str(out),
            hint="name another file with --out, or move it away",
        )
    require_writable(out)
    with rendering_errors_as(settings.syntax):
        terms = made_by(
            settings,
            load_tables(settings),
            str(out or "agreement.toml"),
            valid_until=end,
            purpose=purpose,
            peer_certificate=peer_certificate,
            hide_columns=hide_columns,
        )
    text, lines = proposal_text(terms), lines_for((out or Path("agreement.toml")).name)
    if out is not None:
        write_private(out, text, "agreement")
    if json:
        result = Proposal(
            proposed_by=credentials_of(settings).name,
            agreement=record_of_agreement(terms, {}),
            lines=lines,
            text=text if out is None else None,
            file=None if out is None else str(out),
            version=__version__,
        )
        typer.echo(to_json(result.to_dict()))
        return
    screen = console(error=out is None)
    if out is None:
        typer.echo(text, nl=False)
    else:
        screen.print(f"wrote {out}, valid until {day(terms.valid_until)}", markup=False)
    screen.print(
        "Next: review it, sign it, and send it to the other side. Signing also names it in "
        f"this side's file: {'; '.join(lines[1:])}",
        markup=False,
    )


@agreement.command(cls=Command)
def review(
    file: _Agreement,
    config: _File,
    columns: Annotated[
        int | None,
        typer.Option(
            min=1, help="Bob: number of Alice's columns, if the agreement does not state it."
        ),
    ] = None,
    html: Annotated[
        Path | None, PathUse.WRITTEN, typer.Option(help="Write the review as one HTML page.")
    ] = None,
    markdown: Annotated[
        Path | None, PathUse.WRITTEN, typer.Option(help="Write the review as Markdown.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what an agreement means for this side: who learns what, cost, time, blocking issues.

    Both adversaries are simulated on this side's own table, with a stand-in for the other side's.
    Nothing leaves this machine.

    Examples:
    taciturn agreement review agreement.toml alice.toml

    taciturn agreement review agreement.toml bob.toml --html review.html
    """
    # Imported here: no other command needs it.
    from taciturn.party.agreement_file import AgreementFile
    from taciturn_ops.agreement.report import review_page
    from taciturn_ops.agreement.review import review as made_of

    require_writable(html, markdown)
    with progress_bar() as meter:
        result = made_of(AgreementFile.read(file), config, columns, meter.announce)
    result = replace(result, version=__version__, command=typed(), made=moment())
    if html is not None or markdown is not None:
        write_page(review_page(result), html, markdown)
    show(result, json)


@agreement.command(cls=Command)
def sign(
    file: _Agreement,
    config: _File,
    yes: Annotated[bool, typer.Option("--yes", help="Sign without asking.")] = False,
    json: Json = False,
) -> None:
    """Sign an agreement with the key of this side's certificate.

    The signature is added to the file; the other side's stays. A side that has signed already
    changes nothing there. [agreement] of this side's file then names the agreement, in place of
    the settings that it held.

    Examples:
    taciturn agreement sign agreement.toml bob.toml

    taciturn agreement sign agreement.toml alice.toml --yes
    """
    # Imported here: no other command needs it.
    from taciturn.party.agreement_file import AgreementFile
    from taciturn.party.config import PartyConfig
    from taciturn_ops.agreement.sign import (
        record_of_agreement,
        require_signable,
        sign_file,
        signers_so_far,
    )

    document = AgreementFile.read(file)
    settings = PartyConfig.read(config, document)
    with rendering_errors_as(settings.syntax):
        signers = signers_so_far(settings, document)
        require_signable(config, settings, document)
        if not yes:
            _ask(record_of_agreement(document, signers), settings.role)
        result = sign_file(file, settings)
    show(result, json)


def _ask(terms: AgreementRecord, role: str) -> None:
    """Show in short what is about to be signed, and ask; only a person can answer."""
    from taciturn.report.terminal import render
    from taciturn_ops.agreement.report import short_blocks

    if not sys.stdin.isatty():
        raise ConfigError(
            "signing needs confirmation, and there is no interactive terminal",
            setting="yes",
            hint="use --yes in a script",
        )
    screen = console(error=True)
    screen.print(render(short_blocks(terms)))
    typer.confirm(f"Sign this agreement as {role}?", abort=True, err=True)


def _end(until: str | None, days: int | None) -> datetime | None:
    if until is None:
        now = datetime.now(UTC).replace(microsecond=0)
        return None if days is None else now + timedelta(days=min(days, 100_000))
    if days is not None:
        raise ConfigError(
            "the end of the agreement is given twice",
            where="--valid-days",
            hint="leave --valid-days or --valid-until out",
        )
    try:
        end = datetime.fromisoformat(until)
    except ValueError:
        raise ConfigError(
            f"{until!r} is not a date",
            where="--valid-until",
            hint="use --valid-until 2026-12-31, say, or 2026-12-31T12:00:00Z",
        ) from None
    # A day without a time is in UTC, and includes its last minute.
    if len(until) <= len("2026-12-31"):
        end += timedelta(hours=23, minutes=59)
    return end.replace(tzinfo=end.tzinfo or UTC)
