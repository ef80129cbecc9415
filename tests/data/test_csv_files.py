from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.csv_files import Dialect, converted
from taciturn.data.lazy_table import LazyTable
from taciturn.data.source import TableSource, read_frame
from taciturn.errors import ColumnError, FileError
from tests.expected import refused
from tests.modules import module_of


@pytest.fixture
def save(tmp_path):
    def write(name, content):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


TABLE = "id,age,job\n007,31,clerk\n008,NA,?\n"
ROWS = [("007", 31, "clerk"), ("008", None, None)]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "A.CSV", "a.tsv", "a.tsv.gz"])
def test_text_files(save, name):
    content = TABLE.replace(",", "\t") if "tsv" in name else TABLE
    assert read_frame(save(name, content), text=["id"]).rows() == ROWS


@pytest.mark.parametrize(
    "content",
    [
        TABLE.replace("\n", "\r\n"),
        "\ufeff" + TABLE,
        TABLE + "\n\n",
        TABLE.replace("\n", "\r\n") + "\r\n",
        TABLE.removesuffix("\n"),
        TABLE.replace(",", " , "),
        TABLE.replace("clerk", '"clerk"'),
        TABLE.replace("clerk", '"clerk"') + "\n",
    ],
)
def test_other_spellings_of_the_same_table(save, content):
    assert read_frame(save("a.csv", content.replace("id ", "id")), text=["id"]).rows() == ROWS


def test_parquet(tmp_path):
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert read_frame(tmp_path / "a.parquet").equals(frame)


@pytest.mark.parametrize(
    ("content", "options", "rows"),
    [
        pytest.param("id,a\n007,1\n", {}, [("007", 1)], id="leading-zeros-stay"),
        pytest.param("a,b\n 1, x\n 2, ?\n", {}, [(1, "x"), (2, None)], id="padded"),
        pytest.param("a;b\n1,5;1.234\n2;5\n", {}, [("1,5", "1.234"), ("2", "5")], id="marks"),
        pytest.param(
            "a,b\n1,NA\n2,-\n",
            {"dialect": Dialect(na_values=("-",))},
            [(1, "NA"), (2, None)],
            id="missing-marks",
        ),
        pytest.param("a\n1\n\n2\n", {}, [(1,), (None,), (2,)], id="blank-line-of-one-column"),
        pytest.param('a,b\n1,"x, ""y""\nz"\n', {}, [(1, 'x, "y"\nz')], id="quoted"),
    ],
)
def test_values_are_read_as_they_are_meant(save, content, options, rows):
    assert read_frame(save("a.csv", content), **options).rows() == rows


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("a.csv", "", ()),
        ("a.csv.gz", "", ()),
        ("a.parquet", "", ()),
        ("a.csv", "a,b\n", ()),
        ("a.csv", "a,b\n\n\n", ()),
        ("a.csv", "\na,b\n1,2\n", ()),
        ("a.csv", "a,b\n1,2\n3\n", "row 2"),
        ("a.csv", "a,b\n1,2\n3,4,5\n", "row 2"),
        ("a.csv", 'a,b\n1,"2"\n3\n', "row 2"),
        ("a.csv", "a,b\n1,2\n\n3,4\n", "row 2"),
        ("a.csv", "a\n1,2\n", "row 1"),
        ("a.csv", b"a,b\n1,\xff\n", "UTF-8"),
        ("a.csv", b"\xe9,b\n1,2\n", ("header", "UTF-8")),
        ("a.csv", b"a,b\n1,x\n2,\xe9\n", ("row 2", "UTF-8")),
        ("a.csv", b'a,b\n1,"x"\n2,\xe9\n', ("row 2", "UTF-8")),
        ("a.csv", b"\xff\xfea\x00\n", "utf-16"),
        ("a.csv", 'a,b\n1,"secret\n', ()),
        ("a.parquet", "PAR1 no PAR1", ()),
        ("a.xlsx", "x", "a.xlsx"),
        ("a", "x", ()),
    ],
)
def test_unfit_files_are_refused_by_path_and_row_and_never_by_value(save, name, content, names):
    path = save(name, content)
    with refused(FileError, names=names) as caught:
        read_frame(path)
    assert str(path) in caught.value.where
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_unreadable_files(save, monkeypatch):
    path = save("a.csv", TABLE)

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with refused(FileError):
        read_frame(path)


