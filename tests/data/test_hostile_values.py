"""Settings, agreements and tables that no program wrote: an error with the place, never a bug."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest

from taciturn.data.prepare import fit
from taciturn.data.source import TableSource
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import ColumnError, ConfigError
from taciturn.party.agreement_file import AgreementFile
from taciturn.party.config import PartyConfig
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Settings
from tests.expected import refused

HOSTILE = {
    "digits": "1" * 5000,
    "hexadecimal": "0x" + "F" * 5000,
    "brackets": "[" * 5000 + "]" * 5000,
    "beyond 64 bits": str(1 << 63),
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_no_value_of_a_file_is_too_long_or_too_deep_to_be_refused(value, tmp_path):
    path = tmp_path / "file.toml"
    path.write_text(f'role = "bob"\n[data]\nwinsorise = {value}\n')
    for read in (PartyConfig.read, Settings.read_toml, AgreementFile.read):
        with refused(ConfigError, names=path):
            read(path)


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 5000 + "]" * 5000, str(1 << 63)])
def test_no_value_of_a_peers_agreement_is_too_long_or_too_deep_to_be_refused(value):
    with pytest.raises(ConfigError):
        Agreement.parse(f'{{"epsilon": {value}}}')


def test_a_file_of_settings_has_a_largest_size(tmp_path):
    path = tmp_path / "large.toml"
    with path.open("wb") as stream:
        stream.truncate(512 << 20)
    with refused(ConfigError, names=path):
        PartyConfig.read(path)


def test_a_path_with_a_null_character_is_refused(tmp_path):
    from tests.party.sides import write_config

    path = write_config(tmp_path, "bob", state={"folder": "a\\u0000b"})
    with refused(ConfigError, setting="folder"):
        PartyConfig.read(path)


def test_there_is_a_largest_number_of_bins():
    with refused(ConfigError, setting="bins"):
        Settings.from_mapping({"bins": 1_000_000_000})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pl.Date, 2**31 - 1),
        (pl.Date, -(2**31)),
        (pl.Datetime("ms"), 2**63 - 1),
        (pl.Datetime("us"), 2**63 - 1),
    ],
    ids=str,
)
def test_a_date_beyond_the_calendar_names_its_row(kind, value, tmp_path: Path):
    physical = pl.Int32 if kind == pl.Date else pl.Int64
    days = pl.Series("day", [0] * 30 + [value], dtype=physical).cast(kind)
    path = tmp_path / "dates.parquet"
    pl.DataFrame({"id": [f"p{n}" for n in range(31)], "day": days}).write_parquet(path)
    with refused(ColumnError, names=["day", "31"]):
        fit(TableSource.at(path).frame(text=["id"]).drop("id"), DEFAULTS)


def test_nanoseconds_are_dates_of_the_calendar():
    day = pl.Series("day", [dt.datetime(1990, 1, 1 + n) for n in range(9)]).cast(pl.Datetime("ns"))
    fit(pl.DataFrame({"day": day}), DEFAULTS)
