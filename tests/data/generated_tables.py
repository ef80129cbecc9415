"""An oracle: generated tables of every kind, and digests of all that the package answers to them.

``python -m tests.data.generated_tables`` in a checkout writes the digests of its answers to
``generated_tables.json``; with ``--exact FILE`` it writes the answers in full, to the last bit of
every number, so that two checkouts can be compared by ``diff``.
"""

from __future__ import annotations

import datetime
import gzip
import json
import math
import random
import re
import sqlite3
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from taciturn.data import csv_files
from taciturn.data.csv_files import Dialect
from taciturn.data.database import Connection
from taciturn.data.ids import Normalisation, held_out_rows
from taciturn.data.label_encoding import LabelEncoding
from taciturn.data.prepare import ChosenRows, Preparation, fit, fit_and_prepare
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.source import TableSource
from taciturn.data.spellings import describe_spellings, spellings
from taciturn.data.target_leakage import label_name_notes, leakage_notes, width_notes
from taciturn.data.user_table import DEFAULTS, UserTable, user_data, user_rows
from taciturn.errors import TableError, TaciturnError

TABLES = 600
RECORDED = Path(__file__).with_name("generated_tables.json")

Words = list[str | None]
Draw = random.Random

# --- columns -------------------------------------------------------------------------------------

_CATEGORIES = ("north", "south", "east", "west", "North ", "SOUTH", "Zürich", "b=c", "(other)")
_MONTHS = "%d %B %Y", "%d-%B-%Y", "%B %d, %Y", "%d-%b-%y", "%d %b %Y"
_DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%Y%m%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+02:00", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p",
    "%d/%m/%Y %H:%M:%S", *_MONTHS,
)  # fmt: skip
_YES_NO = (
    ("yes", "no"), ("Yes", "No", "y"), ("ja", "nein", "J", "n"), ("oui", "non"), ("1", "0", "yes"),
    ("sí", "no", "SI"), ("true", "false"), ("TRUE", "FALSE"), ("t", "f"), ("on", "off", "1", "0"),
)  # fmt: skip
_MONEY = (
    "${:,.2f}", "US${:,.2f}", "{:,.2f} €", "CHF {:.0f}.-", "EUR {:,.2f}", "{:,.0f} kr",
    "£{:.2f}", "({:,.2f})", "{:,.2f}-", "R$ {:,.2f}", "{:.1f}%", "{:.1f} %", "₹{:,.0f}",
    "{:,.2f} PLN", "ZAR {:,.2f}", "{:,.0f} Ft", "JPY {:,.0f}", "− {:.2f}", "Rs. {:,.2f}", "+{:.1f}",
)  # fmt: skip


def _swap(text: str) -> str:
    """A number of English notation with the marks of the continent."""
    return text.translate(str.maketrans(",.", ".,"))


def _amount(draw: Draw) -> float:
    return draw.choice((draw.gauss(0, 50), draw.lognormvariate(7, 2), draw.randint(0, 9)))


def _whole(draw: Draw, rows: int) -> Words:
    size = draw.choice((3, 10, 100, 10**6, 10**12))
    low = draw.choice((0, 0, -size))
    return [str(draw.randint(low, size)) for _ in range(rows)]


def _real(draw: Draw, rows: int) -> Words:
    digits = draw.choice((1, 2, 3, 3, 6))
    swap = draw.random() < 0.4
    form = draw.choice(("{:.%df}", "{:,.%df}")) % digits
    mixed = draw.random() < 0.15
    words: Words = []
    for _ in range(rows):
        text = form.format(_amount(draw))
        words.append(_swap(text) if swap or (mixed and draw.random() < 0.3) else text)
    return words


def _unclear(draw: Draw, rows: int) -> Words:
    """Three digits behind a mark, among whole numbers or not."""
    mark, whole = draw.choice(".,"), draw.choice((0.0, 0.2, 0.5))
    return [
        str(draw.randint(1, 999))
        + (f"{mark}{draw.randint(0, 999):03d}" if draw.random() > whole else "")
        for _ in range(rows)
    ]