def test_a_cut_gzip_file(save):
    path = save("a.csv.gz", TABLE * 50)
    path.write_bytes(path.read_bytes()[:-12])
    with refused(FileError):
        read_frame(path)
    path.write_bytes(b"no gzip")
    with refused(FileError):
        read_frame(path)


@pytest.mark.parametrize("damage", ["cut", "body", "footer"])
def test_a_damaged_parquet_file(tmp_path, damage):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": range(1000), "b": [str(i) for i in range(1000)]}).write_parquet(path)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "body":
        data[50:500] = b"\xff" * 450
    else:
        data[-200:-10] = b"\xff" * 190
    path.write_bytes(data)
    with refused(FileError):
        read_frame(path)


@pytest.mark.parametrize("header", ["a,b,a", '"a",b,a'])
def test_repeated_columns_are_refused(save, header):
    path = save("a.csv", f"{header}\n1,2,3\n")
    with refused(ColumnError, names=("'a'", path)):
        read_frame(path)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_the_look_over_agrees_with_a_plain_count(tmp_path_factory, widths, end, newline, quoted):
    """Rows of 0 to 3 fields under a header of 2, with quotes and without."""
    word = '"1"' if quoted else "1"
    lines = ["h,k", *(",".join([word] * width) for width in widths)]
    path = tmp_path_factory.mktemp("look") / "a.csv"
    path.write_text(newline.join(lines) + (newline if end else ""), newline="")
    kept = len("".join(str(width) for width in widths).rstrip("0"))
    fit = kept > 0 and all(width == 2 for width in widths[:kept])
    if fit:
        assert read_frame(path).height == kept
    else:
        with refused(FileError):
            read_frame(path)


# --- dialects ------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_looked_for(save, separator):
    table = TABLE.replace(",", separator)
    assert read_frame(save("a.csv", table), text=["id"]).rows() == ROWS


def test_a_separator_that_is_not_clear_is_said(save):
    path = save("a.csv", "a;b,c\n1;2,3\n")
    assert read_frame(path).columns == ["a;b", "c"]
    assert read_frame(path, dialect=Dialect(separator=";")).columns == ["a", "b,c"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_encodings(save, name):
    text = "a,b\n1,Köln\n"
    latin = save(name, text.encode("latin-1"))
    with refused(FileError, names=("row 1", 'encoding="latin-1"')):
        read_frame(latin)
    assert read_frame(latin, dialect=Dialect(encoding="latin-1")).rows() == [(1, "Köln")]
    assert read_frame(save(name, text.encode("utf-16"))).rows() == [(1, "Köln")]


@pytest.mark.parametrize(
    "content",
    [
        TABLE,
        "id,a,b\n1, 1.5,x\n2, ?,y\n3, 2,NA\n",
        "id;a\nx;1,5\ny;2,25\nz;\n",
        'id,a\nx,"one\ntwo, ""three"""\ny,\nz,""\n',
        "id,a\r\nx,1\r\ny,\r\n\r\n\n",
        "a\n1\n\n2\n",
        "\ufeffid,a\nx,true\ny,false\n",
        "id,a,b\n007,2026-01-31,12345678901234567890\n008,x,1e5",
    ],
)
@pytest.mark.parametrize("size", [1, 20, 1 << 20])
def test_a_converted_file_has_the_same_columns(save, tmp_path, monkeypatch, content, size):
    """Whatever the batches in which it is converted."""
    monkeypatch.setattr(module_of(Dialect), "_PART_BYTES", size)
    path = save("a.csv", content)
    frame = read_frame(path, text=["id"])
    table = converted(path, tmp_path / "parts", text=("id",))
    assert (table.columns, table.height) == (frame.columns, frame.height)
    for name in frame.columns:
        assert table[name].equals(frame[name], check_dtypes=True)


def test_a_large_file_is_converted_where_there_is_a_folder(save, tmp_path, monkeypatch):
    path = save("a.csv", TABLE)
    monkeypatch.setattr(module_of(Dialect), "LARGE_CSV", 1)
    for folder, kind in ((None, pl.DataFrame), (tmp_path / "parts", LazyTable)):
        table = TableSource.at(path).open(text=["id"], folder=folder)
        assert isinstance(table, kind)
        assert table.select(["id"])["id"].to_list() == [row[0] for row in ROWS]
    for number, content in enumerate(("a,b\n1\n", "a,b\n")):
        with refused(FileError):
            TableSource.at(save("b.csv", content)).open(folder=tmp_path / str(number))
