"""The command that makes, renews, requests, signs and shows certificates for a trial."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import Json, console
from taciturn.errors import ConfigError
from taciturn.files import to_json

if TYPE_CHECKING:
    from taciturn.deploy.transport.certs import Made


def certs(
    out: Annotated[
        Path, typer.Option(help="The folder of the certificates: to write to, or to renew.")
    ] = Path("certs"),
    name: Annotated[
        list[str] | None,
        typer.Option(help="A party's name, which its peer requires; repeat for each party."),
    ] = None,
    days: Annotated[int, typer.Option(help="Days of validity.")] = 90,
    renew: Annotated[
        bool,
        typer.Option(
            "--renew",
            help="Renew the authority and the parties' certificates; keys and names stay.",
        ),
    ] = False,
    request: Annotated[
        bool,
        typer.Option(
            "--request",
            help="Make only one party's key, if it has none, and a request (CSR) to be signed.",
        ),
    ] = False,
    sign: Annotated[
        Path | None, typer.Option(help="Sign this request with the authority of the folder.")
    ] = None,
    show: Annotated[
        Path | None,
        typer.Option(
            help="Show a certificate's name, and its fingerprint for [agreement.parties]."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make, renew, request, sign or show certificates, for a trial between machines.

    Without an option it makes a private authority and each party's key and certificate. With
    --request and --sign each party makes its own key, and no private key travels. A company with
    its own authority uses that instead.

    [bold]Examples[/bold]

    taciturn certs --out certs --name alice --name bob --days 90

    taciturn certs --out certs --renew

    taciturn certs --out certs --request --name alice

    taciturn certs --out authority --sign alice.csr

    taciturn certs --show certs/alice.pem
    """
    # Imported here: no other command needs it.
    from taciturn.deploy.transport.certs import make_certificates
    from taciturn.deploy.transport.renewal import renew_certificates

    if request and (renew or sign):
        raise ConfigError(
            "a request is made by the party, and signed or renewed by the authority",
            where="--request",
            hint="leave --renew and --sign out; an existing key is used again",
        )
    if show is not None:
        if request or renew or sign:
            raise ConfigError(
                "a certificate is shown, or one is made",
                where="--show",
                hint="leave --request, --sign and --renew out",
            )
        record, lines = _show(show)
    elif request:
        record, lines = _request(out, name)
    elif sign is not None:
        record, lines = _sign(out, sign, name, days, renew)
    elif renew:
        record = _made(renew_certificates(out, name or (), days=days))
        lines = _renewed(record)
    else:
        record = _made(make_certificates(out, name or ["alice", "bob"], days=days))
        lines = _handed_out(record)
    if json:
        typer.echo(to_json(record))
        return
    for line in lines:
        console().print(line, soft_wrap=True, markup=False)


def _made(made: Made) -> dict[str, Any]:
    return {
        "authority": str(made.authority),
        "authority_key": str(made.authority_key),
        "expires": _instant(made.expires),
        "parties": [
            {"name": party, "certificate": str(certificate), "key": str(key)}
            for party, certificate, key in made.parties
        ],
    }


def _request(out: Path, names: list[str] | None) -> tuple[dict[str, Any], list[str]]:
    from taciturn.deploy.transport.renewal import request_certificate

    made = request_certificate(out, _one(names))
    record = {
        "name": made.name,
        "key": str(made.key),
        "request": str(made.request),
        "fingerprint": made.fingerprint,
    }
    return record, [
        f"request for {made.name}: {made.request}; send it to the authority",
        f"fingerprint of its public key: {made.fingerprint}; tell it on another channel",
        f"to nobody: {made.key}",
    ]


def _sign(
    out: Path, request: Path, names: list[str] | None, days: int, renew: bool
) -> tuple[dict[str, Any], list[str]]:
    from taciturn.deploy.transport.certs import AUTHORITY
    from taciturn.deploy.transport.renewal import sign_request

    expected = _one(names) if names else None
    signed = sign_request(out, request, days=days, renew=renew, name=expected)
    record = {
        "name": signed.name,
        "certificate": str(signed.certificate),
        "authority": str(out / AUTHORITY),
        "expires": _instant(signed.expires),
        "fingerprint": signed.fingerprint,
    }
    return record, [
        f"certificate of {signed.name} until {record['expires']}: {signed.certificate}",
        f"fingerprint of its public key: {signed.fingerprint}; compare it with what "
        f"{signed.name} says before you send it",
        f"to {signed.name}: {record['authority']}, {signed.certificate}",
    ]


def _show(path: Path) -> tuple[dict[str, Any], list[str]]:
    from taciturn.deploy.transport.renewal import show_certificate

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


def _one(names: list[str] | None) -> str:
    if names is None or len(names) != 1:
        raise ConfigError(
            "a request is of exactly one party",
            where="--name",
            hint="name it, such as --name alice",
        )
    return names[0]


def _renewed(record: dict[str, Any]) -> list[str]:
    return [
        f"renewed until {record['expires']}; keys and names are the same",
        *(
            f"to {party['name']}: {record['authority']}, {party['certificate']}"
            for party in record["parties"]
        ),
        "a party takes them at its next start; until the old ones expire, the other may still "
        "have them",
    ]


def _handed_out(record: dict[str, Any]) -> list[str]:
    """What was made, and what goes to whom."""
    lines = [
        f"to {party['name']}: {record['authority']}, {party['certificate']}, {party['key']}"
        for party in record["parties"]
    ]
    return [
        f"certificates until {record['expires']}",
        *lines,
        f"to nobody: {record['authority_key']}, which can sign for any name",
        "it renews them (--renew): keep it offline, or delete it once both parties are set up",
        "send each key to its party alone, over a channel you both trust",
    ]


def _instant(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"