def _grouped(draw: Draw, rows: int) -> Words:
    sign = draw.choice(("'", "’", " ", "\u00a0", "\u202f", ","))
    tail = draw.choice(("", ".5", ",25"))
    return [f"{draw.randint(0, 10**7):,}".replace(",", sign) + tail for _ in range(rows)]


def _lakhs(draw: Draw, rows: int) -> Words:
    return [
        f"{draw.randint(1, 99)},{draw.randint(0, 99):02d},{draw.randint(0, 999):03d}"
        for _ in range(rows)
    ]


def _money(draw: Draw, rows: int) -> Words:
    form, swap = draw.choice(_MONEY), draw.random() < 0.4
    other = draw.choice((form, form, form, draw.choice(_MONEY), "{:,.2f}"))
    words: Words = []
    for _ in range(rows):
        text = (form if draw.random() < 0.8 else other).format(abs(_amount(draw)))
        words.append(_swap(text) if swap else text)
    return words


def _codes(draw: Draw, rows: int) -> Words:
    width = draw.choice((3, 5))
    return [f"{draw.randint(0, draw.choice((10**width - 1, 30))):0{width}d}" for _ in range(rows)]


def _phones(draw: Draw, rows: int) -> Words:
    start = draw.choice(("+49 ", "0", "("))
    close = ") " if start == "(" else " "
    return [
        f"{start}{draw.randint(10, 99)}{close}{draw.randint(100, 999)} {draw.randint(1000, 9999)}"
        for _ in range(rows)
    ]


def _moment(draw: Draw, low: int = 1935, high: int = 2030) -> datetime.datetime:
    day = datetime.datetime(low, 1, 1) + datetime.timedelta(
        days=draw.randint(0, 365 * (high - low))
    )
    return day + datetime.timedelta(minutes=draw.randint(0, 1439))


def _dates(draw: Draw, rows: int) -> Words:
    form = draw.choice(_DATES)
    other = form if draw.random() < 0.7 else draw.choice(_DATES)
    low, high = draw.choice(((1935, 2030), (1990, 2026), (2020, 2026), (2001, 2060)))
    plain = draw.random() < 0.2
    early = draw.random() < 0.1
    words: Words = []
    for _ in range(rows):
        moment = _moment(draw, low, high)
        if early:
            moment = moment.replace(day=1 + moment.day % 12)
        chosen = form if draw.random() < 0.8 else other
        if plain:
            chosen = chosen.replace("%d", "%-d").replace("%m", "%-m")
        words.append(moment.strftime(chosen))
    return words


def _yes_no(draw: Draw, rows: int) -> Words:
    words = draw.choice(_YES_NO)
    return [draw.choice(words) for _ in range(rows)]


def _categories(draw: Draw, rows: int) -> Words:
    levels = draw.sample(_CATEGORIES, draw.randint(1, 6))
    return [levels[min(int(draw.expovariate(1.0)), len(levels) - 1)] for _ in range(rows)]


def _many_levels(draw: Draw, rows: int) -> Words:
    count = draw.choice((15, 30, 130))
    return [f"{draw.choice('Ll')}evel {int(count * draw.random() ** 2)}" for _ in range(rows)]


def _free_text(draw: Draw, rows: int) -> Words:
    kind = draw.choice(("{}@mail.example", "note {}", "{:016x}", "Tel. {}", "{} Main St."))
    return [kind.format(draw.randrange(10**9)) for _ in range(rows)]


def _constant(draw: Draw, rows: int) -> Words:
    return [draw.choice(("7", "0.0", "same", "2026-01-01", "true"))] * rows


def _absent(draw: Draw, rows: int) -> Words:
    return [None] * rows


_HUGE = (
    ("1e308", "-1e308", "5"), ("1e300", "2", "3"), ("9" * 25, "1"), ("inf", "1", "2"),
    ("1e-320", "0"), ("NaN", "1.5", "2"), ("-1e15", "1e15"), ("1E5", "2e3"),
)  # fmt: skip


def _huge(draw: Draw, rows: int) -> Words:
    values = draw.choice(_HUGE)
    return [draw.choice(values) for _ in range(rows)]


