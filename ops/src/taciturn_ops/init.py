"""The command ``init``: write a settings file for each party."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.console import Json, console
from taciturn.errors import ConfigError
from taciturn.families.registry import BINOMIAL
from taciturn.files import to_json
from taciturn.output_paths import PathUse
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import DEFAULT_MECHANISM

if TYPE_CHECKING:
    from taciturn.privacy.base import Mechanism


def init(
    folder: Annotated[Path, PathUse.WRITTEN, typer.Option(help="Folder to write to.")] = Path(),
    mechanism: Annotated[
        str | None,
        typer.Option(help="Protection of labels and columns (default: mutual, of one Alice)."),
    ] = None,
    listener: Annotated[
        str, typer.Option(help="Side that listens on a port: alice or bob.")
    ] = "bob",
    address: Annotated[
        str, typer.Option(help="Address (host:port) of the listening side.")
    ] = "localhost:9443",
    alice_table: Annotated[
        list[str] | None,
        typer.Option(help="Alice's table, for her file; repeat for each of several Alices."),
    ] = None,
    bob_table: Annotated[str | None, typer.Option(help="Bob's table, for his file.")] = None,
    id: Annotated[str | None, typer.Option(help="Name of the id column, in both tables.")] = None,
    alice_id: Annotated[
        str | None, typer.Option(help="Name of Alice's id column, if it differs.")
    ] = None,
    bob_id: Annotated[
        str | None, typer.Option(help="Name of Bob's id column, if it differs.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Name of Bob's label column.")] = None,
    positive: Annotated[
        list[str] | None,
        typer.Option(help="Value of the label column that means 1; repeat for more."),
    ] = None,
    parties: Annotated[
        int, typer.Option(min=1, max=16, help="Number of Alices, each with a file.")
    ] = 1,
    json: Json = False,
) -> None:
    """Write a commented settings file for each party.

    Examples:
    taciturn init --folder trial --mechanism add --address bob.example:9443

    taciturn init --alice-table telco.csv --bob-table bank.csv --id customer --label defaulted

    taciturn init --alice-id msisdn --bob-id customer --label outcome --positive defaulted

    taciturn init --folder trial --parties 2 --mechanism sealed
    """
    # Imported here: no other command needs it.
    from taciturn.party.templates import Trial, write_templates
    from taciturn.privacy.registry import mechanism_class
    from taciturn.transport.address import check_address

    mechanism = mechanism or DEFAULT_MECHANISM
    chosen = mechanism_class(mechanism)
    if listener not in ("alice", "bob"):
        raise ConfigError(f"unknown side {listener}", where="--listener", hint="use alice or bob")
    _require_several(chosen, parties, listener)
    check_address(address, where="--address")
    side: Any = listener
    named = _fingerprints(folder, parties)
    tables = _tables([*named] or ["alice"], alice_table or [], bob_table)
    ids = {"alice": alice_id or id, "bob": bob_id or id}
    trial = Trial(
        mechanism,
        side,
        address,
        tables=tables,
        ids={role: name for role, name in ids.items() if name is not None},
        label=label,
        positive=tuple(positive or ()),
        parties=named,
    )
    written = write_templates(folder, trial)
    record = {"files": [str(path) for path in written]}
    if json:
        typer.echo(to_json(record))
        return
    screen = console()
    for path in written:
        screen.print(f"wrote {path}", markup=False)
    naming = "" if len(tables) == len(trial.sides) else "name each side's table in its file, "
    names = " ".join(f"--name {name}" for name in trial.sides) if named else ""
    making = f"make certificates (taciturn certs{' ' if names else ''}{names}), "
    if named and all(named.values()):
        making = ""
    elif named:
        making += (
            "write their fingerprints (taciturn certs --show FILE) under [agreement.parties], "
        )
    screen.print(
        f"Next: {naming}{making}and send each side its own file and certificates. On "
        f"{'all' if named else 'both'} sides run taciturn align FILE, unless the tables have the "
        "same rows, then taciturn party FILE --dry-run.",
        markup=False,
    )
    if "bob" in chosen.unprotected:
        screen.print(
            f"Note: {mechanism} gives labels no protection; taciturn check FILE shows what Alice "
            "can learn, and Bob's side begins only with accept-leak in his [privacy].",
            markup=False,
        )
    if "alice" in chosen.unprotected:
        screen.print(
            f"Note: {mechanism} lets Bob reconstruct Alice's columns; her side begins only with "
            "accept-column-exposure in her [privacy].",
            markup=False,
        )


def _require_several(chosen: type[Mechanism], parties: int, listener: str) -> None:
    from taciturn.privacy.registry import called, choice_of

    if parties > chosen.most_alices:
        raise ConfigError(
            f"{called(chosen.name)} is for one Alice",
            where="--parties",
            hint=Hint(
                "leave {parties} out, or {0}",
                choice_of(BINOMIAL, lambda other: other.most_alices >= parties),
            ),
        )
    if parties > 1 and listener == "alice":
        raise ConfigError(
            "with several Alices Bob listens, and each of them connects to him",
            where="--listener",
            hint="leave --listener out",
        )


def _fingerprints(folder: Path, parties: int) -> dict[str, str]:
    from taciturn.party.templates import party_names
    from taciturn.transport.tls import show_certificate

    files = {name: folder / "certs" / f"{name}.pem" for name in party_names(parties)}
    return {
        name: show_certificate(file).fingerprint if file.exists() else ""
        for name, file in files.items()
    }


def _tables(alices: list[str], alice_tables: list[str], bob_table: str | None) -> dict[str, str]:
    if len(alice_tables) > len(alices):
        raise ConfigError(
            f"{len(alice_tables)} tables are named for {len(alices)} Alices",
            where="--alice-table",
            hint="repeat it once for each Alice, and say how many there are with --parties",
        )
    tables = dict(zip(alices, alice_tables, strict=False))
    return tables if bob_table is None else {**tables, "bob": bob_table}
