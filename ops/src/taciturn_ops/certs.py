"""The command that makes and shows certificates for a trial."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import Json, console
from taciturn.files import to_json
from taciturn.output_paths import PathUse

if TYPE_CHECKING:
    from taciturn.transport.certs import TrialCertificates


def certs(
    out: Annotated[
        Path, PathUse.WRITTEN, typer.Option(help="Folder to write the certificates to.")
    ] = Path("certs"),
    name: Annotated[
        list[str] | None,
        typer.Option(help="A party's name, which its peer requires; repeat for each party."),
    ] = None,
    days: Annotated[int, typer.Option(help="Days of validity.")] = 90,
    show: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(
            help="Show a certificate's name, and its fingerprint for [agreement.parties]."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Create or show trial certificates.

    Creates a private CA, and a key and a certificate for each party. A company with its own CA uses
    that instead.

    Examples:
    taciturn certs --out certs --name alice --name bob --days 90

    taciturn certs --show certs/alice.pem
    """
    # Imported here: no other command needs it.
    from taciturn.transport.certs import make_certificates

    if show is not None:
        record, lines = _show(show)
    else:
        record = _made(make_certificates(out, name or ["alice", "bob"], days=days))
        lines = _handed_out(record)
    if json:
        typer.echo(to_json(record))
        return
    for line in lines:
        console().print(line, soft_wrap=True, markup=False)


def _made(made: TrialCertificates) -> dict[str, Any]:
    return {
        "authority": str(made.authority),
        "authority_key": str(made.authority_key),
        "expires": _instant(made.expires),
        "parties": [
            {"name": party, "certificate": str(certificate), "key": str(key)}
            for party, certificate, key in made.parties
        ],
    }


def _show(path: Path) -> tuple[dict[str, Any], list[str]]:
    from taciturn.transport.tls import show_certificate

    shown = show_certificate(path)
    record = {
        "name": shown.name,
        "certificate": str(shown.certificate),
        "expires": _instant(shown.expires),
        "fingerprint": shown.fingerprint,
    }
    # As a line of a party's file, in which a dot would begin another table.
    key = f'"{shown.name}"' if "." in shown.name else shown.name
    return record, [
        f"certificate of {shown.name} until {record['expires']}: {shown.certificate}",
        f'{key} = "{shown.fingerprint}"',
    ]


def _handed_out(record: dict[str, Any]) -> list[str]:
    lines = [
        f"to {party['name']}: {record['authority']}, {party['certificate']}, {party['key']}"
        for party in record["parties"]
    ]
    return [
        f"certificates until {record['expires']}",
        *lines,
        f"to nobody: {record['authority_key']}",
        "it can sign a certificate of any name: keep it offline for renewals, or delete it",
        "send each private key only to its party, over a channel that both trust",
    ]


def _instant(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"
