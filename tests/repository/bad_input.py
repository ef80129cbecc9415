"""Wrong inputs to the commands, each with the error that it must get.

``tests/repository/test_errors.py`` checks the type, the setting and the form of every error;
``make docs`` makes the page of errors from the same table.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shlex
import socket
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from typer.exceptions import TyperException

from taciturn import audit_session
from taciturn.__main__ import dispatch, report
from taciturn.api import train
from taciturn.data.prepare import Preparation
from taciturn.data.rules import NumericRule
from taciturn.engine.transcript import Transcript, TranscriptFile
from taciturn.errors import (
    AgreementError,
    BudgetExceeded,
    CertificateError,
    ColumnError,
    ConfigError,
    CryptoError,
    DataError,
    DivergenceError,
    FileError,
    InfiniteValueError,
    LabelValueError,
    MissingValueError,
    OutputError,
    RowIdError,
    RowOrderError,
    ShapeError,
    SignatureError,
    TableError,
    TaciturnError,
    TranscriptError,
)
from taciturn.model.scores_file import StoredScores
from taciturn.model.share import ModelShare
from taciturn.party.templates import Trial, template
from taciturn.protocol.messages import Role
from taciturn.settings.agreement import Agreement
from taciturn.transport.certs import make_certificates
from taciturn.version import MODEL_VERSION
from tests.party.sides import run_both, write_config, write_tables

HEADER = "person,age,balance,region,default"
OWN = "--id person --label default --mechanism none --scheme clear --epochs 1 --seed 1"
MLFLOW = "--mlflow http://127.0.0.1:5000"
RECORDING = "--transcript alice.transcript"
SIDE = f"{RECORDING} --party alice.toml"
HIS_SIDE = "--transcript bob.transcript --party bob.toml"
NAMED = "train --dataset breast-cancer --mechanism none"
TAKEN = 47653
_HELD: list[socket.socket] = []
PROTECTED = "train --dataset breast-cancer --scheme clear --json --mechanism"


def people() -> list[list[str]]:
    return [
        [
            f"p{n:03d}",
            f"{20 + 7 * n % 50}",
            f"{(n * n % 17) / 4 - 2}",
            "ABC"[n % 3],
            f"{n * 5 % 3 % 2}",
        ]
        for n in range(60)
    ]


def table(rows: list[list[str]], header: str = HEADER) -> bytes:
    return "\n".join([header, *(",".join(row) for row in rows)]).encode() + b"\n"


def changed(row: int, column: int, value: str) -> Callable[[], bytes]:
    def make() -> bytes:
        rows = people()
        rows[row][column] = value
        return table(rows)

    return make


def every(column: int, value: Callable[[int], str]) -> Callable[[], bytes]:
    def make() -> bytes:
        rows = people() * 3
        for n, row in enumerate(rows):
            rows[n] = [*row[:column], value(n), *row[column + 1 :]]
            rows[n][0] = f"p{n:03d}" if column else value(n)
        return table(rows)

    return make


def parts(second: pl.Expr) -> dict[str, bytes]:
    """The people in two Parquet files, of which the second is changed."""
    frame, files = pl.read_csv(plain()), {}
    for number, part in enumerate((frame.head(30), frame.tail(30).select(second)), start=1):
        stream = io.BytesIO()
        part.write_parquet(stream)
        files[f"parts/{number}.parquet"] = stream.getvalue()
    return files


def port_in_use() -> dict[str, bytes]:
    """Takes a port for as long as this process runs; another program that has it does as well."""
    with contextlib.suppress(OSError):
        _HELD.append(socket.create_server(("127.0.0.1", TAKEN)))
    return {}


def plain() -> bytes:
    return table(people())


def several() -> bytes:
    """Labels in words, a repeated id, an infinity and a word among numbers."""
    rows = people()
    for row in rows:
        row[4] = "yes" if row[4] == "1" else "no"
    rows[3][0], rows[5][1], rows[7][2] = "p002", "old", "inf"
    return table(rows)


def open_date(number: int) -> str:
    """A date of which the day or the month may come first."""
    return f"{1 + number % 12}/{1 + number % 7}/2026"


def cut_gzip() -> bytes:
    whole = gzip.compress(table(people()), mtime=0)
    return whole[: len(whole) // 2]


def recorded() -> bytes:
    """A whole transcript of a small run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        train(
            dataset="breast-cancer", mechanism="none", scheme="clear", seed=1, epochs=1, record=path
        )
        return path.read_bytes()


@cache
def session_files() -> dict[str, bytes]:
    """Both parties' files, tables, models and recordings of a small real session."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        for role in ("alice", "bob"):
            write_config(folder, role, agreement={"mechanism": "add", "epsilon": 2.0})
        ends = run_both(folder, act=lambda s: s.run(record=folder / f"{s.config.role}.transcript"))
        assert ends.records
        for role in ("alice", "bob"):
            _rename_session(folder, role)
        audit_session(
            folder / "alice.transcript", folder / "alice.toml", write_guesses=folder / "g.json"
        )
        (folder / "run").write_bytes(recorded())
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def _rename_session(folder: Path, role: str) -> None:
    """Gives a session, which is named by chance, a name that stays the same on this page."""
    path = folder / f"{role}.transcript"
    whole = Transcript.load(path)
    with TranscriptFile(path, whole.header) as file:
        for sender, frame in whole.records:
            file(sender, frame)
        file.conclude({**whole.footer, "session": "5e" * 16})
    model = folder / f"{role}.model.json"
    replace(ModelShare.load(model), session="5e" * 16).save(model)
    if role == "bob":
        scores = folder / "bob.model.scores"
        replace(StoredScores.load(scores), session="5e" * 16).save(scores)


def session(options: str, change: Callable[[], object] = lambda: None, **expected: Any) -> Case:
    """An audit beside the files of a real session, of which something was changed."""

    def place() -> bytes:
        for name, content in session_files().items():
            Path(name).write_bytes(content)
        change()
        return b""

    return Case(f"audit {options}", file="nothing", content=place, **expected)


def edited(name: str, old: str, new: str) -> Callable[[], object]:
    """Replaces a text in a file that lies here."""

    def change() -> None:
        text = Path(name).read_text(encoding="utf-8")
        assert old in text, old
        Path(name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def cut(name: str) -> Callable[[], object]:
    """Halves a file that lies here."""
    return lambda: Path(name).write_bytes(Path(name).read_bytes()[:5000])


def later_model() -> None:
    path = Path("bob.model.json")
    replace(ModelShare.load(path), session="1a" * 16).save(path)


def other_rows() -> None:
    Path("bob.model.json").unlink()
    edited("bob.csv", "p0003", "p9999")()


@dataclass(frozen=True)
class Case:
    command: str
    setting: str = ""
    kind: type[Exception] = ConfigError
    file: str = ""
    content: Callable[[], bytes | dict[str, bytes]] | None = None


def own(
    content: Callable[[], bytes], file: str = "people.csv", extra: str = "", **expected: Any
) -> Case:
    """A training on a table of the user's."""
    command = f"train --data {file} {OWN} {extra}".strip()
    return Case(command, file=file, content=content, **expected)


