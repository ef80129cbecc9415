"""Signs the file of an agreement, and says who has: one more block, everything else as it was."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import tomlkit

from taciturn.errors import OutputError, SignatureError
from taciturn.files import exclusive_lock, reporting_write_errors, write_private
from taciturn.jobs.train import TrainingPlan as Prospect
from taciturn.party.agreed import misfits, own_side
from taciturn.party.agreement_file import AgreementFile, Signature, moment_text
from taciturn.party.config import PartyConfig
from taciturn.party.identity import credentials_of
from taciturn.party.own_limits import refusals
from taciturn.party.side import terms_of
from taciturn.party.signing import (
    Signer,
    Verifier,
    require_in_time,
    signed,
    verified,
)
from taciturn.party.tables import PartyTables, load_tables
from taciturn.results.agreement import AgreementRecord, SideRecord, SignedAgreement
from taciturn.settings.agreement import differences
from taciturn.version import __version__

_REPLACE = (
    "write only file and signed in [agreement] of this side's file, or ask for a new proposal"
)


def lines_for(path: Path) -> tuple[str, ...]:
    """What [agreement] of each side's file holds, to use an agreement."""
    return ("[agreement]", f'file = "{path.name}"', "signed = true")


def record_of_agreement(agreement: AgreementFile, signers: dict[str, Signer]) -> AgreementRecord:
    """An agreement and who has signed it, as a result holds them."""
    sides = []
    for side in agreement.sides:
        signer = signers.get(side.name)
        sides.append(
            SideRecord(
                title=side.title,
                role=side.role,
                name=side.name,
                fingerprint=side.fingerprint if signer is None else signer.fingerprint,
                label=side.label,
                columns=side.columns,
                prepared_columns=side.prepared,
                signed=None if signer is None else moment_text(signer.time),
            )
        )
    return AgreementRecord(
        id=agreement.id,
        digest=agreement.digest,
        valid_until=moment_text(agreement.valid_until),
        purpose=agreement.purpose,
        settings=dict(agreement.agreement),
        study=None if agreement.study is None else dict(agreement.study),
        sides=tuple(sides),
    )


def signers_so_far(config: PartyConfig, agreement: AgreementFile) -> dict[str, Signer]:
    """Who has signed; every signature that is there must be right."""
    own = credentials_of(config)
    verifier = Verifier.of(own, config.path(config.link.ca))
    return verified(agreement, verifier, datetime.now(UTC), all_sides=False)


def own_differences(path: Path, config: PartyConfig, tables: PartyTables) -> list[str]:
    """Differences between this side's own file (``path``) and the agreement of ``config``."""
    own = PartyConfig.read(path)
    if own.agreement_file is None and not own.says_agreement:
        return []
    if not _apart(own, config):
        return []
    other = terms_of(own.first, load_tables(own)).agreement
    here = terms_of(config.first, tables).agreement
    if own.agreement_file is not None and config.agreement_file is not None:
        # Two files: purpose, time and sides count too.
        changed = differences(own.agreement_file.canonical(), config.agreement_file.canonical())
        return [f"{own.agreement_file.path} is another agreement: {line}" for line in changed]
    without = here.model_copy(update={"file_digest": None})
    apart = differences(other.canonical(), without.canonical())
    return [*apart, *differences(_study_text(own), _study_text(config))]


def _study_text(config: PartyConfig) -> str:
    return "{}" if config.study is None else config.study.canonical()


def _apart(own: PartyConfig, config: PartyConfig) -> bool:
    """Whether a side's own file may say something else than the agreement."""
    named, read = own.agreement_file, config.agreement_file
    return named is None or read is None or named.canonical() != read.canonical()


def require_signable(path: Path, config: PartyConfig, agreement: AgreementFile) -> None:
    """Insists that this side could train by an agreement: who, when, which table, which settings.

    ``path`` is this side's file; ``config`` is the same with the agreement in place of its own.
    """
    side = own_side(config, agreement, credentials_of(config))
    require_in_time(agreement, datetime.now(UTC))
    tables = load_tables(config)
    problems = misfits(config, tables, side)
    if problems:
        raise SignatureError(
            f"this side's table does not fit the agreement: {'; '.join(problems)}",
            where=f"{config.where}, [data]",
            hint="ask for a new proposal, or name the table that was meant",
        )
    refused = refusals(Prospect.of(config))
    if refused:
        raise SignatureError(
            f"this side would not begin by this agreement: {refused[0].why}",
            where=config.where,
            hint=refused[0].way_out,
        )
    apart = own_differences(path, config, tables)
    if apart:
        raise SignatureError(
            f"this side's file does not fit the agreement: {'; '.join(apart)} (here is the file, "
            "there the agreement)",
            where=config.where,
            hint=_REPLACE,
        )


def sign_file(path: Path, config: PartyConfig) -> SignedAgreement:
    """Adds this side's signature to an agreement's file; one that is there is not replaced."""
    own, lock = credentials_of(config), path.with_name(f".{path.name}.lock")
    with reporting_write_errors(path, "agreement"), exclusive_lock(lock) as alone:
        if not alone:
            raise OutputError("another program is signing this agreement", where=str(path))
        try:
            # Once more: it may have been signed since it was read.
            agreement = AgreementFile.read(path)
            side = own_side(config, agreement, own)
            if config.agreement_file is None or (
                agreement.canonical() != config.agreement_file.canonical()
            ):
                raise SignatureError("the agreement was changed meanwhile", where=str(path))
            signers = signers_so_far(config, agreement)
            already = side.name in signers
            if not already:
                signature = signed(agreement, own, side, datetime.now(UTC))
                agreement = _with_block(path, agreement, block(signature))
                signers = signers_so_far(config, agreement)
        finally:
            lock.unlink(missing_ok=True)
    return SignedAgreement(
        signed_by=own.name,
        file=str(path),
        already=already,
        agreement=record_of_agreement(agreement, signers),
        lines=lines_for(path),
        version=__version__,
    )


def block(signature: Signature) -> str:
    """A signature as the file holds it."""
    values = {
        "name": signature.name,
        "role": signature.role,
        "time": signature.time,
        "digest": signature.digest,
        "fingerprint": signature.fingerprint,
        "certificate": [b64encode(part).decode() for part in signature.chain],
        "text": signature.text,
        "value": b64encode(signature.value).decode(),
    }
    return tomlkit.dumps({"signature": [values]})


def _with_block(path: Path, agreement: AgreementFile, signature: str) -> AgreementFile:
    """The file with one more signature; comments and the others' stay as they are."""
    text, mode = path.read_text(encoding="utf-8"), stat.S_IMODE(path.stat().st_mode)
    longer = f"{text.rstrip()}\n\n{signature}"
    after = AgreementFile.parse(longer, str(path))
    kept = after.signatures[: len(agreement.signatures)]
    if replace(after, signatures=kept) != agreement:
        # A file whose last lines are not where a block may follow.
        raise OutputError(
            "the signature cannot be added at the end of this file",
            where=str(path),
            hint="propose it anew, and sign that",
        )
    write_private(Path(os.path.realpath(path)), longer, "agreement")
    path.chmod(mode)
    return after
