"""The command that makes certificates for a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.console import Json, console
from taciturn.files import to_json


def certs(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("certs"),
    name: Annotated[
        list[str] | None,
        typer.Option(help="A party's name, which its peer requires; repeat for each party."),
    ] = None,
    days: Annotated[int, typer.Option(help="Days of validity.")] = 90,
    json: Json = False,
) -> None:
    """Make a private authority and party certificates, for a trial between two machines.

    A company with its own authority uses that instead: then no private key travels.

    [bold]Example[/bold]

    taciturn certs --out certs --name alice --name bob --days 90
    """
    # Imported here: no other command needs it.
    from taciturn.deploy.transport.certs import make_certificates

    made = make_certificates(out, name or ["alice", "bob"], days=days)
    record = {
        "authority": str(made.authority),
        "authority_key": str(made.authority_key),
        "expires": f"{made.expires:%Y-%m-%dT%H:%M:%SZ}",
        "parties": [
            {"name": party, "certificate": str(certificate), "key": str(key)}
            for party, certificate, key in made.parties
        ],
    }
    if json:
        typer.echo(to_json(record))
        return
    for line in _lines(record):
        console().print(line, soft_wrap=True, markup=False)


def _lines(record: dict[str, Any]) -> list[str]:
    """What was made, and what goes to whom."""
    lines = [
        f"to {party['name']}: {record['authority']}, {party['certificate']}, {party['key']}"
        for party in record["parties"]
    ]
    return [
        f"certificates until {record['expires']}",
        *lines,
        f"to nobody: {record['authority_key']}, which can sign for any name; "
        "delete it once both parties are set up",
        "send each key to its party alone, over a channel you both trust",
    ]