def _spikes(draw: Draw, rows: int) -> Words:
    return [str(draw.choice((0,) * 60 + (1, 10**7))) for _ in range(rows)]


KINDS: tuple[Callable[[Draw, int], Words], ...] = (
    _whole, _whole, _real, _real, _unclear, _grouped, _lakhs, _money, _money, _codes, _phones,
    _dates, _dates, _dates, _yes_no, _categories, _categories, _many_levels, _free_text, _constant,
    _absent, _huge, _spikes,
)  # fmt: skip
_GAPS = ("", "NA", "?", "n/a", "NaN", " ", "missing")
_STRAYS = ("unknown", "k.A.", "0000-00-00", "-", "12-34", "<5", "31.02.2020")
_NAMES = ("age", "income", "since", "zip code", "Straße", "x=1", "a.b", "target", "churn_flag", "y")


def _column(draw: Draw, rows: int) -> Words:
    words = draw.choice(KINDS)(draw, rows)
    if draw.random() < 0.35:
        gap = draw.choice(_GAPS)
        share = draw.choice((0.02, 0.2, 0.6))
        words = [gap if draw.random() < share else word for word in words]
    if draw.random() < 0.05:
        stray = draw.choice(_STRAYS)
        words = [stray if draw.random() < 0.04 else word for word in words]
    if draw.random() < 0.1:
        words = [word if word is None else f" {word} " for word in words]
    return words


# --- ids and labels ------------------------------------------------------------------------------


def _ids(draw: Draw, rows: int) -> Words:
    form = draw.choice(("{}", "{}", "{:05d}", "p{}", "P-{:03d}", "Ünï{}"))
    words: Words = [form.format(number) for number in draw.sample(range(rows * 2), rows)]
    for defect, chance in ((_respelled, 0.2), (_repeated, 0.1), (_unfit, 0.03)):
        if draw.random() < chance:
            words = defect(draw, words)
    return words


def _respelled(draw: Draw, words: Words) -> Words:
    ways: tuple[Callable[[str], str], ...] = (
        str.upper, str.title, lambda text: f" {text}", lambda text: f"0{text}",
        lambda text: unicodedata.normalize("NFD", text), lambda text: f"{text}\u2168",
    )  # fmt: skip
    way = draw.choice(ways)
    return [way(word) if word and draw.random() < 0.3 else word for word in words]


def _repeated(draw: Draw, words: Words) -> Words:
    again = draw.choice(words)
    return [again if draw.random() < 0.05 else word for word in words]


