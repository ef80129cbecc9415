"""Checks of one party's file and everything that it names: certificates, table, state folder, link.

Nothing is made, written or locked for longer than a check takes.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import re
import shutil
import socket
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from taciturn.crypto.registry import SCHEMES, scheme
from taciturn.data.spellings import describe_spellings, further, spellings
from taciturn.errors import (
    CertificateError,
    ConfigError,
    StateError,
    TaciturnError,
    counted,
    rendering_errors_as,
)
from taciturn.files import is_private, read_toml
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.party.agreement_check import require_begun_in_time, require_fit, require_signed
from taciturn.party.config import PartyConfig
from taciturn.party.consent.store import ConsentStore
from taciturn.party.credentials import require_own_name
from taciturn.party.encrypted_log import KEY_BYTES
from taciturn.party.past_exposure import past_exposure
from taciturn.party.state_store import key_place
from taciturn.party.tables import load_tables
from taciturn.party.training_inputs import party_terms
from taciturn.results.cost_preview import Outlook, PastExposure
from taciturn.transport.address import check_address, obstacle, split_address
from taciturn.transport.tls import load_credentials
from taciturn_ops.doctor.machine import check_scheme
from taciturn_ops.doctor.result import Finding

Report: TypeAlias = Callable[[Outlook | PastExposure], None]
"""Told what a training will cost, and which past sessions exposed Alice's columns."""

_LITTLE_ROOM, _NO_ROOM = 1 << 30, 64 << 20


def check_party(path: Path, report: Report = lambda price: None) -> list[Finding]:
    """Findings about one party's file; where it cannot be read, that alone.

    What a wrong setting does not concern is checked all the same. ``report`` receives the cost of
    the training, and past sessions that exposed Alice's columns, where they can be known.
    """
    config, problems = read_leniently(path)
    wrong = [Finding.from_error("config", problem) for problem in problems]
    if config is None:
        return wrong
    return [
        *(wrong or [Finding.ok("config", f"{path}: {config.role} with {config.peer}")]),
        *(check_scheme(scheme(name)) for name in SCHEMES if name == config.agreed["scheme"]),
        *check_certificates(config),
        *check_agreement(config),
        *check_table(config, report),
        *check_past(config, report),
        *check_consent(config),
        *check_state(config),
        *check_output(config),
        check_link(config),
    ]


def read_leniently(path: Path) -> tuple[PartyConfig | None, list[ConfigError]]:
    """A party's file without its wrong settings, and what is wrong with each of them.

    None where a setting is missing, or what is wrong cannot be left out.
    """
    problems: list[ConfigError] = []
    try:
        values = read_toml(path, "party's file", "taciturn init writes one for each side")
    except ConfigError as problem:
        return None, [problem]
    while True:
        try:
            return PartyConfig.from_values(values, path), problems
        except ConfigError as problem:
            problems.append(problem)
            if not _leave_out(values, problem):
                return None, problems


def _leave_out(values: dict[str, Any], problem: ConfigError) -> bool:
    """Remove the setting or section that an error is about; False where it does not stand there."""
    named = re.search(r"\[([\w-]+)\]", problem.where)
    section = values if named is None else values.get(named[1], {})
    for key in section:
        if key.replace("-", "_") == problem.setting.replace("-", "_"):
            del section[key]
            return True
    return False


def check_certificates(config: PartyConfig, now: datetime | None = None) -> list[Finding]:
    """The certificate, its key and the authority: present, matching, in time, and private."""
    area, link, at = "certificate", config.link, now or datetime.now(UTC)
    key = config.path(link.key)
    exposure = _exposure(area, key, "the private key")
    try:
        credentials = load_credentials(
            config.path(link.certificate), key, config.path(link.ca), now=at
        )
        with rendering_errors_as(config.syntax):
            require_own_name(config, credentials)
    except CertificateError as problem:
        return [Finding.from_error(area, problem), *exposure]
    findings = [
        Finding.ok(
            area,
            f"{link.certificate} names {credentials.name}, is signed by {link.ca}, matches its key "
            f"and expires in {(credentials.expires - at).days} days",
        )
    ]
    # The mode of the key is reported below.
    late = [notice for notice in credentials.warnings if "expires" in notice]
    way_out = "renew it in time, with the commands in docs/how-to/install.md"
    soon = [Finding.warning(area, notice, way_out) for notice in late]
    return [*findings, *soon, *exposure]


