"""Signs the file of an agreement: one more block, everything else as it was."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import tomlkit
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from taciturn.errors import BudgetExceeded, OutputError, SignatureError, TaciturnError
from taciturn.files import exclusive_lock, reporting_write_errors, write_private
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.party.agreement_check import (
    Signer,
    Verifier,
    misfits,
    own_side,
    require_in_time,
    statement,
    verified,
)
from taciturn.party.agreement_file import (
    AgreedSide,
    AgreementFile,
    Signature,
    moment_text,
    text_digest,
)
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import credentials_of, signer
from taciturn.party.settings_file import name_agreement
from taciturn.party.tables import PartyTables, load_tables
from taciturn.party.training_inputs import party_terms
from taciturn.results.cost_preview import Refusal
from taciturn.setting_syntax import toml_value
from taciturn.settings.agreement import differences
from taciturn.transport.tls import Credentials
from taciturn.version import __version__
from taciturn_ops.agreement.result import AgreementRecord, OpenedSum, SideRecord, SignedAgreement


def lines_for(name: str) -> tuple[str, ...]:
    """Lines of [agreement] in each side's file for a signed agreement."""
    return ("[agreement]", f"file = {toml_value(name)}", "signed = true")


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
    """Signers so far, by name; raise if a signature is invalid."""
    verifier = Verifier.from_credentials(credentials_of(config), config.path(config.link.ca))
    return verified(agreement, verifier, datetime.now(UTC), all_sides=False)


# --- whether this side could train by an agreement ------------------------------------------------


def require_signable(path: Path, config: PartyConfig, agreement: AgreementFile) -> None:
    """Raise the first problem that keeps this side from training by an agreement."""
    for problem in problems(
        path, config, agreement, load_tables(config), lambda: TrainingPlan.from_config(config)
    ):
        raise problem


def problems(
    path: Path,
    config: PartyConfig,
    agreement: AgreementFile,
    tables: PartyTables,
    preview: Callable[[], TrainingPlan],
) -> Iterator[TaciturnError]:
    """Reasons why this side could not train by an agreement: names, dates, table, limits, settings.

    ``path`` is this side's file; ``config`` is the same with the agreement in place of its own.
    """
    checks: tuple[Callable[[], Iterable[TaciturnError]], ...] = (
        lambda: _table_problems(config, agreement, tables),
        lambda: _require_valid(agreement),
        lambda: _limit_problems(config, preview()),
        lambda: _setting_problems(path, config, tables),
    )
    for check in checks:
        try:
            yield from check()
        except TaciturnError as problem:
            yield problem


def _table_problems(
    config: PartyConfig, agreement: AgreementFile, tables: PartyTables
) -> Iterator[TaciturnError]:
    side = own_side(config, agreement, credentials_of(config))
    for misfit in misfits(config, tables, side):
        yield SignatureError(
            f"this side's table: {misfit}",
            where=f"{config.where}, [data]",
            hint="ask for a new proposal, or name the table that was meant",
        )


def _require_valid(agreement: AgreementFile) -> tuple[()]:
    require_in_time(agreement, datetime.now(UTC))
    return ()


def _limit_problems(config: PartyConfig, preview: TrainingPlan) -> Iterator[TaciturnError]:
    """Whether this side's consent, Bob's ledger or Alice's score count refuse."""
    try:
        refused = preview.outlook().refused
    except BudgetExceeded as problem:
        problem.syntax = problem.syntax or config.syntax
        refused = Refusal(problem.message, problem.hint)
    if refused is not None:
        yield SignatureError(refused.why, where=config.where, hint=refused.way_out)
    exceeded = preview.consent.over_limit()
    if exceeded is not None:
        exceeded.syntax = exceeded.syntax or config.syntax
        yield SignatureError(exceeded.message, where=config.where, hint=exceeded.hint)


def opened_sum(preview: TrainingPlan) -> OpenedSum | None:
    """By how many models Alice's rows are scored for the peer, before and after; None at Bob."""
    budget = preview.consent.scores
    if budget is None:
        return None
    held_out, counts = preview.tables.held_out, preview.scores
    this = max(counts.per_row, 0 if held_out is None else counts.per_held_out_row)
    so_far = budget.most_given()
    return OpenedSum(so_far=so_far, this=this, then=so_far + this, limit=budget.limit)