def _unfit(draw: Draw, words: Words) -> Words:
    bad = draw.choice(("", "a\tb", "\u200b", None))
    return [bad if at == len(words) // 2 else word for at, word in enumerate(words)]


def _labels(draw: Draw, rows: int, family: str) -> tuple[Words, LabelEncoding]:
    if family != "binomial":
        top = draw.choice((5, 5, 500))
        words: Words = [str(draw.randint(int(family == "gamma"), top)) for _ in range(rows)]
        if draw.random() < 0.1:
            words[rows // 3] = draw.choice(("", "-1", "0.5", "x", "inf"))
        beside = None if family == "gaussian" else draw.choice((None, "exposure"))
        weights = draw.choice((None, None, None, "exposure" if beside is None else None))
        return words, LabelEncoding(family=family, exposure=beside, weights=weights)
    pairs = (
        ("1", "0"),
        ("1", "0"),
        ("yes", "no"),
        ("True", "False"),
        ("bad", "good"),
        ("2", "1"),
        ("1", "1"),
    )
    one, zero = draw.choice(pairs)
    words = [one if draw.random() < 0.3 else zero for _ in range(rows)]
    if draw.random() < 0.08:
        words[rows // 3] = draw.choice(("", "?", "maybe", "0.5"))
    clear = (one, zero) in pairs[:2] or one == "True"
    positive = () if clear != (draw.random() < 0.1) else (one,)
    return words, LabelEncoding(positive, draw.choice(((), (), (zero,))) if positive else ())


# --- settings ------------------------------------------------------------------------------------


_FORMATS = (("%d.%m.%Y",), ("%m/%d/%Y", "iso"), ("%d/%m/%y",), ("%Y%m%d",))


def _settings(draw: Draw, names: list[str]) -> dict[str, Any]:
    any_name = draw.choice((*names, "*", "absent") if draw.random() < 0.1 else (*names, "*"))
    every: dict[str, Any] = {
        "impute": draw.choice(("median", "mean", "bin", "none")),
        "scale": draw.choice(("standard", "none")),
        "clip": draw.choice((3.0, 0.5)),
        "scale_categories": True,
        "drop_first": False,
        "max_levels": draw.choice((2, 10)),
        "winsorise": draw.choice(({}, {"*": 0.05}, {any_name: 0.1})),
        "missing_indicator": False,
        "min_frequency": draw.choice((0.0, 0.1)),
        "normalise_categories": False,
        "drop": (any_name,),
        "keep": tuple(draw.sample(names, max(1, len(names) // 2))),
        "type": {any_name: draw.choice(("number", "category", "date", "text"))},
        "transform": {any_name: draw.choice(("none", "log", "rank", "yeo-johnson"))},
        "bins": {any_name: draw.choice((0, 2, 5, (10.0,), (0.0, 5.5, 1e6)))},
        "decimal": {any_name: draw.choice(".,")},
        "date_format": {any_name: draw.choice(_FORMATS)},
        "date_parts": draw.choice((("year",), ("month", "weekday"), ("year", "month", "weekday"))),
    }  # fmt: skip
    chosen = draw.sample(sorted(every), draw.choice((0, 0, 1, 2, 4)))
    given = {name: every[name] for name in chosen}
    for setting, value in given.items():
        if isinstance(value, dict):
            given[setting] = {**getattr(DEFAULTS, setting), **value}
    return given


# --- files ---------------------------------------------------------------------------------------


def _quoted(draw: Draw, word: str | None, separator: str, quotes: bool) -> str:
    text = "" if word is None else word
    if quotes or any(sign in text for sign in (separator, '"', "\n")):
        return '"' + text.replace('"', '""') + '"'
    return text


_ENCODINGS: tuple[tuple[str, str | None], ...] = (
    *(("utf-8", None),) * 7,
    ("utf-8-sig", None),
    ("utf-16", None),
    ("latin-1", "latin-1"),
    ("cp1252", None),
)


def _csv(
    draw: Draw, folder: Path, table: dict[str, Words], dialect: Dialect
) -> tuple[Path, Dialect]:
    separator = draw.choice(",,,;;\t|")
    quotes, end = draw.random() < 0.2, draw.choice(("\n", "\n", "\n", "\r\n"))
    lines = [separator.join(_quoted(draw, word, separator, quotes) for word in (name, *words))
             for name, words in table.items()]  # fmt: skip
    rows = [
        [_quoted(draw, word, separator, quotes) for word in (name, *words)]
        for name, words in table.items()
    ]
    lines = [separator.join(row) for row in zip(*rows, strict=True)]
    if draw.random() < 0.08:
        _damage(draw, lines, separator)
    text = end.join(lines) + draw.choice((end, end, "", end * 3))
    ending = draw.choice(
        (".csv", ".csv", ".csv", ".csv.gz", ".CSV", ".tsv" if separator == "\t" else ".csv")
    )
    encoding, given = draw.choice(_ENCODINGS)
    content = text.encode(encoding, errors="replace")
    path = folder / f"table{ending}"
    path.write_bytes(gzip.compress(content, mtime=0) if ending.endswith(".gz") else content)
    return path, replace(dialect, encoding=given, separator=draw.choice((None, None, separator)))


def _damage(draw: Draw, lines: list[str], separator: str) -> None:
    at = draw.randrange(len(lines))
    damage: tuple[str, ...] = (
        lines[at] + separator + "1", lines[at].rpartition(separator)[0], "", lines[at] + '"open',
        '"' + lines[at], separator.join("1.5" for _ in lines[at].split(separator)),
    )  # fmt: skip
    lines[at] = draw.choice(damage)
    if draw.random() < 0.2:
        del lines[draw.choice((0, 1)) :]


def _frame(draw: Draw, table: dict[str, Words], *, foreign: bool) -> pl.DataFrame:
    """Columns of the types that their values have, and now and then of another one."""
    columns = {}
    for name, words in table.items():
        series = pl.Series(name, words, pl.String)
        kinds = (pl.Int64, pl.Float64) + ((pl.Int32, pl.Float32, pl.Categorical) if foreign else ())
        for kind in draw.sample(kinds, len(kinds)):
            cast = series.cast(kind, strict=False)
            if cast.null_count() == series.null_count() and draw.random() < 0.9:
                series = cast
                break
        else:
            moments = series.str.to_datetime("%Y-%m-%d", strict=False)
            if moments.null_count() == series.null_count() < len(series):
                series = moments.cast(
                    draw.choice(
                        (pl.Date, pl.Datetime("us"), pl.Datetime("ms"), pl.Datetime("ns", "UTC"))
                    )
                )
            elif series.is_in(["true", "false"]).all():
                series = series == "true"
        columns[name] = series
    return pl.DataFrame(columns)


def _parquet(draw: Draw, folder: Path, table: dict[str, Words]) -> Path:
    frame = _frame(draw, table, foreign=True)
    parts = draw.choice((1, 1, 2, 3))
    if parts == 1:
        frame.write_parquet(folder / "table.parquet")
        return folder / "table.parquet"
    below = folder / "parts"
    below.mkdir()
    size = -(-frame.height // parts)
    for number in range(parts):
        part = frame.slice(number * size, size)
        if number == 1 and draw.random() < 0.1:
            part = draw.choice(
                (part.drop(part.columns[-1]), part.with_columns(pl.lit(1.5).alias(part.columns[0])))
            )
        part.write_parquet(below / f"part-{number}.parquet")
    return draw.choice((below, below / "*.parquet"))


def _sqlite(draw: Draw, folder: Path, table: dict[str, Words], dialect: Dialect) -> TableSource:
    frame = _frame(draw, table, foreign=False)
    values = [
        [value.isoformat(" ") if isinstance(value, datetime.datetime) else
         value.isoformat() if isinstance(value, datetime.date) else value for value in row]
        for row in frame.rows()
    ]  # fmt: skip
    names = ['"' + name.replace('"', '""') + '"' for name in frame.columns]
    with sqlite3.connect(folder / "table.db") as base:
        base.execute(f"create table people ({', '.join(names)})")
        places = ", ".join("?" * len(names))
        base.executemany(f"insert into people values ({places})", values)  # noqa: S608 - our names
    base.close()
    select = draw.choice(("select * from people",) * 9 + ("SELECT * FROM people;", "select 1, 1"))
    return TableSource.from_query(select, Connection("sqlite:table.db", folder), dialect)


def _pandas(draw: Draw, table: dict[str, Words]) -> object:
    import pandas as pd

    frame = _frame(draw, table, foreign=False)
    columns: dict[str, Any] = {}
    for name in frame.columns:
        values = frame[name].to_list()
        kinds: tuple[Any, ...] = (None, object)
        if frame[name].dtype == pl.Int64:
            kinds = (None, object, "Int64", "float64")
        elif frame[name].dtype == pl.String:
            kinds = (None, object, "category", "string")
        columns[name] = pd.Series(values, dtype=draw.choice(kinds))
    return pd.DataFrame(columns)


# --- answers -------------------------------------------------------------------------------------

_NORMALISATIONS = ("none", "trim", "case,trim", "trim,case,nfkc,zeros", "zeros")


@contextmanager
def _large_from(size: int) -> Iterator[None]:
    before, csv_files.LARGE_CSV = csv_files.LARGE_CSV, size
    try:
        yield
    finally:
        csv_files.LARGE_CSV = before


def _facts(problem: TaciturnError, folder: Path) -> list[Any]:
    """Kind, setting, place and everything quoted or counted of an error: all but its wording."""
    if isinstance(problem, TableError):
        return ["TableError", *(_facts(part, folder) for part in problem.problems)]
    text = f"{problem.message} | {problem.hint}".replace(str(folder), "")
    named = re.findall(r"'[^']*'|\d[\d,.]*\d|\d", text)
    return [type(problem).__name__, problem.setting, problem.where.replace(str(folder), ""), named]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.10g}")
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _matrix(values: np.ndarray[Any, Any]) -> list[Any]:
    return [list(values.shape), *(float(value) for value in values.ravel())]


@dataclass
class Oracle:
    """What the package answers to one table, by aspect."""

    folder: Path
    options: UserTable
    label: str
    id_column: str | None
    answers: dict[str, Any] = field(default_factory=dict)

    def ask(self, aspect: str, question: Callable[[], Any]) -> Any:
        """Record the answer, or the facts of the error that there is instead."""
        try:
            answer = question()
        except TaciturnError as problem:
            answer = _facts(problem, self.folder)
        except Exception as problem:
            # A defect, which a change may repair.
            answer = ["defect", type(problem).__name__]
        self.answers[aspect] = answer

    def ask_all(self, source: Any, normalisation: Normalisation) -> None:
        known = isinstance(source, TableSource)
        read = source if known else TableSource.at(source, self.options.dialect)
        self.ask("source", lambda: self.source(read))
        self.ask("columns", lambda: self.columns(read))
        if self.id_column is not None:
            self.ask("ids", lambda: self.ids(read, normalisation))
        if not known:
            self.ask("fit", lambda: self.fit(source))
        if self.id_column is not None and not isinstance(read.location, pl.DataFrame):
            self.ask("party", lambda: self.party(read, None))
            self.ask("party, converted", lambda: self.party(read, self.folder / "converted"))

    def source(self, read: TableSource) -> Any:
        frame = read.frame(text=[self.id_column] if self.id_column else [])
        digest = read.digest() if read.name.endswith(".csv") else None
        kinds = [str(kind) for kind in frame.dtypes]
        files = [Path(name).name for name, *_ in read.fingerprints()]
        return [kinds, frame.columns, frame.write_json(), files, digest, read.name]

    def ids(self, read: TableSource, normalisation: Normalisation) -> Any:
        assert self.id_column is not None
        found = read.ids(self.id_column, normalisation)
        tried = spellings(found.own_ids, Normalisation())
        return [
            found.own_ids.digest(),
            found.common.digest(),
            None if found.rows is None else found.rows.tolist(),
            describe_spellings(tried, len(found.own_ids)),
            [spelling.mixed for spelling in tried],
        ]

    def columns(self, read: TableSource) -> Any:
        """What becomes of each column alone."""
        frame = read.frame()
        settings = replace(self.options.settings, keep=None, drop=())
        return [self.column(frame.select(name), settings) for name in frame.columns]

    def column(self, frame: pl.DataFrame, settings: PrepareSettings) -> Any:
        try:
            plan = fit(frame, settings)
            return [plan.to_json(), plan.describe(), _matrix(plan.apply(frame))]
        except TaciturnError as problem:
            return _facts(problem, self.folder)

    def fit(self, source: Any) -> Any:
        raw = user_data(
            source, label_column=self.label, id_column=self.id_column, table=self.options
        )
        train = np.arange(0, raw.rows, 1 + (raw.rows > 9))[::-1].copy()
        plan = fit(raw.frame, raw.settings, ids=raw.ids.take(train), rows=train)
        again = Preparation.from_json(json.loads(json.dumps(plan.to_json())))
        bins = [(bin_.label, bin_.output, bin_.share) for rule in plan.rules for bin_ in rule.bins]
        labels = [float(label) for label in raw.labels.values]
        self.ask("values", lambda: _matrix(plan.apply(raw.frame, ids=raw.ids)))
        text = plan.to_json(), plan.columns, plan.sources, plan.describe(), again == plan
        return [*text, bins, labels, raw.ids.digest()]

    def party(self, source: TableSource, folder: Path | None) -> Any:
        assert self.id_column is not None
        with _large_from(1 << 30 if folder is None else -1):
            rows = user_rows(
                source,
                label_column=self.label,
                id_column=self.id_column,
                table=self.options,
                folder=folder,
            )
            held = held_out_rows(rows.ids, 0.3, "salt")
            places = [np.flatnonzero(~held), np.flatnonzero(held)]
            chosen = [ChosenRows(rows.ids.take(at), at) for at in places if len(at)]
            plan, tables = fit_and_prepare(rows.columns, rows.settings, chosen, intercept=True)
            named = label_name_notes(rows.columns)
        assert rows.labels is not None
        labels = rows.labels.take(chosen[0].rows, chosen[0].ids)
        notes = *leakage_notes(tables[0], labels), *width_notes(len(plan.columns), labels.rows)
        factors = rows.labels.exposure, rows.labels.weights
        return [
            plan.to_json(),
            [(table.columns, _matrix(table.values)) for table in tables],
            [*notes, *named, *rows.remarks],
            [labels.values.tolist(), rows.ids.digest()],
            [None if factor is None else factor.tolist() for factor in factors],
        ]


def answers(number: int) -> dict[str, Any]:
    """All that the package answers to one of the generated tables."""
    draw = random.Random(number)  # noqa: S311 - the same tables at every run
    rows = draw.choice((1, 2, 5, 12, 40, 40, 120, 300))
    names = draw.sample(_NAMES, draw.randint(1, 7))
    table = {"id": _ids(draw, rows), **{name: _column(draw, rows) for name in names}}
    family = draw.choice(("binomial",) * 9 + ("poisson", "gaussian", "gamma"))
    table["outcome"], encoding = _labels(draw, rows, family)
    table["exposure"] = [str(draw.randint(1, 9)) for _ in range(rows)]
    if draw.random() < 0.05:
        table[draw.choice((" ", "7", "8.5"))] = ["1"] * rows
    dialect = Dialect(
        na_values=draw.choice((None, None, None, ("missing", "-"), ("0",))),
        duplicates=draw.choice((None, None, "error", "first", "last")),
    )
    given = _settings(draw, names)
    with TemporaryDirectory() as path, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        folder = Path(path)
        source, dialect = _stored(draw, folder, table, dialect)
        try:
            options = UserTable(replace(DEFAULTS, **given), dialect, encoding)
            encoding.require_family()
        except TaciturnError as problem:
            return {"options": _facts(problem, folder)}
        label = draw.choice(("outcome",) * 40 + ("out",))
        id_column = draw.choice(("id",) * 30 + (None, None, "ID"))
        oracle = Oracle(folder, options, label, id_column)
        oracle.ask_all(source, Normalisation.parse(draw.choice(_NORMALISATIONS)))
    messages = {str(warning.message).replace(path, "") for warning in warned}
    return {**oracle.answers, "warnings": sorted(messages)}


def _stored(
    draw: Draw, folder: Path, table: dict[str, Words], dialect: Dialect
) -> tuple[Any, Dialect]:
    kind = draw.choice(("csv",) * 5 + ("parquet", "parquet", "sqlite", "polars", "pandas"))
    if kind == "csv":
        return _csv(draw, folder, table, dialect)
    if kind == "parquet":
        return _parquet(draw, folder, table), dialect
    if kind == "sqlite":
        return _sqlite(draw, folder, table, dialect), dialect
    return (
        _frame(draw, table, foreign=True) if kind == "polars" else _pandas(draw, table)
    ), dialect


def digests(number: int) -> dict[str, str]:
    """A digest of each answer, with numbers rounded to what every machine computes."""
    return {
        aspect: sha256(
            json.dumps(_plain(answer), ensure_ascii=False).encode(errors="replace")
        ).hexdigest()[:10]
        for aspect, answer in answers(number).items()
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--exact"]:
        with Path(sys.argv[2]).open("w", encoding="utf-8", errors="replace") as stream:
            for table in range(TABLES):
                for aspect, answer in answers(table).items():
                    shown = json.dumps(answer, ensure_ascii=False, default=str)
                    stream.write(f"{table} {aspect}: {shown}\n")
    else:
        lines = (f'"{table}": {json.dumps(digests(table))}' for table in range(TABLES))
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
