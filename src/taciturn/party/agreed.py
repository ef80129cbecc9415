"""Whether one side fits the agreement that its file names, and everybody has signed it.

**Guarantee.** ``require_signed`` returns only if this side and its peers are the sides of the
agreement, every signature that is there is right (``signing``), and none is missing where this
side's file says ``signed = true``.
"""

from __future__ import annotations

from datetime import UTC, datetime

from taciturn.errors import SignatureError
from taciturn.party.agreement_file import AgreedSide, AgreementFile
from taciturn.party.config import PartyConfig
from taciturn.party.identity import credentials_of
from taciturn.party.signing import Signer, Verifier, require_in_time, verified
from taciturn.party.tables import PartyTables
from taciturn.transport.tls import Credentials

_SIGN_ANEW = "propose it anew, and have every side sign that; or restore what was signed"


def require_signed(config: PartyConfig, now: datetime | None = None) -> dict[str, Signer]:
    """Verifies the agreement that a party's file names, and returns who has signed it, by name.

    Nobody is returned where the agreement stands in the party's own file.
    """
    agreement = config.agreement_file
    if agreement is None:
        return {}
    own, ca = credentials_of(config), config.path(config.link.ca)
    own_side(config, agreement, own)
    at = now or datetime.now(UTC)
    return verified(agreement, Verifier.of(own, ca), at, all_sides=config.signed)


def peer_keys(config: PartyConfig) -> dict[str, str]:
    """Fingerprints of the keys that the peers must show, by their names, as far as agreed on."""
    agreement = config.agreement_file
    if agreement is None:
        return {}
    signers = require_signed(config)
    pinned = {side.name: side.fingerprint for side in agreement.sides if side.fingerprint}
    keys = {**pinned, **{name: signer.fingerprint for name, signer in signers.items()}}
    return {name: key for name, key in keys.items() if name in config.peers}


def require_begun_in_time(config: PartyConfig, now: datetime | None = None) -> None:
    """Insists that a session may begin now; one that has begun may be finished later."""
    if config.agreement_file is not None:
        require_in_time(config.agreement_file, now or datetime.now(UTC))


def own_side(config: PartyConfig, agreement: AgreementFile, own: Credentials) -> AgreedSide:
    """This side's part of an agreement."""
    sides = [side for side in agreement.sides if side.role == config.role]
    side = next((one for one in sides if one.name == own.name), None)
    if side is None:
        names = " or ".join(one.name for one in sides)
        raise SignatureError(
            f"the agreement's {config.role} is {names}, and this side's certificate names "
            f"{own.name}",
            where=agreement.path,
            hint="name this side's own certificate in [link], or ask for a proposal with its name",
        )
    if side.fingerprint not in (None, own.fingerprint):
        raise SignatureError(
            f"the agreement has the key {str(side.fingerprint)[:16]}… for {own.name}, and this "
            f"side's certificate has {own.fingerprint[:16]}…",
            where=agreement.path,
            hint="name the certificate that was agreed on in [link], or ask for a new proposal",
        )
    others = agreement.alices if config.role == "bob" else (agreement.bob,)
    expected = {one.name for one in others}
    if set(config.peers) != expected:
        raise SignatureError(
            f"the agreement is with {', '.join(sorted(expected))}, and this side's peer is "
            f"{config.peer}",
            where=agreement.path,
            hint="write the name of the agreement as peer in [link], or ask for a new proposal",
        )
    return side


def misfits(config: PartyConfig, tables: PartyTables, side: AgreedSide) -> list[str]:
    """What an agreement says of this side's table that is not so."""
    problems = []
    sources, prepared = source_columns(tables), len(tables.preparation.columns)
    if side.columns is not None and set(side.columns) != set(sources):
        gone = [name for name in side.columns if name not in sources]
        new = [name for name in sources if name not in side.columns]
        changes = [f"{name} is gone" for name in gone] + [f"{name} is new" for name in new]
        rest = len(changes) - 5
        listed = [*changes[:5], *([f"and {rest} more"] if rest > 0 else [])]
        problems.append(f"the columns are not those of the agreement: {', '.join(listed)}")
    if side.prepared is not None and side.prepared != prepared:
        problems.append(
            f"there are {prepared} prepared columns, and the agreement has {side.prepared}"
        )
    if side.label is not None and side.label != config.data.label:
        problems.append(f"the label is {config.data.label}, and the agreement has {side.label}")
    return problems


def require_fit(config: PartyConfig, tables: PartyTables) -> None:
    """Insists that this side's table is the one that the agreement speaks of."""
    agreement = config.agreement_file
    if agreement is None:
        return
    problems = misfits(config, tables, own_side(config, agreement, credentials_of(config)))
    if problems:
        raise SignatureError(
            f"this side's table does not fit the agreement: {'; '.join(problems)}",
            where=f"{config.where}, [data]",
            hint=_SIGN_ANEW,
        )


def source_columns(tables: PartyTables) -> tuple[str, ...]:
    """A table's columns as its file has them, as far as they are used, in order."""
    return tuple(dict.fromkeys(tables.preparation.sources))