def check_agreement(config: PartyConfig) -> list[Finding]:
    """The signed agreement: in time, this side's, and signed in its present form."""
    agreement = config.agreement_file
    if agreement is None:
        return []
    try:
        require_begun_in_time(config)
        signers = require_signed(config)
    except TaciturnError as problem:
        return [Finding.from_error("agreement", problem)]
    who = ", ".join(signers) or "nobody"
    until = f"{agreement.valid_until:%Y-%m-%d %H:%M} UTC"
    said = f"{agreement.path} is valid until {until} and signed by {who}"
    if len(signers) == len(agreement.sides):
        return [Finding.ok("agreement", said)]
    return [Finding.warning("agreement", said, "signed = true requires every signature")]


def check_table(config: PartyConfig, report: Report = lambda price: None) -> list[Finding]:
    """The table: readable, with its ids, fit for training; the settings with it, and the price."""
    try:
        tables = load_tables(config)
    except TaciturnError as problem:
        return [Finding.from_error("data", problem)]
    rest = 0 if tables.held_out is None else tables.held_out.rows
    findings = [
        Finding.ok(
            "data",
            f"{config.table().where}: {tables.train.rows:,} training rows, {rest:,} held out, "
            f"{counted(len(tables.train.columns), 'column')}; id digest "
            f"{tables.train.ids.digest()[:16]} (compare it with the peer's)",
        ),
        *_alignment(config),
    ]
    for note in dict.fromkeys(tables.notes):
        findings.append(Finding.warning("data", note, "leave the column out"))
    try:
        require_fit(config, tables)
        preview = (
            TrainingPlan.of_one(config, tables, party_terms(config, tables))
            if config.study is None
            else TrainingPlan.from_config(config)
        )
        price = preview.outlook()
    except TaciturnError as problem:
        return [*findings, Finding.from_error("agreement", problem)]
    report(price)
    agreed = config.agreed["mechanism"]
    findings.append(Finding.ok("agreement", f"valid settings for {agreed}"))
    return [*findings, *_price(price)]


def check_past(config: PartyConfig, report: Report) -> list[Finding]:
    """Alice's past sessions that opened training scores; nothing at Bob."""
    try:
        past = past_exposure(config)
    except TaciturnError as problem:
        return [Finding.from_error("columns", problem)]
    if not past:
        return []
    report(past)
    sessions, models = len(past.exposed_sessions), len(past.exposed_models)
    return [
        Finding.warning(
            "columns",
            f"columns were exposed before: {counted(sessions, 'session')} in the consent store, "
            f"and {counted(models, 'model file')} of such sessions",
            "see which below; what was opened cannot be taken back",
        )
    ]


def check_consent(config: PartyConfig) -> list[Finding]:
    """Every record of the consent store; nothing where there is no store yet."""
    try:
        rows = ConsentStore.from_config(config).verify()
    except TaciturnError as problem:
        return [Finding.from_error("consent", problem)]
    if rows is None:
        return []
    return [Finding.ok("consent", f"{config.consent_file} is intact: {counted(rows, 'row')}")]


def _price(price: Outlook) -> list[Finding]:
    area = "columns" if price.ledger is None else "price"
    if price.refused is not None:
        return [Finding.problem(area, price.refused.why, price.refused.way_out)]
    if price.ledger is None:
        return [_columns(area, price.learns.columns)]
    total = price.ledger.label_epsilon_total
    if math.isinf(total):
        return [
            Finding.warning(
                "price", "labels will be readable, as accept-leak allows", "is that intended?"
            )
        ]
    return [Finding.ok("price", f"the total label epsilon of this training is {total:g}")]


def _columns(area: str, exposed: str | None) -> Finding:
    if exposed is None:
        return Finding.ok(area, "no score of a training row is opened to Bob")
    return Finding.warning(
        area,
        "Bob can reconstruct Alice's columns (below), as accept-column-exposure allows",
        "is that intended? mutual opens no training score",
    )


def _alignment(config: PartyConfig) -> list[Finding]:
    if config.data.aligned is not None:
        return [Finding.ok("data", f"only the common rows listed in {config.data.aligned}")]
    findings = [
        Finding.ok(
            "data",
            "all rows are used, as [data] aligned names no list; the peer must have the same ids, "
            "which a dry run compares",
        )
    ]
    try:
        ids = config.table().ids(config.data.id, config.normalisation).common
    except TaciturnError as problem:
        return [*findings, Finding.from_error("data", problem)]
    mixed = [spelling for spelling in spellings(ids, config.normalisation) if spelling.mixed]
    if mixed:
        better = further(config.normalisation, mixed)
        line = (
            "a normalisation" if better == config.normalisation else f'normalise-ids = "{better}"'
        )
        findings.append(
            Finding.warning(
                "data",
                f"ids are spelled in more than one way: {describe_spellings(mixed, len(ids))}",
                f"write {line} under [data] on both sides, and run taciturn align",
            )
        )
    return findings


