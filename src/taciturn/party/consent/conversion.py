"""Consent stores of format 2, which release 0.3 wrote: read with every check, and converted.

A row's value was in one of an account's buckets. In an account of scores it packed the number of
models, the trainings and a bit for each of the first models; further accounts had the bits of
further models, and the repetitions.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

import numpy as np

from taciturn.party.consent.database import Database, damaged
from taciturn.party.consent.records import SCHEMA, VALUE, Line, Pairs, Records, checksum_of
from taciturn.party.consent.scored_rows import REPETITIONS, SCORES, TRAININGS, model_column
from taciturn.version import CONSENT_VERSION

_SCORED_BY, _MODEL = "scored-by", "model"
# A packed value: 32 bits of models, 15 of trainings, and 16 models; a further account has 63 more.
_TRAINING_SHIFT, _SET_SHIFT, _SET_BITS, _FURTHER_BITS = 32, 47, 16, 63


@dataclass(frozen=True, slots=True)
class _Former:
    """Entries and rows of an account."""

    entries: list[Line]
    rows: Pairs


def verify(database: Database) -> None:
    """Read everything; FileError where a record was changed or lost."""
    _read(database)


def convert(database: Database) -> None:
    """Write the records of a file of format 2 in the format of today, in one transaction."""
    salt, generation, accounts = _read(database)
    for table in ("meta", "accounts", "entries", "buckets"):
        database.ask(f"drop table {table}")
    for statement in SCHEMA:
        database.ask(statement)
    database.ask(f"pragma user_version = {CONSENT_VERSION}")
    meta = (1, salt, generation)
    database.write("meta", [(*meta, checksum_of([meta]))])
    records = Records(database)
    for (namespace, name), former in accounts.items():
        if namespace in (SCORES, REPETITIONS, _SCORED_BY):
            continue
        account = records.account(namespace, name)
        for _, _, kind, entry, value in former.entries:
            account.write_entry(kind, entry, value)
        account.write_values(*former.rows)
    for partner in [name for namespace, name in accounts if namespace == SCORES]:
        _convert_scores(records, accounts, partner)
    records.save()


def _convert_scores(
    records: Records, accounts: dict[tuple[str, str], _Former], partner: str
) -> None:
    former, account = accounts[SCORES, partner], records.account(SCORES, partner)
    tags, packed = former.rows
    trainings = packed >> _TRAINING_SHIFT & (1 << _SET_SHIFT - _TRAINING_SHIFT) - 1
    account.write(tags, {VALUE: packed & (1 << _TRAINING_SHIFT) - 1, TRAININGS: trainings})
    for _, _, kind, name, value in former.entries:
        if kind != _MODEL:
            account.write_entry(kind, name, value)
            continue
        block, bit = divmod(int(value) - _SET_BITS, _FURTHER_BITS)
        scored = packed >> _SET_SHIFT + int(value) & 1
        of_model = tags
        if block >= 0:
            of_model, further = accounts[_SCORED_BY, json.dumps([partner, 1 + block])].rows
            scored = further >> bit & 1
        account.write(of_model, {model_column(name): scored})
    if (REPETITIONS, partner) in accounts:
        account.write_values(*accounts[REPETITIONS, partner].rows, REPETITIONS)


def _read(database: Database) -> tuple[bytes, int, dict[tuple[str, str], _Former]]:
    meta = database.ask("select salt, generation, account_sum, sum from meta")
    lines = database.ask("select * from accounts")
    if (
        len(meta) != 1
        or meta[0][3] != checksum_of([meta[0][:3]])
        or meta[0][2] != checksum_of(lines)
        or database.ask("pragma quick_check(1)") != [("ok",)]
    ):
        raise damaged(database.path)
    return (*meta[0][:2], {line[1:3]: _account(database, line) for line in lines})


def _account(database: Database, line: Line) -> _Former:
    account, _, _, entry_sum, row_count, bucket_count, bucket_sum = line
    entries = database.ask("select * from entries where account = ? order by number", (account,))
    query = "select id, content, sum from buckets where id between ? and ? order by id"
    buckets = database.ask(query, (account << 32, (account << 32) + (1 << 32) - 1))
    sound = checksum_of(entries) == entry_sum and len(buckets) == bucket_count
    if not sound or not all(
        isinstance(content, bytes)
        and checksum == zlib.crc32(content, zlib.crc32(number.to_bytes(8, "little")))
        for number, content, checksum in buckets
    ):
        raise damaged(database.path)
    content = b"".join(bucket[1] for bucket in buckets)
    tags, values = np.frombuffer(content, "<i8").astype(np.int64).reshape(-1, 2).T
    if (len(tags), sum(bucket[2] for bucket in buckets)) != (row_count, bucket_sum):
        raise damaged(database.path)
    return _Former(entries, (tags, values))