def own_with(options: str, setting: str = "", **expected: Any) -> Case:
    """The same of a good table, with options that do not fit it."""
    return own(plain, extra=options, setting=setting, **expected)


def counted(
    options: str, setting: str = "", change: tuple[int, int, str] = (0, 1, "20"), **expected: Any
) -> Case:
    """A training on counts, with exposures that are above 0."""

    def make() -> bytes:
        rows = [[*row[:4], str(n % 4), "0.5"] for n, row in enumerate(people())]
        rows[change[0]][change[1]] = change[2]
        return table(rows, f"{HEADER},years")

    command = "train --data people.csv --id person --label default --mechanism none --scheme clear"
    return Case(f"{command} {options}", setting, file="people.csv", content=make, **expected)


def clustered(setting: str, engine: str = "dask", **settings: str) -> Case:
    """Bob's file with a [compute] section."""
    lines = [f'{name} = "{value}"' for name, value in {"engine": engine, **settings}.items()]
    text = template("bob", Trial("sealed")) + "\n".join(["\n[compute]", *lines, ""])
    return Case("party bob.toml", setting, file="bob.toml", content=text.encode)


def toml(text: str, setting: str = "") -> Case:
    """A training by a settings file."""
    return Case("train --config run.toml", setting, file="run.toml", content=text.encode)


STAR = f'''[agreement.parties]
alice-1 = "{"1" * 64}"
alice-2 = "{"2" * 64}"
'''


def by_template(
    command: str, setting: str = "", role: Role = "bob", mechanism: str = "add", **expected: Any
) -> Case:
    """A command with a party's file as taciturn init writes it."""
    content = template(role, Trial(mechanism)).encode
    return Case(command, setting, file=f"{role}.toml", content=content, **expected)


def with_ids() -> bytes:
    """A party's file, beside its table."""
    Path("bob.csv").write_text("id,label\np1,0\np2,1\n")
    return template("bob", Trial("add")).encode()


def party(
    old: str,
    new: str,
    setting: str = "",
    role: Role = "bob",
    mechanism: str = "add",
    **expected: Any,
) -> Case:
    """A party whose file differs in one text from what taciturn init writes."""
    text = template(role, Trial(mechanism))
    assert old in text, old
    case = by_template(f"party {role}.toml", setting, role, mechanism, **expected)
    return replace(case, content=text.replace(old, new, 1).encode)


def newton(line: str, setting: str = "") -> Case:
    """Bob's file for sealed, with one line more in the agreement."""
    return party("[agreement]", f"[agreement]\n{line}", setting, mechanism="sealed")


