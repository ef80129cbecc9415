"""Consent stores of format 2, which release 0.3 wrote: read with every check, and converted.

A row's value was in one of an account's buckets. In an account of scores it packed the number of
models, the trainings and a bit for each of the first models; further accounts had the bits of
further models, and the repetitions.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taciturn.party.consent.database import damaged
from taciturn.party.consent.records import SCHEMA, VALUE, Line, Pairs, Records, checksum
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


# A model whose rows were all at their limit has its entry, and may have no account of its bits.
_ABSENT = _Former([], np.empty((2, 0), np.int64))


def converted(database: sqlite3.Connection, path: Path) -> Records:
    """The records of a file of format 2, written in tables of today, within its transaction.

    FileError where one was changed or lost; then nothing is written.
    """
    salt, generation, accounts = read_former(database, path)
    for table in ("meta", "accounts", "entries", "buckets"):
        database.execute(f"drop table {table}")
    for statement in SCHEMA:
        database.execute(statement)
    database.execute(f"pragma user_version = {CONSENT_VERSION}")
    meta = (1, salt, generation)
    database.execute("insert into meta values (?, ?, ?, ?)", (*meta, checksum([meta])))
    records = Records(database, path)
    for (namespace, name), former in accounts.items():
        if namespace in (SCORES, REPETITIONS, _SCORED_BY):
            continue
        account = records.account(namespace, name)
        for _, _, kind, entry, value in former.entries:
            account.write_entry(kind, entry, value)
        account.write_values(former.rows[0], former.rows[1])
    for partner in [name for namespace, name in accounts if namespace == SCORES]:
        _convert_scores(records, accounts, partner)
    return records


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
            place = _SCORED_BY, json.dumps([partner, 1 + block])
            of_model, further = accounts.get(place, _ABSENT).rows
            scored = further >> bit & 1
        account.write(of_model, {model_column(name): scored})
    if (REPETITIONS, partner) in accounts:
        tags, repeated = accounts[REPETITIONS, partner].rows
        account.write_values(tags, repeated, REPETITIONS)


def read_former(
    database: sqlite3.Connection, path: Path
) -> tuple[bytes, int, dict[tuple[str, str], _Former]]:
    """Salt, generation and accounts of a file of format 2; FileError where one is damaged."""
    meta = database.execute("select salt, generation, account_sum, sum from meta").fetchall()
    lines = database.execute("select * from accounts").fetchall()
    if (
        len(meta) != 1
        or meta[0][2:] != (checksum(lines), checksum([meta[0][:3]]))
        or database.execute("pragma quick_check(1)").fetchall() != [("ok",)]
    ):
        raise damaged(path)
    return (*meta[0][:2], {line[1:3]: _account(database, path, line) for line in lines})


def _account(database: sqlite3.Connection, path: Path, line: Line) -> _Former:
    account, _, _, entry_sum, row_count, bucket_count, bucket_sum = line
    query = "select * from entries where account = ? order by number"
    entries = database.execute(query, (account,)).fetchall()
    query = "select id, content, sum from buckets where id between ? and ? order by id"
    ids = account << 32, (account << 32) + (1 << 32) - 1
    buckets = database.execute(query, ids).fetchall()
    if (checksum(entries), len(buckets)) != (entry_sum, bucket_count) or not all(
        isinstance(content, bytes)
        and stored == zlib.crc32(content, zlib.crc32(number.to_bytes(8, "little")))
        for number, content, stored in buckets
    ):
        raise damaged(path)
    content = b"".join(bucket[1] for bucket in buckets)
    pairs = np.frombuffer(content, "<i8").astype(np.int64).reshape(-1, 2).T
    if (pairs.shape[1], sum(bucket[2] for bucket in buckets)) != (row_count, bucket_sum):
        raise damaged(path)
    return _Former(entries, pairs)