def check_state(config: PartyConfig) -> list[Finding]:
    """The state folder: writable, with room, not in use; and its key."""
    area, folder = "state", config.path(config.state.folder)
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return [
            Finding.problem(
                area, f"{folder} cannot be written", "name a folder that this account owns"
            )
        ]
    free = shutil.disk_usage(there).free
    access = "written" if folder.exists() else "created"
    said = f"{folder} can be {access}, {free / 2**30:.1f} GiB free"
    findings = [Finding.ok(area, said)]
    if free < _NO_ROOM:
        findings = [Finding.problem(area, f"{said}: too little", "make room on that disk")]
    elif free < _LITTLE_ROOM:
        findings = [Finding.warning(area, said, "make room: a journal may need some of it")]
    return [*findings, *_lock(area, folder), *_state_key(area, config)]


def check_output(config: PartyConfig) -> list[Finding]:
    """Whether the model, the log and the figures can be written."""
    output, findings = config.output, []
    for name in output.files:
        path = config.path(name)
        target = path if path.exists() else path.parent
        if path.is_dir() or not os.access(target, os.W_OK):
            findings.append(
                Finding.problem(
                    "output",
                    f"{path} cannot be written",
                    "name a file in a folder that exists and may be written",
                )
            )
    return findings or [Finding.ok("output", "all output files can be written")]


def _lock(area: str, folder: Path) -> list[Finding]:
    try:
        lock = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return []
    try:
        # Shared, and given back at once: a party that starts at this moment waits.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return [
            Finding.warning(
                area, f"a process is using {folder}", "wait for it before you start another"
            )
        ]
    finally:
        os.close(lock)
    return []


def _state_key(area: str, config: PartyConfig) -> list[Finding]:
    try:
        path, warnings = key_place(config)
    except StateError as problem:
        return [Finding.from_error(area, problem)]
    if not path.exists():
        return []
    places = [Finding.warning(area, warning, "move the key") for warning in warnings]
    try:
        whole = len(bytes.fromhex(path.read_text(encoding="ascii").strip())) == KEY_BYTES
    except (OSError, ValueError):
        whole = False
    if not whole:
        return [
            Finding.problem(
                area,
                f"the state key {path} is not 64 hexadecimal digits, or cannot be read",
                "restore the one that was used; without it an unfinished session is lost",
            )
        ]
    return [*places, *_exposure(area, path, "the state key")]


def _exposure(area: str, path: Path, role: str) -> list[Finding]:
    """A finding where others than its owner may read a secret file; none if it is absent."""
    try:
        status = path.stat()
    except OSError:
        return []
    if is_private(status):
        return []
    said, way_out = f"{role} {path} can be read or written by", f"chmod 600 {path}"
    if status.st_mode & stat.S_IRWXO:
        return [Finding.problem(area, f"{said} every user of this machine", way_out)]
    return [Finding.warning(area, f"{said} its group", way_out)]


_LINK_SECONDS = 3.0


def check_link(config: PartyConfig) -> Finding:
    """Whether the port is free, or the peer can be reached; nothing is sent to it."""
    listen, address = config.link.listen, config.link.listen or str(config.link.connect)
    where = f"{config.where}, [link] {'connect' if listen is None else 'listen'}"
    try:
        check_address(address, where=where, any_port=listen is not None)
    except ConfigError as problem:
        return Finding.from_error("link", problem)
    host, port = split_address(address)
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return Finding.problem(
            "link",
            f"the name {host} does not resolve to an address",
            "correct it in the file, or add it to the name service or /etc/hosts",
        )
    return _port(address, places[0]) if listen else _peer(address)


def _port(address: str, place: tuple[socket.AddressFamily, object, int, str, object]) -> Finding:
    try:
        with socket.socket(place[0], socket.SOCK_STREAM) as server:
            # As the real server does: a port that is only cooling down is free.
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(place[4])  # type: ignore[arg-type]
            server.listen(1)
    except OSError as problem:
        taken = problem.errno == errno.EADDRINUSE
        return Finding.problem(
            "link",
            f"{address} cannot be opened: "
            + ("another program has the port" if taken else str(problem.strerror or problem)),
            "end that program, or name another port on both sides"
            if taken
            else "name an address of this machine, such as 0.0.0.0, and a port from 1024 on",
        )
    return Finding.ok("link", f"{address} is free; only the peer can test whether it is reachable")


def _peer(address: str) -> Finding:
    reason = obstacle(address, _LINK_SECONDS)
    if not reason:
        return Finding.ok("link", f"{address} can be reached; its identity was not checked")
    return Finding.warning(
        "link",
        f"{address} does not answer: {reason}",
        "start the peer and try again; otherwise check both firewalls",
    )