def share(role: Role = "alice", **changes: Any) -> bytes:
    """A model's file of one side."""
    rules = (NumericRule("age", center=40.0, scale=10.0), NumericRule("balance"))
    model = ModelShare(
        role=role,
        columns=("age", "balance"),
        weights=np.array([0.5, -0.25]),
        preparation=Preparation(rules),
        agreement=Agreement.from_mapping(
            {**AGREED, "mechanism": "add", "epsilon": 1.0}
        ).model_dump(),
        session="ab" * 16,
        rows=48,
        data_digest="cd" * 32,
        noise_key="ef" * 32 if role == "alice" else "",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        replace(model, **changes).save(path)
        return path.read_bytes()


AGREED = {
    "scheme": "clear",
    "key_bits": 0,
    "epochs": 1,
    "batch_size": 8,
    "learning_rate": 0.1,
    "schedule": "constant",
    "decay": 0.0,
    "l1": 0.0,
    "l2": 0.0,
    "feature_bits": 16,
    "residue_bits": 20,
}
SHARED = {"modulus_bits": 50, "feature_bits": 9, "residue_bits": 20, "decay": 1.0}


def random_share() -> bytes:
    return share(weights=np.empty(0), share=(1234567, -7654321), scales=SHARED)


def scoring(rows: str, role: Role = "bob", **changes: Any) -> Callable[[], bytes]:
    """A party's file, with rows to score and a model beside it."""

    def make() -> bytes:
        Path("new.csv").write_text(rows)
        Path("bob.model.json").write_bytes(share(role, **changes))
        return template("bob", Trial("add")).encode()

    return make


def reporting(
    options: str,
    change: Callable[[], object] = lambda: None,
    role: Role = "bob",
    **expected: Any,
) -> Case:
    """A report of the model of a real session, of which something was changed."""
    placed = session("", change, **expected)
    return replace(placed, command=f"model report {role}.toml {options}".strip())


def lost_scores() -> None:
    Path("bob.model.scores").unlink()


def cut_scores() -> None:
    path = Path("bob.model.scores")
    path.write_bytes(path.read_bytes()[:-1])


def other_scores() -> None:
    path = Path("bob.model.scores")
    replace(StoredScores.load(path), session="1a" * 16).save(path)


def predict(content: Callable[[], bytes], extra: str = "", **expected: Any) -> Case:
    command = f"predict bob.toml --rows new.csv {extra}".strip()
    return Case(command, file="bob.toml", content=content, **expected)


WEIGHED = "woe --dataset breast-cancer --scheme clear --seed 1"


def weighed(role: Role, options: str = "", **expected: Any) -> Case:
    """Weights of evidence by a file as taciturn init writes it."""
    command = f"woe {role}.toml {options}".strip()
    return by_template(command, role=role, mechanism="sealed", **expected)


def serve(settings: str, extra: str = "", role: Role = "bob", **expected: Any) -> Case:
    """A side with a model, rows to score and a [serve] of its own."""

    def make() -> bytes:
        scoring("id,age,balance\np1,31,2\n", role)()
        Path("callers.toml").write_text('[callers.crm]\ntoken-sha256 = "abc"\n')
        Path("words.db").write_text("no database")
        if "certs/" in settings:
            make_certificates(Path("certs"), ["alice", "bob"])
        if role == "alice":
            Path("alice.model.json").write_bytes(Path("bob.model.json").read_bytes())
        text = template(role, Trial("add"))
        return text.replace("[serve]", f'[serve]\nsource = "new.csv"\n{settings}', 1).encode()

    command = f"serve {role}.toml {extra}".strip()
    return Case(command, file=f"{role}.toml", content=make, **expected)


AGREEMENT = f"""format = 1
id = "{"5e" * 16}"
valid-until = 2099-12-31T12:00:00Z

[agreement]
mechanism = "sealed"
rows = 48

[side.bob]
name = "bob"

[side.alice]
name = "alice"
"""


def agreed(
    old: str = "",
    new: str = "",
    command: str = "party bob.toml",
    beside: str = "",
    **expected: Any,
) -> Case:
    """Bob's file names an agreement, in which something was changed."""
    assert old in AGREEMENT, old
    text = template("bob", Trial("sealed"))
    start, end = text.index("[agreement]"), text.index("# ---", text.index("[agreement]"))
    party_file = f'{text[:start]}[agreement]\nfile = "agreement.toml"\n{beside}\n{text[end:]}'
    files = {"bob.toml": party_file, "agreement.toml": AGREEMENT.replace(old, new, 1)}
    content = {name: text.encode() for name, text in files.items()}
    return Case(command, content=lambda: content, **expected)


def of_the_peer() -> bytes:
    """Bob's file, which names Alice's certificate as his."""
    make_certificates(Path("certs"), ["alice", "bob"])
    return template("bob", Trial("add")).replace("certs/bob", "certs/alice").encode()


COUNTS = "--family poisson --exposure years"
CASES = (
    counted(COUNTS, "family", (7, 4, "-1"), kind=LabelValueError),
    counted(COUNTS, "family", (7, 4, "many"), kind=LabelValueError),
    counted(COUNTS, "", (7, 4, ""), kind=MissingValueError),
    counted(COUNTS, "exposure", (7, 5, "0"), kind=ColumnError),
    counted(COUNTS, "exposure", (7, 5, ""), kind=MissingValueError),
    counted(COUNTS, "exposure", (7, 5, "long"), kind=ColumnError),
    counted("--family poisson --exposure yeers", kind=ColumnError),
    counted("--family poisson --weights years", "weights", (7, 5, "-2"), kind=ColumnError),
    counted("--family gamma", "family", kind=LabelValueError),
    counted("--family gaussian", "family", (7, 4, "inf"), kind=LabelValueError),
    counted("--family gaussian --exposure years", "exposure"),
    counted("--weights years", "weights"),
    counted("--family poisson --positive yes", "positive"),
    counted("--family poisson --class-weight 0.2,1", "class_weight"),
    counted("--family poisson --solver sgd", "solver"),
    counted("--family poisson --epochs 3", "epochs"),
    *(
        counted(f"--family poisson --mechanism {name}", "family")
        for name in ("add --epsilon 1", "mult --epsilon 1", "hybrid", "label-rr --epsilon 1")
    ),
    counted("--family gaussian --mechanism mutual --weights years", "weights"),
    counted("--family gamma --mechanism mutual --label age", "family"),
    counted("--family poisson --mechanism mutual", "family"),
    counted("--family poisson --mechanism sealed --reveal --reveal-epsilon 1", "reveal_epsilon"),
    Case(f"{NAMED} --family poisson", "family"),
    # A file of another kind than the one that is expected.
    Case("train --config people.csv", file="people.csv", content=plain),
    Case("party people.csv", file="people.csv", content=plain),
    Case("party bob.json", file="bob.json", content=share),
    Case("model show people.csv", file="people.csv", content=plain, kind=FileError),
    by_template("model list bob.toml", kind=FileError),
    by_template("train --config bob.toml"),
    Case("party run.toml", file="run.toml", content=b'mechanism = "none"\n'.strip),
    party('role = "bob"', "# no role"),
    own(lambda: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), kind=FileError),
    own(plain, "people.parquet", kind=FileError),
    own(lambda: plain().split(b"\n", 1)[1], kind=ColumnError),
    # What stands at the wrong place.
    Case(f"{NAMED} --json true", kind=TyperException),
    Case("train people.csv", kind=TyperException),
    Case("train --data a.csv --data b.csv --label default", kind=TyperException),
    own_with("--alice-columns age,default", "alice_columns", kind=ColumnError),
    own_with("--alice-columns person,age", "alice_columns", kind=ColumnError),
    own_with("--alice-columns ''", "alice_columns", kind=ColumnError),
    party('listen = "', 'listen = "https://'),
    Case("party bob.toml", file="bob.toml", content=of_the_peer, kind=CertificateError),
    # A setting that the mechanism does not use.
    Case(f"{PROTECTED} sealed --epsilon 1", "epsilon"),
    Case(f"{PROTECTED} none --noise discrete", "noise"),
    toml('mechanism = "sealed"\ndataset = "breast-cancer"\nepsilon = 1.0\n', "epsilon"),
    newton("epsilon = 1.0", "epsilon"),
    own(changed(7, 0, "p003"), kind=RowIdError),
    own(changed(7, 0, ""), kind=RowIdError),
    own(changed(7, 4, "2"), kind=LabelValueError),
    own(changed(7, 4, ""), kind=MissingValueError),
    own(every(4, lambda n: "yes" if n % 2 else "no"), kind=LabelValueError),
    own(every(4, lambda n: "0"), kind=LabelValueError),
    own(changed(7, 1, "inf"), kind=InfiniteValueError),
    own(changed(7, 1, ""), extra="--impute none", kind=MissingValueError),
    own(changed(7, 1, "old"), kind=ColumnError),
    own(several, kind=TableError),
    own(every(4, lambda n: "abc"[n % 3]), extra="--positive a", kind=LabelValueError),
    own(every(4, lambda n: f"{1 + n % 2}"), kind=LabelValueError),
    own(lambda: table(people()).replace(b"B", b"\xe9", 1), kind=FileError),
    own_with("--encoding utf-16", kind=FileError),
    own_with("--encoding latn", "encoding"),
    own_with("--separator ';;'", "separator"),
    own_with("--decimal ';'", "decimal"),
    own_with("--decimal region=,", kind=ColumnError),
    own_with("--duplicates any", "duplicates"),
    own_with("--type region=date", kind=ColumnError),
    own(every(3, open_date), extra="--type region=date", setting="date_format", kind=ColumnError),
    own_with("--type balance=date", "type", kind=ColumnError),
    own_with("--date-format dd.mm.yyyy", "date_format"),
    own_with("--type balance=category", "type", kind=ColumnError),
    own_with("--type region=words", "type"),
    own_with("--transform age=logg", "transform"),
    own_with("--transform region=log", "transform", kind=ColumnError),
    own_with("--bins 1", "bins"),
    own_with("--bins age=35,25", "bins"),
    own_with("--bins age=25,old", "bins"),
    own_with("--bins age=25,inf", "bins"),
    own_with("--bins 25, --alice-columns age", "bins"),
    own_with("--bins agee=25,35", "bins", kind=ColumnError),
    own_with("--bins region=25,35", "bins", kind=ColumnError),
    own_with("--bins 4 --monotone auto", kind=TyperException),
    own_with("--winsorise 0.5", "winsorise"),
    own_with("--drop regoin", "drop", kind=ColumnError),
    own_with("--drop age,balance,region", kind=ColumnError),
    own_with("--date-parts hour", "date_parts"),
    own(
        every(3, lambda n: f"note {n}"),
        extra="--alice-columns region",
        kind=ColumnError,
        setting="alice_columns",
    ),
    Case(f"{NAMED} --drop age", "drop"),
    own(lambda: table([*people()[:9], ["p009", "31"], *people()[10:]]), kind=FileError),
    own(lambda: table(people(), "person,age,age,region,default"), kind=ColumnError),
    own(lambda: table([]), kind=FileError),
    own(lambda: b"", kind=FileError),
    own(lambda: b"PAR1 and then nothing", "people.parquet", kind=FileError),
    own(cut_gzip, "people.csv.gz", kind=FileError),
    own(lambda: b"?", "people.xlsx", kind=FileError),
    Case(f"train --data nowhere.csv {OWN}", kind=FileError),
    Case(f"train --data . {OWN}", kind=FileError),
    Case(f"train --data 'parts/*.parquet' {OWN}", kind=FileError),
    Case(
        f"train --data 'parts/*' {OWN}",
        content=lambda: {"parts/people.csv": table(people())},
        kind=FileError,
    ),
    Case(
        f"train --data parts {OWN}", content=lambda: parts(pl.exclude("balance")), kind=ColumnError
    ),
    Case(
        f"train --data parts {OWN}",
        content=lambda: parts(pl.all().cast(pl.String)),
        kind=ColumnError,
    ),
    Case(
        f"train --data parts {OWN}",
        content=lambda: {**parts(pl.all()), "parts/2.parquet": b"PAR1 and then nothing"},
        kind=FileError,
    ),
    own_with("--alice-columns age,blance", "alice_columns", kind=ColumnError),
    own_with("--alice-columns 9", "alice_columns", kind=ColumnError),
    own_with("--alice-columns age,balance --parties 3", "parties", kind=ColumnError),
    own_with("--alice-columns 'age;balance;region' --parties 2", "alice_columns", kind=ColumnError),
    Case(f"{NAMED} --parties 17", "parties"),
    Case(f"{PROTECTED} hybrid --parties 2", "parties"),
    Case(f"{PROTECTED} mutual --parties 2", "parties"),
    Case(
        f"{PROTECTED} sealed --solver newton --reveal --reveal-epsilon 1 --parties 2",
        "reveal_epsilon",
    ),
    Case(
        "audit --dataset breast-cancer --mechanism none --parties 2 --seat alice-1+alice-3",
        "seat",
    ),
    Case("check alice.toml --parties 2", "parties"),
    Case(
        "train --data people.csv --label defalt --mechanism none",
        file="people.csv",
        content=lambda: table(people()),
        kind=ColumnError,
    ),
    Case(
        "train --data people.csv --id persn --label default --mechanism none",
        file="people.csv",
        content=lambda: table(people()),
        kind=ColumnError,
    ),
    Case("train --data people.csv --mechanism none", "label"),
    Case(f"{NAMED} --data people.csv --label default", "dataset"),
    Case("train --mechanism none", "dataset"),
    Case("check --mechanism none", "dataset"),
    Case(
        "check --data alice.csv --mechanism none",
        file="alice.csv",
        content=lambda: b"age,balance\n31,2\n44,3\n50,5\n",
        kind=ShapeError,
    ),
    Case("train --dataset breast-cancr --mechanism none", "dataset"),
    Case("train --dataset breast-cancer --mechanism nne", "mechanism"),
    Case(f"{PROTECTED} add", "epsilon"),
    Case(f"{PROTECTED} mult --variant mean-one", "epsilon"),
    Case(f"{PROTECTED} add --epsilon 0", "epsilon"),
    Case(f"{PROTECTED} add --epsilon 1e-12", "epsilon"),
    Case(f"{PROTECTED} add --epsilon 1 --noise gaussian", "noise"),
    Case(f"{PROTECTED} mult --epsilon 1 --variant two-sided", "variant"),
    Case(f"{PROTECTED} mult --epsilon 1 --b1 1.5", "b1"),
    Case(f"{PROTECTED} mult --epsilon 1 --b2 1e300", "b2"),
    Case(f"{PROTECTED} add --epsilon 1 --bob-update never", "bob_update"),
    Case(f"{PROTECTED} add --epsilon 4 --budget 1", "budget", kind=BudgetExceeded),
    Case(f"{PROTECTED} none --budget 1", "budget", kind=BudgetExceeded),
    Case(f"{PROTECTED} hybrid --budget 1", "budget", kind=BudgetExceeded),
    Case(
        f"{PROTECTED} mult --variant one-sided --epsilon 1 --budget 1",
        "budget",
        kind=BudgetExceeded,
    ),
    Case(f"{PROTECTED} add --epsilon 1 --budget 0", "budget"),
    Case(f"{PROTECTED} add --epsilon 1 --delta 1", "delta"),
    Case(f"{PROTECTED} hybrid --subset-size 120 --l-rr 40", "subset_size"),
    Case(f"{PROTECTED} hybrid --l-rr 25", "l_rr"),
    Case(f"{PROTECTED} hybrid --subset-size 60", "l_rr"),
    Case(f"{PROTECTED} hybrid --batch-size 120 --l-rr 150", "l_rr"),
    Case(f"{PROTECTED} hybrid --l-rr 300", "subset_size"),
    Case(f"{PROTECTED} hybrid --epsilon 40", "epsilon"),
    Case(f"{PROTECTED} sealed --l1 0.1", "l1"),
    Case(f"{PROTECTED} sealed --solver newton --reveal-epsilon 1", "reveal_epsilon"),
    Case(f"{PROTECTED} sealed --solver sgd", "solver"),
    Case(f"{PROTECTED} mutual --solver sgd", "solver"),
    Case(f"{PROTECTED} label-rr --epsilon 1 --base-mechanism sealed --solver sgd", "solver"),
    Case(f"{PROTECTED} sealed --epochs 5", "epochs"),
    Case(
        f"{PROTECTED} label-rr --epsilon 1 --base-mechanism sealed --reveal --reveal-epsilon 1",
        "reveal_epsilon",
    ),
    Case(f"{PROTECTED} mutual --scheme paillier", "scheme"),
    Case(f"{PROTECTED} sealed --scheme paillier", "scheme"),
    Case(
        f"{PROTECTED} mutual --solver newton --score-range 256 --sigmoid-error 0.000001",
        "score_range",
    ),
    Case(f"{PROTECTED} mutual --solver newton --feature-bits 8", "solver"),
    Case(f"{PROTECTED} add --epsilon 1 --solver newton", "solver"),
    Case(f"{PROTECTED} mult --epsilon 1 --solver newton", "solver"),
    Case(f"{PROTECTED} hybrid --solver newton", "solver"),
    Case(f"{NAMED} --solver newton --scheme paillier", "scheme"),
    Case(f"{NAMED} --solver newton --epochs 5", "epochs"),
    Case(f"{NAMED} --solver newton --batch-size 16", "batch_size"),
    Case(f"{NAMED} --solver newton --learning-rate 0.1", "learning_rate"),
    Case(f"{NAMED} --solver newton --l1 0.1", "l1"),
    Case(f"{NAMED} --solver newton --l2 0", "l2"),
    Case(f"{NAMED} --solver sgd --passes 5", "passes"),
    Case(f"{NAMED} --class-weight 1,5", "class_weight"),
    Case(f"{NAMED} --class-weight 0.5", "class_weight"),
    Case(f"{NAMED} --class-weight 0,0", "class_weight"),
    Case(f"{PROTECTED} add --epsilon 1 --class-weight 0.5,1", "class_weight"),
    Case(f"{NAMED} --scheme pailier", "scheme"),
    Case(f"{NAMED} --key-bits 1024", "key_bits"),
    Case(f"{NAMED} --epochs 0", "epochs"),
    Case(f"{NAMED} --learning-rate nan", "learning_rate"),
    Case(f"{NAMED} --test-fraction 1.5", "test_fraction"),
    Case(f"{NAMED} --epochs three", kind=TyperException),
    Case(f"{NAMED} --epoch 3", kind=TyperException),
    Case(f"{NAMED} --dither 0.1", kind=TyperException),
    Case("trane", kind=TyperException),
    Case(
        f"{NAMED} --scheme clear --learning-rate 1e308 --json",
        "learning_rate",
        kind=DivergenceError,
    ),
    own(
        lambda: every(2, lambda n: f"{n * n}")(),
        extra="--alice-columns age --solver sgd --scale none --json",
        kind=DivergenceError,
    ),
    Case(
        f"{NAMED} --scheme clear --feature-bits 30 --residue-bits 40",
        "feature_bits",
        kind=CryptoError,
    ),
    toml('mechanism = "none"\nepoch = 3\n', "epoch"),
    toml('mechanism = "sealed"\ndither = 0.1\n', "dither"),
    toml("mechanism = \n"),
    toml('[train]\nmechanism = "none"\n'),
    toml('mechanism = "none"\nepochs = "three"\n', "epochs"),
    Case("train --config nowhere.toml"),
    Case(f"{NAMED} --scheme clear --json --record no/where", kind=OutputError),
    Case(f"audit {NAMED[6:]} --html no/where.html", kind=OutputError),
    Case(f"audit {NAMED[6:]} --markdown .", kind=OutputError),
    Case("demo --html no/where.html", kind=OutputError),
    Case("bench --against phe --plot no/where.svg", kind=OutputError),
    Case("reproduce attacks --plot no/where.svg", kind=OutputError),
    Case("bench --plot bench.svg"),
    Case("bench --rows 1000"),
    Case("bench --trainings --plot bench.svg"),
    Case("bench --against spu --spu-python no/such/python", "spu_python"),
    Case("bench --against phe,spu"),
    Case("bench --against spu --plot bench.svg"),
    Case("reproduce claims --plot claims.svg"),
    Case(f"{NAMED} --scheme clear --seeds 2 --record run --json", "record"),
    Case("audit --transcript nowhere", kind=TranscriptError),
    Case("audit --transcript x", file="x", content=lambda: b"something else", kind=TranscriptError),
    Case("audit --transcript x --epochs 5", "epochs", file="x", content=recorded),
    Case("audit --transcript x --seat bob", "seat", file="x", content=recorded),
    Case("audit --dataset breast-cancer --seat carol", "seat"),
    Case("audit --dataset breast-cancer --parties 3 --seat alice-1+alice-4", "seat"),
    Case("audit --dataset breast-cancer --parties 3 --seat alice-1+alice-1", "seat"),
    Case("audit --dataset breast-cancer --seat alice --known-rows 5", "known_rows"),
    session("--transcript alice.transcript", kind=TranscriptError, setting="party"),
    session("--party alice.toml", setting="transcript"),
    session(f"{RECORDING} --party alice.toml --epochs 5", setting="epochs"),
    session(f"{RECORDING} --party bob.toml", kind=TranscriptError, setting="party"),
    session(f"{HIS_SIDE} --seat alice", setting="seat"),
    session(f"{HIS_SIDE} --write-guesses g2.json", setting="write_guesses"),
    session(f"{HIS_SIDE} --truth bob.toml", setting="truth"),
    session(f"{SIDE} --known-rows 5", setting="known_rows"),
    session("--transcript run --party alice.toml", kind=TranscriptError, setting="party"),
    session(f"{RECORDING} --party alice.toml", cut("alice.transcript"), kind=TranscriptError),
    session(
        f"{RECORDING} --party alice.toml",
        edited("alice.csv", "20.57", "20.5"),
        kind=TranscriptError,
        setting="party",
    ),
    session(
        f"{RECORDING} --party alice.toml",
        edited("alice.toml", "epochs = 2", "epochs = 3"),
        kind=TranscriptError,
    ),
    session(f"{SIDE} --truth alice.toml", setting="truth"),
    session(f"{SIDE} --truth bob.toml", later_model, kind=TranscriptError),
    session(f"{SIDE} --truth bob.toml", other_rows, kind=RowOrderError, setting="truth"),
    session(f"{SIDE} --truth bob.toml", edited("bob.csv", "p0003", "p9999"), kind=DataError),
    session(f"{SIDE} --shuffle-truth", setting="shuffle_truth"),
    session("--guesses g.json", setting="guesses"),
    session(f"{SIDE} --guesses g.json --truth bob.toml", setting="guesses"),
    session("--guesses nowhere --truth bob.toml", kind=FileError),
    session("--guesses bob.toml --truth bob.toml", kind=FileError),
    session(
        "--guesses g.json --truth bob.toml",
        # Its digest alone does not fit.
        edited("g.json", '"seconds": ', '"seconds": 1'),
        kind=FileError,
    ),
    Case("compare --dataset x --mechanisms none,none", "mechanisms"),
    Case("compare --dataset x --mechanisms ,", "mechanisms"),
    Case("compare --dataset x --mechanisms sealed,magic", "mechanism"),
    Case("compare --dataset x --mechanisms add:much", "mechanisms"),
    # All that was asked for is refused: there is nothing to compare.
    Case(
        "compare --dataset breast-cancer --mechanisms add --epsilon 1 --class-weight 0.5,1",
        "class_weight",
    ),
    Case("compare", "dataset"),
    Case("compare --dataset x --html no/where.html", kind=OutputError),
    Case("study --dataset breast-cancer"),
    Case("study --dataset breast-cancer --vary l2"),
    Case("study --dataset breast-cancer --vary l3=1", "l3"),
    Case("study --dataset breast-cancer --vary l2=1 --folds 1", "folds"),
    Case("study --dataset breast-cancer --vary columns=all", "columns"),
    Case("study --dataset breast-cancer --vary bins=0,5", "bins"),
    Case("study --dataset breast-cancer --solver newton --vary epochs=1,2", "epochs"),
    session(f"{SIDE} --write-guesses no/where", kind=OutputError),
    Case(
        "train --config run.toml",
        "mechanism",
        file="run.toml",
        content=lambda: b'mechanism = "magic"\ndataset = "breast-cancer"\n',
    ),
    Case(
        "audit --transcript x",
        file="x",
        content=lambda: b"TACITURN-TRANSCRIPT\n\x01\x02\x00\x00\x00{}\x01\t",
        kind=TranscriptError,
    ),
    Case("certs --name Alice! --name bob", "name"),
    Case("certs --name alice --name alice", "name"),
    Case("certs --days 0", "days"),
    Case("certs --out .", file="alice.key", content=lambda: b"precious", kind=OutputError),
    Case("certs --out certs", file="certs", content=lambda: b"a file", kind=OutputError),
    Case("certs --out . --renew", kind=TyperException),
    Case("certs --show a.pem", file="a.pem", content=lambda: b"hello", kind=CertificateError),
    Case("init --mechanism add", file="bob.toml", content=lambda: b"precious", kind=OutputError),
    Case("init --folder here", file="here", content=lambda: b"a file", kind=OutputError),
    Case("init --mechanism ad", "mechanism"),
    Case("init --listener carol"),
    Case("init --address bob.example"),
    Case("init --address 9443"),
    Case("init --address bob.example:99999"),
    Case("party", kind=TyperException),
    Case("party bob.toml --dry-run"),
    Case("party bob.toml", file="bob.toml", content=lambda: b'role = "bob\n'),
    Case("party p.toml", file="p.toml", content=lambda: b'role = "carol"\n'),
    party("[privacy]", "[privcy]", "privcy"),
    party("batch-size", "batchsize", "batchsize"),
    party('log = "', 'budget = "', "budget"),
    party("epochs = 10", 'epochs = "ten"', "epochs"),
    party("held-out = 0.2", "held-out = 20", "held_out"),
    party('peer = "', '# peer = "', "peer"),
    party("[link]", '[link]\nconnect = "alice.example:9443"', "listen"),
    party("listen", "# listen", "connect"),
    party("[data]", f'''[agreement.parties]\nalice-1 = "{"1" * 64}"\n[data]''', "parties"),
    party("[data]", f"{STAR.replace('1' * 64, 'abc')}[data]", "parties"),
    party("[data]", f"{STAR}[data]", "peer"),
    party("[data]", "[study]\nfolds = 3\n[data]", "l2"),
    party("[data]", 'share-metrics = "quality"\n[study]\nl2 = [0.1]\n[data]', "share_metrics"),
    by_template("party bob.toml --html x.html"),
    party('label = "', '# label = "', "label"),
    party("[data]", '[data]\nlabel = "default"', "label", role="alice"),
    party("[data]", '[data]\nquery = "select * from customers"', "query"),
    party('file = "bob.csv"', 'query = "select * from customers"', "connection"),
    party('file = "bob.csv"', '# file = "bob.csv"', "file"),
    party('file = "bob.csv"', 'file = "sqlite:bob.db"', "file"),
    party("[data]", '[data]\nconnection = "postgresql://me:word@db/crm"', "connection"),
    party("[data]", '[data]\nconnection = "crm.db"', "connection"),
    party('file = "bob.csv"', 'file = "postgresql+psycopg://me:word@db/crm"', "file"),
    party("[serve]", '[serve]\nsource = "mysql://me:word@db/crm"', "source"),
    party("[serve]", '[serve]\nconnection = "postgresql://me:word@db/crm"', "connection"),
    party("[serve]", '[serve]\nsource = "a.csv"\nquery = "select 1 as id"', "query"),
    party("[serve]", '[serve]\ntable = "people"', "table"),
    party("[data]", '[data]\ntransform.age = "logg"', "transform"),
    party("[data]", "[data]\nbins = [25, 35]", "bins"),
    party("[data]", "[data]\nbins.age = []", "bins"),
    party("[data]", '[data]\nmonotone.age = "auto"', "monotone"),
    party("[privacy]", "[privacy]\nbudget = 4", "budget", role="alice"),
    by_template("check bob.toml --seat bob", "seat"),
    by_template("check bob.toml --epochs 3", "epochs"),
    party("[privacy]", "[privacy]\nbudget-total = 4", "budget_total", role="alice"),
    party("[privacy]", '[privacy]\naccept-leak = "yes"', "accept_leak"),
    party(
        "[privacy]",
        '[privacy]\naccept-leak = "my labels will be readable"',
        "accept_leak",
        role="alice",
    ),
    party(
        "[privacy]",
        '[privacy]\naccept-column-exposure = "yes"',
        "accept_column_exposure",
        role="alice",
    ),
    party(
        "[privacy]",
        '[privacy]\naccept-column-exposure = "my columns can be reconstructed"',
        "accept_column_exposure",
    ),
    party("[privacy]", "[privacy]\nscores-per-row = 20", "scores_per_row"),
    party("[output]", '[output]\nheld-out-scores = "s.csv"', "held_out_scores", role="alice"),
    replace(
        party("# held-out-scores", "held-out-scores", "held_out_scores"),
        content=template("bob", Trial("add"))
        .replace("held-out = 0.2", "held-out = 0")
        .replace("# held-out-scores", "held-out-scores")
        .encode,
    ),
    party("# threshold = 0.2", "threshold = 0.2\nfalse-negative-cost = 5", "false_negative_cost"),
    party("epochs = 10", "epochs = 10\nbudget = 4", "budget"),
    party("epochs = 10", "epochs = 10\nseed = 1", "seed"),
    party('scheme = "bfv"', 'scheme = "clear"', "scheme"),
    party("epsilon =", 'noise = "continuous"\nepsilon =', "noise"),
    party("alice-columns", "# alice-columns", "alice_columns", mechanism="hybrid"),
    party("# patience", "patience", "patience"),
    newton("epochs = 10", "epochs"),
    newton("patience = 3", "patience"),
    newton("metrics-epsilon = 1.0", "metrics_epsilon"),
    newton('share-metrics = "quality"\nmetrics-epsilon = 1.0', "metrics_epsilon"),
    party("held-out = 0.2", 'held-out = 0\nshare-metrics = "quality"', "share_metrics"),
    party("epochs = 10", "epochs = 10\npasses = 5", "passes"),
    party('model = "', 'model = "no/where/', kind=OutputError),
    party('log = "', 'log = "no/where/', kind=OutputError),
    clustered("scheduler"),
    clustered("scheduler", scheduler="8786"),
    clustered("scheduler", scheduler="tcp://scheduler.internal:8786"),
    clustered("ca", scheduler="tls://scheduler.internal:8786"),
    clustered("scheduler", engine="local", scheduler="tcp://[::1]:8786"),
    Case(f"{NAMED} --engine dask", "engine"),
    Case(f"{NAMED} --workers 2", "workers"),
    Case(f"{NAMED} --engine dask --cores 2", "cores"),
    party("", "", kind=CertificateError),
    Case("align", kind=TyperException),
    Case("align bob.toml"),
    by_template("align bob.toml --normalise-ids lower", "normalise_ids"),
    by_template("align bob.toml --normalise-ids none,trim", "normalise_ids"),
    party('# normalise-ids = "trim', 'normalise-ids = "trin', "normalise_ids"),
    party("# min-overlap = 0.5", "min-overlap = 50", "min_overlap"),
    by_template("align bob.toml --out no/where.csv", kind=OutputError),
    by_template("align bob.toml --out rows.txt", "out"),
    by_template("align bob.toml", kind=FileError),
    replace(by_template("align bob.toml", kind=CertificateError), content=with_ids),
    Case("predict bob.toml", kind=TyperException),
    by_template("predict alice.toml --rows new.csv --out scores.csv", role="alice"),
    by_template("predict bob.toml --rows new.csv --out new.csv", "out"),
    serve("", setting="tokens"),
    serve('tokens = "c.toml"\naddress = "0.0.0.0:8080"', setting="address"),
    serve('tokens = "c.toml"\naddress = "8080"'),
    serve("port = 8080", setting="port"),
    serve('tokens = "absent.toml"', kind=FileError),
    serve('tokens = "callers.toml"'),
    serve('callers-ca = "ca.pem"', setting="callers_ca"),
    serve('tls-certificate = "service.pem"', setting="tls_key"),
    serve('tls-certificate = "a.pem"\ntls-key = "a.key"', kind=CertificateError),
    serve(
        'tls-certificate = "certs/bob.pem"\ntls-key = "certs/bob.key"\ncallers-ca = "certs/ca.pem"',
        setting="callers_ca",
        kind=CertificateError,
    ),
    serve("rows-per-day = 0", setting="rows_per_day"),
    serve('table = "customers"', setting="table"),
    serve('tokens = "c.toml"', '--new-token "the CRM"', setting="new_token"),
    serve("", "--new-token crm", setting="tokens"),
    serve("", "--new-token crm", "alice"),
    serve('tokens = "c.toml"', role="alice", setting="tokens"),
    predict(scoring("id\n"), "--aligned rows.csv --id p1"),
    predict(scoring("id,age,balance\np1,31,2\n"), "--aligned rows.csv", kind=FileError),
    predict(scoring("id\n"), "--normalise-ids upper", setting="normalise_ids"),
    predict(scoring("id,age,balance\np1,31,2\nP1,32,3\n"), "--normalise-ids case", kind=RowIdError),
    predict(scoring("id\n"), "--threshold 50"),
    predict(scoring("id\n"), "--out no/where.csv", kind=OutputError),
    predict(template("bob", Trial("add")).encode, kind=FileError),
    predict(scoring("id,age,balance\np1,31,2\n", "alice"), kind=FileError),
    predict(scoring("id,age,balnce\np1,31,2\n"), kind=ColumnError),
    predict(scoring("person,age,balance\np1,31,2\n"), kind=ColumnError),
    predict(scoring("id,age,balance\np1,old,2\n"), kind=ColumnError),
    predict(scoring("id,age,balance\np1,,2\n"), kind=MissingValueError),
    predict(scoring("id,age,balance\np1,31,2\n"), "--id p2", kind=RowIdError),
    predict(scoring("id,age,balance\np1,31,2\n", agreement={"mechanism": "magic"}), kind=FileError),
    Case("woe", "dataset"),
    Case(f"{WEIGHED} --smoothing -1", "smoothing"),
    Case(f"{WEIGHED} --min-rows 400", "min_rows", kind=DataError),
    Case(f"{WEIGHED} --parties 2", "parties"),
    Case(f"{WEIGHED} --alice-columns age", "alice_columns", kind=ColumnError),
    weighed("alice", setting="allow", kind=AgreementError),
    weighed("alice", "--smoothing 1"),
    weighed("bob", "--min-rows 10"),
    weighed("bob", "--dataset breast-cancer", setting="dataset"),
    weighed("bob", kind=FileError),
    party("[link]", "[woe]\nallow = true\n\n[link]"),
    party("# allow = true", "tables = 0", "tables", role="alice", mechanism="sealed"),
    Case("audit --woe --transcript run.transcript"),
    Case("audit --woe --seat bob"),
    Case("model show nowhere.json", kind=FileError),
    Case("model list nowhere.json", kind=FileError),
    Case("model use bob.toml 7 --epsilon 2", kind=TyperException),
    by_template("model use bob.toml 7", kind=FileError),
    reporting("", lost_scores, kind=FileError),
    reporting("", cut_scores, kind=FileError),
    reporting("", other_scores, kind=FileError),
    reporting("--model alice.model.json"),
    reporting("--model nowhere.json", kind=FileError),
    reporting("--scores new.csv", role="alice"),
    reporting("--labels bob.csv"),
    reporting("--scores bob.csv", kind=ColumnError),
    reporting(
        "--scores new.csv --labels bob.csv",
        lambda: Path("new.csv").write_text("id,score\np9999,0.5\n"),
        kind=RowIdError,
    ),
    reporting(
        "--scores new.csv",
        lambda: Path("new.csv").write_text("id,score\np0001,high\n"),
        kind=DataError,
    ),
    reporting("--costs cheap"),
    reporting("--costs 1:0"),
    reporting("--bands few"),
    reporting("--bands 0.5,0.1"),
    reporting("--base-odds -3"),
    reporting("--pdo 0"),
    reporting("--alice-model alice.model.json", setting="alice_model"),
    reporting("--alice-model alice.model.json --alice-rows bob.csv", kind=ColumnError),
    reporting("--out no/where.html", kind=OutputError),
    Case("model report m.json", file="m.json", content=share),
    party("[output]", '[output]\nreport = "alice.html"', "report", role="alice"),
    Case("model show m.json", file="m.json", content=lambda: share()[:300], kind=FileError),
    Case("model show m.json", file="m.json", content=lambda: b"{}", kind=FileError),
    Case(
        "model show m.json",
        file="m.json",
        content=lambda: share().replace(b"-0.25", b"-0.75"),
        kind=FileError,
    ),
    Case(
        "model show m.json",
        file="m.json",
        content=lambda: share().replace(b'"version": %d' % MODEL_VERSION, b'"version": 3', 1),
        kind=FileError,
    ),
    Case(f"{PROTECTED} sealed --watch-port {TAKEN}", "watch_port", content=port_in_use),
    Case(f"{PROTECTED} sealed --watch-port 70000", kind=TyperException),
    party('metrics = "bob.metrics.json"', 'metrics = "bob.metrics.prom"', "metrics"),
    Case("model export m.json --onnx m.onnx", file="m.json", content=random_share),
    Case("model export m.json m.json --onnx m.onnx", file="m.json", content=share),
    Case("model export m.json m.json m.json --onnx m.onnx", file="m.json", content=share),
    Case(
        "model export m.json --onnx no/where.onnx", file="m.json", content=share, kind=OutputError
    ),
    Case(f"{NAMED} --out full", content=lambda: {"full/note.txt": b"kept"}, kind=OutputError),
    Case(f"{NAMED} --out note.txt/", file="note.txt", content=lambda: b"kept", kind=OutputError),
    Case("runs list", kind=FileError),
    Case(f"runs export first {MLFLOW}", kind=FileError),
    Case(f"runs export first {MLFLOW}", content=lambda: {"first/note.txt": b""}, kind=FileError),
    Case(
        f"runs export first {MLFLOW}",
        content=lambda: {"first/manifest.json": b'{"format": 2, "version": "9.0"}'},
        kind=FileError,
    ),
    Case(
        f"runs export first {MLFLOW}",
        content=lambda: {"first/manifest.json": b'{"format": 1, "kin'},
        kind=FileError,
    ),
    Case("runs list --sort acu", "sort"),
    Case("runs compare first second", kind=TyperException),
    Case("runs export first --mlflow http://mlflow.example", "mlflow"),
    Case("runs export first --mlflow https://me:secret@mlflow.example", "mlflow"),
    Case("runs export first --mlflow ftp://mlflow.example", "mlflow"),
    by_template("party bob.toml --record no/where", kind=OutputError),
    party("[agreement]", "[agreement]\nsigned = true", "signed"),
    agreed(beside="passes = 3\n"),
    agreed(command="agreement review nowhere.toml bob.toml"),
    agreed("format = 1", "format = 2"),
    agreed("format = 1\n", ""),
    agreed("mechanism", 'mechanisms = "sealed"\nmechanism', setting="mechanisms"),
    agreed("[side.bob]", "[sides.bob]"),
    agreed("2099-12-31T12:00:00Z", '"soon"'),
    agreed('[side.alice]\nname = "alice"\n', ""),
    agreed("rows = 48", "rows = 0", setting="rows"),
    agreed(
        "[side.alice]",
        '[[signature]]\nname = "bob"\nrole = "bob"\n[side.alice]',
        kind=SignatureError,
    ),
    agreed(command="agreement sign agreement.toml bob.toml --yes", kind=CertificateError),
    agreed(command="agreement propose bob.toml --valid-until soon"),
    agreed(command="agreement propose bob.toml --valid-until 2099-01-01 --valid-days 5"),
    agreed(command="agreement propose bob.toml --out agreement.toml", setting="out"),
)


