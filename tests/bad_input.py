"""Every way we know of giving the commands something wrong, with the message it earns.

``docs/errors.md`` is made from this table (``python -m tests.bad_input``); a test compares the two.
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

from taciturn.__main__ import run
from taciturn.api import audit_session, train
from taciturn.data import NumericRule, Preparation
from taciturn.deploy import Trial, template
from taciturn.deploy.transport import make_certificates
from taciturn.engine import Transcript, TranscriptFile
from taciturn.model import KeptScores, ModelShare
from taciturn.protocol import Role
from taciturn.settings import Agreement
from tests.deploy.sides import run_both, write_config, write_tables

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


def ordinary_date(number: int) -> str:
    return f"{1 + number % 28}.1.2026"


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
        replace(KeptScores.load(scores), session="5e" * 16).save(scores)


def session(title: str, options: str, change: Callable[[], object] = lambda: None) -> Case:
    """An audit beside the files of a real session, of which something was changed."""

    def place() -> bytes:
        for name, content in session_files().items():
            Path(name).write_bytes(content)
        change()
        return b""

    return Case(title, f"audit {options}", "nothing", place)


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
    title: str
    command: str
    file: str = ""
    content: Callable[[], bytes | dict[str, bytes]] | None = None


def own(
    title: str, content: Callable[[], bytes], file: str = "people.csv", extra: str = ""
) -> Case:
    return Case(title, f"train --data {file} {OWN} {extra}".strip(), file, content)


def clustered(title: str, engine: str = "dask", **settings: str) -> Case:
    """Bob's file with a section for what computes."""
    lines = [f'{name} = "{value}"' for name, value in {"engine": engine, **settings}.items()]
    text = template("bob", Trial("sealed")) + "\n".join(["\n[compute]", *lines, ""])
    return Case(title, "party bob.toml", "bob.toml", text.encode)


def toml(title: str, text: str) -> Case:
    return Case(title, "train --config run.toml", "run.toml", text.encode)


STAR = f'''[agreement.parties]
alice-1 = "{"1" * 64}"
alice-2 = "{"2" * 64}"
'''


def party(title: str, old: str, new: str, role: Role = "bob", mechanism: str = "add") -> Case:
    """A file as taciturn init writes it, with something in it changed."""
    text = template(role, Trial(mechanism))
    assert old in text, old
    changed = text.replace(old, new, 1).encode
    return Case(title, f"party {role}.toml", f"{role}.toml", changed)


def newton(title: str, line: str, instead_of: str = "") -> Case:
    """A file for sealed as taciturn init writes it, with a line more, or another one."""
    case = party(title, instead_of or "[agreement]", line, mechanism="sealed")
    return case if instead_of else replace(case, content=_under_agreement(line))


def _under_agreement(line: str) -> Callable[[], bytes]:
    text = template("bob", Trial("sealed"))
    return text.replace("[agreement]", f"[agreement]\n{line}", 1).encode


def align(title: str, options: str) -> Case:
    """An alignment by a file as taciturn init writes it."""
    command = f"align bob.toml {options}".strip()
    return Case(title, command, "bob.toml", template("bob", Trial("add")).encode)


def share(role: Role = "alice", **changes: Any) -> bytes:
    """A model's file of one side."""
    rules = (NumericRule("age", center=40.0, scale=10.0), NumericRule("balance"))
    model = ModelShare(
        role=role,
        columns=("age", "balance"),
        weights=np.array([0.5, -0.25]),
        preparation=Preparation(rules),
        agreement=Agreement.of({**AGREED, "mechanism": "add", "epsilon": 1.0}).model_dump(),
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
    title: str, options: str, change: Callable[[], object] = lambda: None, role: Role = "bob"
) -> Case:
    """A report of the model of a real session, of which something was changed."""
    placed = session(title, "", change)
    return replace(placed, command=f"model report {role}.toml {options}".strip())


def lost_scores() -> None:
    Path("bob.model.scores").unlink()


def cut_scores() -> None:
    path = Path("bob.model.scores")
    path.write_bytes(path.read_bytes()[:-1])


def other_scores() -> None:
    path = Path("bob.model.scores")
    replace(KeptScores.load(path), session="1a" * 16).save(path)


def predict(title: str, content: Callable[[], bytes], extra: str = "") -> Case:
    command = f"predict bob.toml --rows new.csv {extra}".strip()
    return Case(title, command, "bob.toml", content)


WEIGHED = "woe --dataset breast-cancer --scheme clear --seed 1"


def weighed(title: str, role: Role, options: str = "") -> Case:
    """Weights of evidence by a file as taciturn init writes it."""
    command = f"woe {role}.toml {options}".strip()
    return Case(title, command, f"{role}.toml", template(role, Trial("sealed")).encode)


def serve(title: str, settings: str, extra: str = "", role: Role = "bob") -> Case:
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
        # The section is there, and the last.
        return f'{text}source = "new.csv"\n{settings}\n'.encode()

    return Case(title, f"serve {role}.toml {extra}".strip(), f"{role}.toml", make)


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
    title: str, old: str = "", new: str = "", command: str = "party bob.toml", beside: str = ""
) -> Case:
    """Bob's file names an agreement, in which something was changed."""
    assert old in AGREEMENT, old
    text = template("bob", Trial("sealed"))
    start, end = text.index("[agreement]"), text.index("# ---", text.index("[agreement]"))
    party_file = f'{text[:start]}[agreement]\nfile = "agreement.toml"\n{beside}\n{text[end:]}'
    files = {"bob.toml": party_file, "agreement.toml": AGREEMENT.replace(old, new, 1)}
    return Case(title, command, "", lambda: {name: text.encode() for name, text in files.items()})