def _setting_problems(
    path: Path, config: PartyConfig, tables: PartyTables
) -> Iterator[TaciturnError]:
    for line in _differences(PartyConfig.read(path), config, tables):
        yield SignatureError(
            f"this side's file and the agreement differ: {line} (here is the file, there the "
            "agreement)",
            where=config.where,
            hint="write only file and signed in [agreement] of this side's file, or ask for a new "
            "proposal",
        )


def _differences(own_config: PartyConfig, config: PartyConfig, tables: PartyTables) -> list[str]:
    """Differences between this side's own file and the agreement of ``config``."""
    named, read = own_config.agreement_file, config.agreement_file
    if named is not None and read is not None:
        # Two files: purpose, time and sides count too.
        changed = differences(named.canonical(), read.canonical())
        return [f"{named.path} is another agreement: {line}" for line in changed]
    if named is None and not own_config.says_agreement:
        return []
    other = party_terms(own_config.first, load_tables(own_config)).agreement
    here = party_terms(config.first, tables).agreement.model_copy(update={"file_digest": None})
    studies = [
        "{}" if party.study is None else party.study.canonical() for party in (own_config, config)
    ]
    return [*differences(other.canonical(), here.canonical()), *differences(*studies)]


# --- the signature --------------------------------------------------------------------------------


def sign_file(path: Path, config: PartyConfig) -> SignedAgreement:
    """Adds this side's signature to an agreement's file, and the agreement to this side's file.

    A signature that is there is not replaced.
    """
    credentials, lock = credentials_of(config), path.with_name(f".{path.name}.lock")
    with reporting_write_errors(path, "agreement"), exclusive_lock(lock) as alone:
        if not alone:
            raise OutputError("another program is signing this agreement", where=str(path))
        try:
            # Once more: it may have been signed since it was read.
            agreement = AgreementFile.read(path)
            side, reviewed = own_side(config, agreement, credentials), config.agreement_file
            if reviewed is None or agreement.canonical() != reviewed.canonical():
                raise SignatureError("the agreement was changed meanwhile", where=str(path))
            signers = signers_so_far(config, agreement)
            already = side.name in signers
            if not already:
                agreement = _add(
                    path, agreement, signed(agreement, credentials, side, datetime.now(UTC))
                )
                signers = signers_so_far(config, agreement)
        finally:
            lock.unlink(missing_ok=True)
    # As seen from this side's file; what it said of the agreement is the same (require_signable).
    name = os.path.relpath(path, config.folder)
    return SignedAgreement(
        signed_by=credentials.name,
        file=str(path),
        already=already,
        agreement=record_of_agreement(agreement, signers),
        lines=lines_for(name),
        settings=config.where,
        added=name_agreement(Path(config.where), name),
        version=__version__,
    )


def signed(
    agreement: AgreementFile, credentials: Credentials, side: AgreedSide, now: datetime
) -> Signature:
    """A side's signature of an agreement."""
    text, time = agreement.canonical(), now.astimezone(UTC).replace(microsecond=0)
    digest = text_digest(text)
    chain = x509.load_pem_x509_certificates(credentials.certificate)
    return Signature(
        name=credentials.name,
        role=side.role,
        time=time,
        digest=digest,
        fingerprint=credentials.fingerprint,
        chain=tuple(certificate.public_bytes(Encoding.DER) for certificate in chain),
        text=text,
        value=signer(credentials).sign(statement(digest, side.role, credentials.name, time)),
    )


def signature_block(signature: Signature) -> str:
    """A signature as the file holds it."""
    values = {
        "name": signature.name,
        "role": signature.role,
        "time": signature.time,
        "digest": signature.digest,
        "fingerprint": signature.fingerprint,
        "certificate": [b64encode(certificate).decode() for certificate in signature.chain],
        "text": signature.text,
        "value": b64encode(signature.value).decode(),
    }
    return tomlkit.dumps({"signature": [values]})


def _add(path: Path, agreement: AgreementFile, signature: Signature) -> AgreementFile:
    """The file with one more signature; comments and the others' stay as they are."""
    text, mode = path.read_text(encoding="utf-8"), stat.S_IMODE(path.stat().st_mode)
    longer = f"{text.rstrip()}\n\n{signature_block(signature)}"
    after = AgreementFile.parse(longer, str(path))
    earlier = after.signatures[: len(agreement.signatures)]
    if replace(after, signatures=earlier) != agreement:
        # A file whose last lines are not where a block may follow.
        raise OutputError(
            "the signature cannot be added at the end of this file",
            where=str(path),
            hint="propose it again, and sign that",
        )
    write_private(Path(os.path.realpath(path)), longer, "agreement")
    path.chmod(mode)
    return after
