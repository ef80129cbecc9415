"""A proposal: the agreement of one side's file, written out for the other to review and sign.

Every agreed setting is written with its value, defaults too, so that another version's defaults
change nothing of what was signed.

**Guarantee.** A party's file that names the proposal comes to the same terms as the proposer's own
(``Agreement.canonical``), the digest of the file aside.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import tomlkit

from taciturn.errors import ConfigError
from taciturn.party.agreement_check import source_columns
from taciturn.party.agreement_file import BOB, LONGEST_PURPOSE, AgreedSide, AgreementFile
from taciturn.party.config import UNWRITTEN, PartyConfig
from taciturn.party.credentials import credentials_of
from taciturn.party.tables import PartyTables
from taciturn.party.training_inputs import party_terms
from taciturn.rng import SystemEntropy
from taciturn.setting_syntax import Hint, hyphenated
from taciturn.transport.tls import show_certificate

VALID_DAYS = 30
MOST_DAYS = 3650
_ID_BYTES = 16
_HEAD = """\
# What both sides agree on. Read it with: taciturn agreement review agreement.toml FILE
# Sign it with:                           taciturn agreement sign agreement.toml FILE
# Comments are no part of what is signed; everything else is.

"""


def propose(
    config: PartyConfig,
    tables: PartyTables,
    path: str,
    *,
    valid_until: datetime | None = None,
    purpose: str = "",
    peer_certificate: Path | None = None,
    hide_columns: bool = False,
) -> AgreementFile:
    """The agreement of one side's file.

    A training may begin until ``valid_until``, in 30 days by default. With ``hide_columns`` only
    the number of this side's columns is disclosed, and no names.
    """
    if len(purpose) > LONGEST_PURPOSE:
        raise ConfigError(
            f"the purpose has {len(purpose):,} characters; the limit is {LONGEST_PURPOSE:,}",
            setting="purpose",
        )
    now, credentials = datetime.now(UTC).replace(microsecond=0), credentials_of(config)
    until = valid_until or now + timedelta(days=VALID_DAYS)
    if not now < until <= now + timedelta(days=MOST_DAYS):
        raise ConfigError(
            f"the agreement must end in the future, within {MOST_DAYS:,} days",
            setting="valid_until",
            hint=Hint("use {valid_days}, say", valid_days=VALID_DAYS),
        )
    proposer = AgreedSide(
        title=config.side.title(config, credentials.name),
        name=credentials.name,
        fingerprint=credentials.fingerprint,
        label=None if hide_columns else config.data.label,
        columns=None if hide_columns else source_columns(tables),
        prepared=len(tables.preparation.columns),
    )
    made = AgreementFile(
        path=path,
        id=SystemEntropy().token(_ID_BYTES).hex(),
        valid_until=until,
        agreement=_agreed_values(config, tables),
        sides=_sides(config, proposer, _peer_key(config, peer_certificate)),
        purpose=purpose,
        study=config.study_values,
    )
    # What is proposed can be read back; if not, that is said now.
    return AgreementFile.parse(proposal_text(made), path)


def proposal_text(agreement: AgreementFile) -> str:
    """An agreement as a file without signatures."""
    return _HEAD + tomlkit.dumps(agreement.body())


def _agreed_values(config: PartyConfig, tables: PartyTables) -> dict[str, Any]:
    """The agreed settings with their values, as a party's file holds them."""
    terms = party_terms(config.first, tables)
    agreed = terms.agreement
    values: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in agreed.model_dump().items()
        if name not in (*UNWRITTEN, "parties") and value is not None
    }
    if not agreed.key_bits:
        # Nothing is encrypted, and no file may ask for that by name.
        del values["scheme"], values["key_bits"]
    if config.study is not None:
        # What varies stands in the study.
        axes = config.study.axes
        values = {name: value for name, value in values.items() if name not in axes}
    # TOML has no word for none.
    values.setdefault("held_out", 0)
    values["rows"] = tables.train.rows
    width = config.side.agreed_width(config, len(tables.train.columns))
    columns = config.alice_columns if width is None else width
    if columns is not None:
        values["alice_columns"] = columns
    if agreed.parties is not None:
        values["parties"] = dict(agreed.parties)
    return {hyphenated(name): value for name, value in values.items()}


def _sides(config: PartyConfig, side: AgreedSide, peer_key: str | None) -> tuple[AgreedSide, ...]:
    if BOB in config.parties:
        raise ConfigError(
            "no Alice can be called bob in an agreement that is signed",
            setting="parties",
            hint="give her a certificate with another name",
        )
    return config.side.agreed_sides(config, side, peer_key)


def _peer_key(config: PartyConfig, certificate: Path | None) -> str | None:
    if certificate is None:
        return None
    if config.link.peer is None:
        raise ConfigError(
            "the keys of several Alices are already listed under parties",
            setting="peer_certificate",
            hint=Hint("leave {peer_certificate} out"),
        )
    shown = show_certificate(certificate)
    if shown.name != config.peer:
        raise ConfigError(
            f"the certificate is of {shown.name}, and the peer is {config.peer}",
            setting="peer_certificate",
            hint="name the peer's certificate, or its name as peer in [link]",
        )
    return shown.fingerprint