@contextlib.contextmanager
def placed(case: Case) -> Iterator[None]:
    """A fresh folder with the case's file, as working directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            if case.content is not None:
                content = case.content()
                files = {case.file: content} if isinstance(content, bytes) else content
                for name, octets in files.items():
                    Path(name).parent.mkdir(exist_ok=True)
                    Path(name).write_bytes(octets)
            yield
        finally:
            os.chdir(before)


@dataclass(frozen=True)
class Outcome:
    error: Exception | None
    exit_code: int
    out: str
    err: str


@cache
def outcome(case: Case) -> Outcome:
    """What a case raises and prints; it runs once in a process."""
    out, err = io.StringIO(), io.StringIO()
    error = None
    with placed(case), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = dispatch(shlex.split(case.command))
        except Exception as problem:
            error, code = problem, report(problem)
    return Outcome(error, code, out.getvalue(), err.getvalue())


def page() -> str:
    """Every error of the table as Markdown, by exit code and type; its message is its heading."""
    sections: dict[tuple[int, str], dict[str, str]] = {}
    for case in CASES:
        result = outcome(case)
        kind = case.kind.__name__ if issubclass(case.kind, TaciturnError) else "Wrong usage"
        shown = "\n".join(line.rstrip() for line in result.err.strip().splitlines())
        message = shown.removeprefix("error: ").partition("\n  ")[0].replace("\n", " ")
        block = f"```text\n$ taciturn {case.command}\n{shown}\n```"
        sections.setdefault((result.exit_code, kind), {}).setdefault(message, block)
    parts: list[str] = []
    for (code, kind), messages in sorted(sections.items()):
        parts.append(f"## {kind}: exit code {code}")
        parts += [f"### `{message}`\n\n{block}" for message, block in messages.items()]
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(page())