CASES = (
    own("a repeated id", changed(7, 0, "p003")),
    own("a missing id", changed(7, 0, "")),
    own("a label that is neither 0 nor 1", changed(7, 4, "2")),
    own("a missing label", changed(7, 4, "")),
    own("labels in words", every(4, lambda n: "yes" if n % 2 else "no")),
    own("only one class", every(4, lambda n: "0")),
    own("an infinite value", changed(7, 1, "inf")),
    own("a missing value, and imputing turned off", changed(7, 1, ""), extra="--impute none"),
    own("words among numbers", changed(7, 1, "old")),
    own("several problems at once", several),
    own("labels of three words", every(4, lambda n: "abc"[n % 3]), extra="--positive a"),
    own("labels of other numbers", every(4, lambda n: f"{1 + n % 2}")),
    own("a row of Latin-1", lambda: table(people()).replace(b"B", b"\xe9", 1)),
    own("an encoding that the file does not have", plain, extra="--encoding utf-16"),
    own("an unknown encoding", plain, extra="--encoding latn"),
    own("a separator of two characters", plain, extra="--separator ';;'"),
    own(
        "a comma that may mean two things",
        lambda: table(people()).replace(b",", b";").replace(b"-2.0;", b"2,000;"),
    ),
    own("dates in another form", every(3, ordinary_date), extra="--type region=date"),
    own("numbers that are no dates", plain, extra="--type balance=date"),
    own("a form of dates that is none", plain, extra="--date-format dd.mm.yyyy"),
    own("real numbers as categories", plain, extra="--type balance=category"),
    own("an unknown type of a column", plain, extra="--type region=words"),
    own("an unknown transform", plain, extra="--transform age=logg"),
    own("a transform of categories", plain, extra="--transform region=log"),
    own("a single interval", plain, extra="--bins 1"),
    own("edges that do not rise", plain, extra="--bins age=35,25"),
    own("an edge that is no number", plain, extra="--bins age=25,old"),
    own("an edge that is not finite", plain, extra="--bins age=25,inf"),
    own("edges of no column", plain, extra="--bins 25, --alice-columns age"),
    own("edges of a column that is not there", plain, extra="--bins agee=25,35"),
    own("edges of a column of text", plain, extra="--bins region=25,35"),
    own("bins that labels merge, which were removed", plain, extra="--bins 4 --monotone auto"),
    own("a share of outliers that leaves nothing", plain, extra="--winsorise 0.5"),
    own("a column to drop that is not there", plain, extra="--drop regoin"),
    own("no column that is kept", plain, extra="--drop age,balance,region"),
    own("a part of a date that is none", plain, extra="--date-parts hour"),
    own(
        "free text as Alice's column",
        every(3, lambda n: f"note {n}"),
        extra="--alice-columns region",
    ),
    Case("a column of a dataset", f"{NAMED} --drop age"),
    own("a short row", lambda: table([*people()[:9], ["p009", "31"], *people()[10:]])),
    own("a repeated column", lambda: table(people(), "person,age,age,region,default")),
    own("a header and no rows", lambda: table([])),
    own("an empty file", lambda: b""),
    own("a damaged Parquet file", lambda: b"PAR1 and then nothing", "people.parquet"),
    own("a gzip file cut short", cut_gzip, "people.csv.gz"),
    own("a kind of file that is not read", lambda: b"?", "people.xlsx"),
    Case("a file that is not there", f"train --data nowhere.csv {OWN}"),
    Case("a folder without Parquet files", f"train --data . {OWN}"),
    Case("a pattern that names nothing", f"train --data 'parts/*.parquet' {OWN}"),
    Case(
        "a pattern that names other files",
        f"train --data 'parts/*' {OWN}",
        content=lambda: {"parts/people.csv": table(people())},
    ),
    Case(
        "a part of other columns",
        f"train --data parts {OWN}",
        content=lambda: parts(pl.exclude("balance")),
    ),
    Case(
        "a part of other types",
        f"train --data parts {OWN}",
        content=lambda: parts(pl.all().cast(pl.String)),
    ),
    Case(
        "a damaged part",
        f"train --data parts {OWN}",
        content=lambda: {**parts(pl.all()), "parts/2.parquet": b"PAR1 and then nothing"},
    ),
    own("a mistyped column for Alice", lambda: table(people()), extra="--alice-columns age,blance"),
    own(
        "more columns for Alice than there are", lambda: table(people()), extra="--alice-columns 9"
    ),
    own(
        "more Alices than columns",
        lambda: table(people()),
        extra="--alice-columns age,balance --parties 3",
    ),
    own(
        "columns named for more Alices than there are",
        lambda: table(people()),
        extra="--alice-columns 'age;balance;region' --parties 2",
    ),
    Case("more than sixteen Alices", f"{NAMED} --parties 17"),
    Case("hybrid with several Alices", f"{PROTECTED} hybrid --parties 2"),
    Case("mutual with several Alices", f"{PROTECTED} mutual --parties 2"),
    Case(
        "a model told with noise to several Alices",
        f"{PROTECTED} sealed --solver newton --reveal --reveal-epsilon 1 --parties 2",
    ),
    Case(
        "an audit from the seat of an Alice who is not there",
        "audit --dataset breast-cancer --scheme clear --json --mechanism none --parties 2 "
        "--seat alice-1+alice-3",
    ),
    Case("a party's file, and a number of Alices", "check alice.toml --parties 2"),
    Case(
        "a mistyped label column",
        "train --data people.csv --label defalt --mechanism none",
        "people.csv",
        lambda: table(people()),
    ),
    Case(
        "a mistyped id column",
        "train --data people.csv --id persn --label default --mechanism none",
        "people.csv",
        lambda: table(people()),
    ),
    Case("own data without its label column", "train --data people.csv --mechanism none"),
    Case("data named twice", f"{NAMED} --data people.csv --label default"),
    Case("no data", "train --mechanism none"),
    Case("no data to check", "check --mechanism none"),
    Case(
        "too few rows to check",
        "check --data alice.csv --mechanism none",
        "alice.csv",
        lambda: b"age,balance\n31,2\n44,3\n50,5\n",
    ),
    Case("an unknown dataset", "train --dataset breast-cancr --mechanism none"),
    Case("an unknown mechanism", "train --dataset breast-cancer --mechanism nne"),
    Case("add without its epsilon", f"{PROTECTED} add"),
    Case("mult without its epsilon", f"{PROTECTED} mult --variant mean-one"),
    Case("an epsilon of nothing", f"{PROTECTED} add --epsilon 0"),
    Case("an epsilon too small for the sampler", f"{PROTECTED} add --epsilon 1e-12"),
    Case("an unknown kind of noise", f"{PROTECTED} add --epsilon 1 --noise gaussian"),
    Case("an unknown variant", f"{PROTECTED} mult --epsilon 1 --variant two-sided"),
    Case("a b1 that no residue exceeds", f"{PROTECTED} mult --epsilon 1 --b1 1.5"),
    Case("a b2 beyond the grid", f"{PROTECTED} mult --epsilon 1 --b2 1e300"),
    Case("an unknown way to update", f"{PROTECTED} add --epsilon 1 --bob-update never"),
    Case("a budget that pays for no release", f"{PROTECTED} add --epsilon 4 --budget 1"),
    Case("a budget where nothing protects", f"{PROTECTED} none --budget 1"),
    Case("a budget for gradients of hidden batches", f"{PROTECTED} hybrid --budget 1"),
    Case(
        "a budget for noise that keeps the sign",
        f"{PROTECTED} mult --variant one-sided --epsilon 1 --budget 1",
    ),
    Case("a budget of nothing", f"{PROTECTED} add --epsilon 1 --budget 0"),
    Case("a delta that is no probability", f"{PROTECTED} add --epsilon 1 --delta 1"),
    Case("a subset given twice", f"{PROTECTED} hybrid --subset-size 120 --l-rr 40"),
    Case("fewer rows asked than Alice has columns", f"{PROTECTED} hybrid --l-rr 25"),
    Case("a subset too small for the columns", f"{PROTECTED} hybrid --subset-size 60"),
    Case("a subset that is half marked", f"{PROTECTED} hybrid --batch-size 120 --l-rr 150"),
    Case("a subset larger than the rows", f"{PROTECTED} hybrid --l-rr 300"),
    Case("a response that is no coin", f"{PROTECTED} hybrid --epsilon 40"),
    Case("an L1 penalty on shared weights", f"{PROTECTED} sealed --l1 0.1"),
    Case(
        "a price for a model that is not told",
        f"{PROTECTED} sealed --solver newton --reveal-epsilon 1",
    ),
    Case("batches of sealed", f"{PROTECTED} sealed --solver sgd"),
    Case("batches of mutual", f"{PROTECTED} mutual --solver sgd"),
    Case(
        "batches of flipped labels over sealed",
        f"{PROTECTED} label-rr --epsilon 1 --over sealed --solver sgd",
    ),
    Case("epochs of sealed", f"{PROTECTED} sealed --epochs 5"),
    Case(
        "a model of flipped labels told with noise",
        f"{PROTECTED} label-rr --epsilon 1 --over sealed --solver newton --reveal "
        "--reveal-epsilon 1",
    ),
    Case("shared scores under paillier", f"{PROTECTED} mutual --scheme paillier"),
    Case("shared weights under paillier", f"{PROTECTED} sealed --scheme paillier"),
    Case(
        "more waves than there are, where nobody sees a score",
        f"{PROTECTED} mutual --solver newton --score-range 256 --sigmoid-error 0.000001",
    ),
    Case(
        "fewer digits than newton needs, where nobody sees a score",
        f"{PROTECTED} mutual --solver newton --feature-bits 8",
    ),
    Case("newton under noise", f"{PROTECTED} add --epsilon 1 --solver newton"),
    Case("newton under noise that multiplies", f"{PROTECTED} mult --epsilon 1 --solver newton"),
    Case("newton with hidden batches", f"{PROTECTED} hybrid --solver newton"),
    Case("newton with paillier", f"{NAMED} --solver newton --scheme paillier"),
    Case("newton with epochs", f"{NAMED} --solver newton --epochs 5"),
    Case("newton with batches", f"{NAMED} --solver newton --batch-size 16"),
    Case("newton with a learning rate", f"{NAMED} --solver newton --learning-rate 0.1"),
    Case("newton with an L1 penalty", f"{NAMED} --solver newton --l1 0.1"),
    Case("newton without a penalty", f"{NAMED} --solver newton --l2 0"),
    Case("passes of sgd", f"{NAMED} --solver sgd --passes 5"),
    Case("a class weight beyond 1", f"{NAMED} --class-weight 1,5"),
    Case("one class weight", f"{NAMED} --class-weight 0.5"),
    Case("class weights that are none", f"{NAMED} --class-weight 0,0"),
    Case("class weights under noise", f"{PROTECTED} add --epsilon 1 --class-weight 0.5,1"),
    Case("an unknown scheme", f"{NAMED} --scheme pailier"),
    Case("a key size that is not offered", f"{NAMED} --key-bits 1024"),
    Case("an impossible setting", f"{NAMED} --epochs 0"),
    Case("a number that is none", f"{NAMED} --learning-rate nan"),
    Case("a test part of everything", f"{NAMED} --test-fraction 1.5"),
    Case("a word for a number", f"{NAMED} --epochs three"),
    Case("an unknown option", f"{NAMED} --epoch 3"),
    Case("an option that was removed", f"{NAMED} --dither 0.1"),
    Case("an unknown command", "trane"),
    Case("a training that diverges", f"{NAMED} --scheme clear --learning-rate 1e308 --json"),
    own(
        "columns that are not scaled, and batches",
        lambda: every(2, lambda n: f"{n * n}")(),
        extra="--alice-columns age --solver sgd --scale none --json",
    ),
    Case(
        "features too wide for the products",
        f"{NAMED} --scheme clear --feature-bits 30 --residue-bits 40",
    ),
    toml("an unknown key in a settings file", 'mechanism = "none"\nepoch = 3\n'),
    toml("a removed key in a settings file", 'mechanism = "sealed"\ndither = 0.1\n'),
    toml("a settings file that is not TOML", "mechanism = \n"),
    toml("a table in a settings file", '[train]\nmechanism = "none"\n'),
    toml("a wrong type in a settings file", 'mechanism = "none"\nepochs = "three"\n'),
    Case("a settings file that is not there", "train --config nowhere.toml"),
    Case("a folder that is not there", f"{NAMED} --scheme clear --json --record no/where"),
    Case("a report in a folder that is not there", f"audit {NAMED[6:]} --html no/where.html"),
    Case("a report where a folder is", f"audit {NAMED[6:]} --markdown ."),
    Case("a demonstration's report likewise", "demo --html no/where.html"),
    Case("a plot in a folder that is not there", "bench --against phe --plot no/where.svg"),
    Case("a plot of the matrix likewise", "reproduce attacks --plot no/where.svg"),
    Case("a plot of ratios to nothing", "bench --plot bench.svg"),
    Case("a table's rows without trainings", "bench --rows 1000"),
    Case("a plot of trainings", "bench --trainings --plot bench.svg"),
    Case("a Python for SPU that is not there", "bench --against spu --spu-python no/such/python"),
    Case("SPU among rivals of another kind", "bench --against phe,spu"),
    Case("a plot of the comparison with SPU", "bench --against spu --plot bench.svg"),
    Case("a plot of what has none", "reproduce claims --plot claims.svg"),
    Case("a transcript of several runs", f"{NAMED} --scheme clear --seeds 2 --record run --json"),
    Case("a transcript that is not there", "audit --transcript nowhere"),
    Case("a file that is no transcript", "audit --transcript x", "x", lambda: b"something else"),
    Case("a setting beside a transcript", "audit --transcript x --epochs 5", "x", recorded),
    Case(
        "Bob's seat of a simulation's transcript", "audit --transcript x --seat bob", "x", recorded
    ),
    Case("a seat that nobody has", "audit --dataset breast-cancer --seat carol"),
    Case(
        "a coalition with an Alice too many",
        "audit --dataset breast-cancer --parties 3 --seat alice-1+alice-4",
    ),
    Case(
        "a coalition that names an Alice twice",
        "audit --dataset breast-cancer --parties 3 --seat alice-1+alice-1",
    ),
    Case("known rows at Alice's seat", "audit --dataset breast-cancer --seat alice --known-rows 5"),
    session("a real session's recording without its side's file", "--transcript alice.transcript"),
    session("a side's file without its recording", "--party alice.toml"),
    session("a setting beside a real session", f"{RECORDING} --party alice.toml --epochs 5"),
    session("a recording and the other side's file", f"{RECORDING} --party bob.toml"),
    session("Bob's recording for Alice's seat", f"{HIS_SIDE} --seat alice"),
    session("guesses at labels from Bob's recording", f"{HIS_SIDE} --write-guesses g2.json"),
    session("Bob's file where columns are asked for", f"{HIS_SIDE} --truth bob.toml"),
    session("known rows beside Alice's recording", f"{SIDE} --known-rows 5"),
    session("a simulation's recording with a side's file", "--transcript run --party alice.toml"),
    session(
        "a recording cut short",
        f"{RECORDING} --party alice.toml",
        cut("alice.transcript"),
    ),
    session(
        "a recording with another table",
        f"{RECORDING} --party alice.toml",
        edited("alice.csv", "20.57", "20.5"),
    ),
    session(
        "a recording with another agreement",
        f"{RECORDING} --party alice.toml",
        edited("alice.toml", "epochs = 2", "epochs = 3"),
    ),
    session("Alice's file where labels are asked for", f"{SIDE} --truth alice.toml"),
    session("labels of another session", f"{SIDE} --truth bob.toml", later_model),
    session("labels of other rows", f"{SIDE} --truth bob.toml", other_rows),
    session(
        "a table of Bob's that changed since",
        f"{SIDE} --truth bob.toml",
        edited("bob.csv", "p0003", "p9999"),
    ),
    session("labels to shuffle where there are none", f"{SIDE} --shuffle-truth"),
    session("guesses without labels", "--guesses g.json"),
    session("guesses beside a recording", f"{SIDE} --guesses g.json --truth bob.toml"),
    session("guesses that are not there", "--guesses nowhere --truth bob.toml"),
    session("a file that is no guesses", "--guesses bob.toml --truth bob.toml"),
    session(
        "guesses that were changed",
        "--guesses g.json --truth bob.toml",
        edited("g.json", '"rows": 92', '"rows": 91'),
    ),
    Case("a mechanism compared twice", "compare --dataset x --mechanisms none,none"),
    Case("no mechanism to compare", "compare --dataset x --mechanisms ,"),
    Case("an unknown mechanism to compare", "compare --dataset x --mechanisms sealed,magic"),
    Case("an epsilon that is none", "compare --dataset x --mechanisms add:much"),
    Case("a comparison of nothing", "compare"),
    Case("a comparison to nowhere", "compare --dataset x --html no/where.html"),
    Case("a study of nothing", "study --dataset breast-cancer"),
    Case("a study without values", "study --dataset breast-cancer --vary l2"),
    Case("a study of an unknown setting", "study --dataset breast-cancer --vary l3=1"),
    Case("a study in one fold", "study --dataset breast-cancer --vary l2=1 --folds 1"),
    Case("a study of columns", "study --dataset breast-cancer --vary columns=all"),
    Case("a study of bins", "study --dataset breast-cancer --vary bins=0,5"),
    Case(
        "a study of settings that do not go together",
        "study --dataset breast-cancer --solver newton --vary epochs=1,2",
    ),
    session("guesses to nowhere", f"{SIDE} --write-guesses no/where"),
    Case(
        "a settings file beside a mechanism that is none",
        "train --config run.toml",
        "run.toml",
        lambda: b'mechanism = "magic"\ndataset = "breast-cancer"\n',
    ),
    Case(
        "a transcript cut short",
        "audit --transcript x",
        "x",
        lambda: b"TACITURN-TRANSCRIPT\n\x01\x02\x00\x00\x00{}\x01\x09",
    ),
    Case("a name that cannot stand in a certificate", "certs --name Alice! --name bob"),
    Case("a name given twice", "certs --name alice --name alice"),
    Case("certificates for no time", "certs --days 0"),
    Case("a certificate that exists", "certs --out .", "alice.key", lambda: b"precious"),
    Case("certificates where a file is", "certs --out certs", "certs", lambda: b"a file"),
    Case("an option that its command no longer has", "certs --out . --renew"),
    Case("a certificate to show that is none", "certs --show a.pem", "a.pem", lambda: b"hello"),
    Case("settings that exist", "init --mechanism add", "bob.toml", lambda: b"precious"),
    Case("settings where a file is", "init --folder here", "here", lambda: b"a file"),
    Case("settings for an unknown mechanism", "init --mechanism ad"),
    Case("a side that is none", "init --serves carol"),
    Case("an address without a port", "init --address bob.example"),
    Case("an address without a host", "init --address 9443"),
    Case("a port that is none", "init --address bob.example:99999"),
    Case("a party without a file", "party"),
    Case("a party's file that is not there", "party bob.toml --dry-run"),
    Case("a party's file that is not TOML", "party bob.toml", "bob.toml", lambda: b'role = "bob\n'),
    Case("a party's file of nobody", "party p.toml", "p.toml", lambda: b'role = "carol"\n'),
    party("a mistyped section of a party's file", "[privacy]", "[privcy]"),
    party("a mistyped key of a party's file", "batch-size", "batchsize"),
    party("a key in the wrong section", 'log = "', 'budget = "'),
    party("a word for a number in a party's file", "epochs = 10", 'epochs = "ten"'),
    party("a share that is none", "held-out = 0.2", "held-out = 20"),
    party("a section without a key that it needs", 'peer = "', '# peer = "'),
    party("both ways to the peer", "[link]", '[link]\nconnect = "alice.example:9443"'),
    party("no way to the peer", "listen", "# listen"),
    party("a star of one", "[data]", f'[agreement.parties]\nalice-1 = "{"1" * 64}"\n[data]'),
    party("a fingerprint that is none", "[data]", f"{STAR.replace('1' * 64, 'abc')}[data]"),
    party("a peer beside several Alices", "[data]", f"{STAR}[data]"),
    party("a study of nothing in a party's file", "[data]", "[study]\nfolds = 3\n[data]"),
    party(
        "a study that tells of its models",
        "[data]",
        'tell-alice = "quality"\n[study]\nl2 = [0.1]\n[data]',
    ),
    replace(
        party("a page of a training", "[data]", "[data]"),
        command="party bob.toml --html x.html",
    ),
    party("no label column at Bob", 'label = "', '# label = "'),
    party("a label column at Alice", "[data]", '[data]\nlabel = "default"', role="alice"),
    party("an unknown transform", "[data]", '[data]\ntransform.age = "logg"'),
    party("edges for all columns", "[data]", "[data]\nbins = [25, 35]"),
    party("no edges", "[data]", "[data]\nbins.age = []"),
    party("bins that labels merge, in a party's file", "[data]", '[data]\nmonotone.age = "auto"'),
    party("a budget at Alice", "[privacy]", "[privacy]\nbudget = 4", role="alice"),
    Case(
        "Bob's seat in a check of his own file",
        "check bob.toml --seat bob",
        "bob.toml",
        lambda: template("bob", Trial("add")).encode(),
    ),
    Case(
        "a setting beside a party's file that is checked",
        "check bob.toml --epochs 3",
        "bob.toml",
        lambda: template("bob", Trial("add")).encode(),
    ),
    party(
        "a limit over all trainings at Alice",
        "[privacy]",
        "[privacy]\nbudget-total = 4",
        role="alice",
    ),
    party("a leak accepted in other words", "[privacy]", '[privacy]\naccept-leak = "yes"'),
    party(
        "a leak of labels accepted by Alice",
        "[privacy]",
        '[privacy]\naccept-leak = "my labels will be readable"',
        role="alice",
    ),
    party(
        "an exposure of columns accepted in other words",
        "[privacy]",
        '[privacy]\naccept-column-exposure = "yes"',
        role="alice",
    ),
    party(
        "an exposure of columns accepted by Bob",
        "[privacy]",
        '[privacy]\naccept-column-exposure = "my columns can be reconstructed"',
    ),
    party("a limit of scores at Bob", "[privacy]", "[privacy]\nscores-per-row = 20"),
    party(
        "held-out scores at Alice", "[output]", '[output]\nheld-out-scores = "s.csv"', role="alice"
    ),
    replace(
        party("held-out scores without held-out rows", "# held-out-scores", "held-out-scores"),
        content=template("bob", Trial("add"))
        .replace("held-out = 0.2", "held-out = 0")
        .replace("# held-out-scores", "held-out-scores")
        .encode,
    ),
    party("a threshold and a cost", "# threshold = 0.2", "threshold = 0.2\nmiss-cost = 5"),
    party("a budget in the agreement", "epochs = 10", "epochs = 10\nbudget = 4"),
    party("a seed between two machines", "epochs = 10", "epochs = 10\nseed = 1"),
    party("no encryption between two machines", 'scheme = "bfv"', 'scheme = "clear"'),
    party("continuous noise between two machines", "epsilon =", 'noise = "continuous"\nepsilon ='),
    party("hybrid without Alice's columns", "alice-columns", "# alice-columns", mechanism="hybrid"),
    party("patience without an evaluation of the rows", "# patience", "patience"),
    newton("epochs of newton in a party's file", "epochs = 10"),
    newton("patience with newton", "patience = 3"),
    newton("a price of telling nothing", "tell-epsilon = 1.0"),
    newton("telling with noise of a model without", 'tell-alice = "quality"\ntell-epsilon = 1.0'),
    party(
        "telling of rows that are not held out",
        "held-out = 0.2",
        'held-out = 0\ntell-alice = "quality"',
    ),
    newton("passes of sgd in a party's file", 'solver = "sgd"\npasses = 5', 'solver = "newton"'),
    party("a model in a folder that is not there", 'model = "', 'model = "no/where/'),
    party("a log in a folder that is not there", 'log = "', 'log = "no/where/'),
    clustered("a cluster without a scheduler"),
    clustered("a scheduler that is no address", scheduler="8786"),
    clustered("a scheduler elsewhere without TLS", scheduler="tcp://scheduler.internal:8786"),
    clustered("a scheduler without an authority", scheduler="tls://scheduler.internal:8786"),
    clustered("a scheduler with the local engine", engine="local", scheduler="tcp://[::1]:8786"),
    Case("a cluster for batches", f"{NAMED} --engine dask"),
    Case("workers without a cluster", f"{NAMED} --workers 2"),
    Case("cores of a cluster", f"{NAMED} --engine dask --cores 2"),
    party("a party without its certificate", "", ""),
    Case("an alignment without a file", "align"),
    Case("an alignment by a file that is not there", "align bob.toml"),
    align("a way to normalise that there is not", "--normalise lower"),
    align("none beside a way to normalise", "--normalise none,trim"),
    party(
        "a way to normalise that there is not, in a file",
        '# normalise = "trim',
        'normalise = "trin',
    ),
    party("a smallest match that is none", "# minimum-match = 0.5", "minimum-match = 50"),
    align("a list of rows in a folder that is not there", "--out no/where.csv"),
    align("a list of rows of no known kind", "--out rows.txt"),
    align("an alignment without a certificate", ""),
    Case("a prediction without rows", "predict bob.toml"),
    Case(
        "scores for Alice",
        "predict alice.toml --rows new.csv --out scores.csv",
        "alice.toml",
        template("alice", Trial("add")).encode,
    ),
    serve("a service that nobody may ask", ""),
    serve("a service open to all without TLS", 'tokens = "c.toml"\naddress = "0.0.0.0:8080"'),
    serve("a service at an address that is none", 'tokens = "c.toml"\naddress = "8080"'),
    serve("an unknown setting of a service", "port = 8080"),
    serve("a file of callers that is not there", 'tokens = "absent.toml"'),
    serve("a file of callers with half a hash", 'tokens = "callers.toml"'),
    serve("callers' certificates without one's own", 'callers-ca = "ca.pem"'),
    serve("a certificate without its key", 'tls-certificate = "service.pem"'),
    serve("a certificate that is not there", 'tls-certificate = "a.pem"\ntls-key = "a.key"'),
    serve(
        "the authority of the link as that of callers",
        'tls-certificate = "certs/bob.pem"\ntls-key = "certs/bob.key"\ncallers-ca = "certs/ca.pem"',
    ),
    serve("a limit of no rows", "rows-per-day = 0"),
    serve("a table beside a file", 'table = "customers"'),
    serve("a caller whose name is none", 'tokens = "c.toml"', '--new-token "the CRM"'),
    serve("a caller without a file of callers", "", "--new-token crm"),
    serve("a caller at Alice", "", "--new-token crm", "alice"),
    serve("tokens at Alice", 'tokens = "c.toml"', role="alice"),
    predict("a list beside a picked row", scoring("id\n"), "--common rows.csv --id p1"),
    predict("a list that is not there", scoring("id,age,balance\np1,31,2\n"), "--common rows.csv"),
    predict("a way to normalise new rows that there is not", scoring("id\n"), "--normalise upper"),
    predict(
        "two new rows that are one once normalised",
        scoring("id,age,balance\np1,31,2\nP1,32,3\n"),
        "--normalise case",
    ),
    predict("a threshold that is no probability", scoring("id\n"), "--threshold 50"),
    predict("scores in a folder that is not there", scoring("id\n"), "--out no/where.csv"),
    predict("a prediction before the training", template("bob", Trial("add")).encode),
    predict("the other side's model", scoring("id,age,balance\np1,31,2\n", "alice")),
    predict("rows without a column of the model", scoring("id,age,balnce\np1,31,2\n")),
    predict("rows without ids", scoring("person,age,balance\np1,31,2\n")),
    predict("a word where the model has a number", scoring("id,age,balance\np1,old,2\n")),
    predict("a gap that the model's preparation refuses", scoring("id,age,balance\np1,,2\n")),
    predict("a row that is not there", scoring("id,age,balance\np1,31,2\n"), "--id p2"),
    predict(
        "a model of an agreement that is not known",
        scoring("id,age,balance\np1,31,2\n", agreement={"mechanism": "magic"}),
    ),
    Case("weights of evidence of nothing", "woe"),
    Case("a smoothing below nothing", f"{WEIGHED} --smoothing -1"),
    Case("bins that no column has", f"{WEIGHED} --min-rows 400"),
    Case("weights of evidence of several Alices", f"{WEIGHED} --parties 2"),
    Case("weights of evidence of a column that there is not", f"{WEIGHED} --alice-columns age"),
    weighed("weights of evidence that Alice does not allow", "alice"),
    weighed("Alice's smoothing", "alice", "--smoothing 1"),
    weighed("Bob's least rows of Alice's bins", "bob", "--min-rows 10"),
    weighed("a party's weights of evidence, with a dataset", "bob", "--dataset breast-cancer"),
    weighed("weights of evidence without a table", "bob"),
    party("Bob's say in what of Alice's is told", "[link]", "[woe]\nallow = true\n\n[link]"),
    party("a limit of no tables", "# allow = true", "tables = 0", role="alice", mechanism="sealed"),
    Case("an audit of weights of evidence, recorded", "audit --woe --transcript run.transcript"),
    Case("an audit of weights of evidence from a seat", "audit --woe --seat bob"),
    Case("a model that is not there", "model show nowhere.json"),
    Case("a list of models where there is none", "model list nowhere.json"),
    Case("a model of a study named by a response", "model use bob.toml 7 --epsilon 2"),
    Case(
        "a model of a study that is not there",
        "model use bob.toml 7",
        "bob.toml",
        lambda: template("bob", Trial("sealed")).encode(),
    ),
    reporting("a report of a model whose scores are lost", "", lost_scores),
    reporting("a report of scores that were cut", "", cut_scores),
    reporting("a report of another training's scores", "", other_scores),
    reporting("a report of the other side's model", "--model alice.model.json"),
    reporting("a report without a model", "--model nowhere.json"),
    reporting("new rows for a report at Alice", "--scores new.csv", role="alice"),
    reporting("labels without scores in a report", "--labels bob.csv"),
    reporting("scores for a report that are none", "--scores bob.csv"),
    reporting(
        "labels for a report that lack a row",
        "--scores new.csv --labels bob.csv",
        lambda: Path("new.csv").write_text("id,score\np9999,0.5\n"),
    ),
    reporting(
        "a score for a report that is no number",
        "--scores new.csv",
        lambda: Path("new.csv").write_text("id,score\np0001,high\n"),
    ),
    reporting("costs that are none", "--costs cheap"),
    reporting("a cost of nothing", "--costs 1:0"),
    reporting("score bands that are none", "--bands few"),
    reporting("score bands that fall", "--bands 0.5,0.1"),
    reporting("base odds below 0", "--base-odds -3"),
    reporting("a scale that doubles nothing", "--pdo 0"),
    reporting("Alice's model without her rows in a report", "--alice-model alice.model.json"),
    reporting(
        "another table as Alice's in a report",
        "--alice-model alice.model.json --alice-rows bob.csv",
    ),
    reporting("a page to nowhere", "--out no/where.html"),
    Case("a report of a model's file", "model report m.json", "m.json", share),
    party("a model's page at Alice", "[output]", '[output]\nreport = "alice.html"', role="alice"),
    Case("a model cut short", "model show m.json", "m.json", lambda: share()[:300]),
    Case("a file that is no model", "model show m.json", "m.json", lambda: b"{}"),
    Case(
        "a model that was changed",
        "model show m.json",
        "m.json",
        lambda: share().replace(b"-0.25", b"-0.75"),
    ),
    Case(
        "a model of a later version",
        "model show m.json",
        "m.json",
        lambda: share().replace(b'"version": 3', b'"version": 9', 1),
    ),
    Case(
        "a port for the live page that is in use",
        f"{PROTECTED} sealed --watch-port {TAKEN}",
        content=port_in_use,
    ),
    Case("a port for the live page that is none", f"{PROTECTED} sealed --watch-port 70000"),
    party(
        "a metrics file with the name of the one for Prometheus",
        'metrics = "bob.metrics.json"',
        'metrics = "bob.metrics.prom"',
    ),
    Case("a random share for export", "model export m.json --onnx m.onnx", "m.json", random_share),
    Case("one side's model twice", "model export m.json m.json --onnx m.onnx", "m.json", share),
    Case(
        "a side of a model three times",
        "model export m.json m.json m.json --onnx m.onnx",
        "m.json",
        share,
    ),
    Case("an export to nowhere", "model export m.json --onnx no/where.onnx", "m.json", share),
    Case(
        "a result folder that is not empty",
        f"{NAMED} --out full",
        content=lambda: {"full/note.txt": b"kept"},
    ),
    Case(
        "a file where a result folder is to be",
        f"{NAMED} --out note.txt/",
        "note.txt",
        lambda: b"kept",
    ),
    Case("a folder of runs that is not there", "runs list"),
    Case("a run that is not there", f"runs export first {MLFLOW}"),
    Case(
        "a folder that is no result",
        f"runs export first {MLFLOW}",
        content=lambda: {"first/note.txt": b""},
    ),
    Case(
        "a result folder of a later version",
        f"runs export first {MLFLOW}",
        content=lambda: {"first/manifest.json": b'{"format": 2, "version": "9.0"}'},
    ),
    Case(
        "a result folder cut short",
        f"runs export first {MLFLOW}",
        content=lambda: {"first/manifest.json": b'{"format": 1, "kin'},
    ),
    Case("an order of runs that there is not", "runs list --sort acu"),
    Case("a command that was removed", "runs compare first second"),
    Case(
        "an export by plain http",
        "runs export first --mlflow http://mlflow.example",
    ),
    Case(
        "a password in an address",
        "runs export first --mlflow https://me:secret@mlflow.example",
    ),
    Case("an export to what is no server", "runs export first --mlflow ftp://mlflow.example"),
    Case(
        "a transcript in a folder that is not there",
        "party bob.toml --record no/where",
        "bob.toml",
        template("bob", Trial("add")).encode,
    ),
    party(
        "an agreement to be signed that is in no file", "[agreement]", "[agreement]\nsigned = true"
    ),
    agreed("a setting beside the file of the agreement", beside="passes = 3\n"),
    agreed("a file of an agreement that is not there", command="review nowhere.toml bob.toml"),
    agreed("an agreement of another format", "format = 1", "format = 2"),
    agreed("a file that is no agreement", "format = 1\n", ""),
    agreed("an unknown key in an agreement", "mechanism", 'mechanisms = "sealed"\nmechanism'),
    agreed("an unknown section in an agreement", "[side.bob]", "[sides.bob]"),
    agreed("an agreement that ends on no date", "2099-12-31T12:00:00Z", '"soon"'),
    agreed("an agreement with one side", '[side.alice]\nname = "alice"\n', ""),
    agreed("a number of rows that is none", "rows = 48", "rows = 0"),
    agreed(
        "half a signature",
        "[side.alice]",
        '[[signature]]\nname = "bob"\nrole = "bob"\n[side.alice]',
    ),
    agreed("an agreement without certificates", command="sign agreement.toml bob.toml --yes"),
    agreed("a proposal that ends on no date", command="propose bob.toml --valid-until soon"),
    agreed(
        "a proposal with two ends",
        command="propose bob.toml --valid-until 2099-01-01 --valid-days 5",
    ),
    agreed("a proposal in place of an agreement", command="propose bob.toml --out agreement.toml"),
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


@cache
def outcome(case: Case) -> tuple[int, str, str]:
    """Runs a case, once in a process: exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with placed(case), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(shlex.split(case.command))
    return code, out.getvalue(), err.getvalue()


def heading(case: Case) -> str:
    """The line above a case in the document."""
    return f"## {CASES.index(case) + 1}. {case.title}"


def section(case: Case) -> str:
    """The part of the document about one case."""
    code, _, err = outcome(case)
    said = "\n".join(line.rstrip() for line in err.strip().splitlines())
    command = f"```text\n$ taciturn {case.command}\n{said}\n```"
    return f"{heading(case)}\n\n{command}\n\nExit code {code}.\n"


def render() -> str:
    """The document."""
    parts = [
        "# Errors\n",
        "What the commands say to what they cannot use: the thing, the place, the way out, and the "
        "exit code.\nThis page is made by `python -m tests.bad_input > docs/errors.md`; a test "
        "compares it with what the program says.\n",
        "| exit code | meaning |\n|---|---|\n| 0 | done |\n| 1 | a bug in taciturn |\n"
        "| 2 | wrong usage of the command |\n| 10 | a setting |\n"
        "| 11 | the training diverged |\n"
        "| 12 | a package that adds a mechanism or an attack is broken |\n"
        "| 13 | an agreement is not signed as it stands, or its time is over |\n| 20 | data |\n"
        "| 21 | a dataset that is not available |\n"
        "| 30 | this side's program broke the protocol: a bug |\n"
        "| 31 | the peer broke the protocol |\n| 32 | the settings of the two sides differ |\n"
        "| 33 | both sides wait for each other |\n| 34 | the peer aborted |\n"
        "| 40 | the connection failed or broke |\n| 41 | the peer was silent |\n"
        "| 42 | a certificate, a name or TLS was refused |\n| 43 | the peer did not connect |\n"
        "| 44 | our own certificate, key or CA |\n"
        "| 45 | this side's own cluster is lost or not fit for use |\n"
        "| 50 | keys, ciphertexts or ranges |\n"
        "| 60 | a guarantee would be broken |\n| 61 | the privacy budget does not pay |\n"
        "| 70 | a transcript |\n| 71 | a party's state: journal, lock or key |\n"
        "| 74 | a result could not be written |\n| 80 | `taciturn doctor` found a problem |\n"
        "| 130 | interrupted |\n",
    ]
    parts += [section(case) for case in CASES]
    return "\n".join(parts)


if __name__ == "__main__":
    print(render(), end="")
