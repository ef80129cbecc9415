"""The transcript file: whole or refused, and never half under its name."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from taciturn.engine.transcript import MAGIC, MAX_HEADER, Transcript, TranscriptFile
from taciturn.errors import OutputError, TranscriptError
from taciturn.protocol.messages import Role
from taciturn.version import TRANSCRIPT_VERSION
from tests.expected import refused

HEADER = {"agreement": {"epochs": 1}, "kind": "test", "ö": "é"}
FOOTER = {"accuracy": 0.5, "names": ["a", "b"]}
RECORDS: tuple[tuple[Role, bytes], ...] = (
    ("alice", b"TACT\x01\x01hello"),
    ("bob", b""),
    ("bob", b"\xff" * 9),
    ("alice", b"\x00\x01"),
)

_DEV_FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(
    not _DEV_FULL.exists(), reason="there is no /dev/full on this system"
)


def write(path: Path) -> Path:
    with TranscriptFile(path, HEADER) as file:
        for sender, frame in RECORDS:
            file(sender, frame)
        file.conclude(FOOTER)
    return path


@pytest.fixture
def recorded(tmp_path):
    return write(tmp_path / "run.transcript")


def content(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def load_bytes(path: Path, data: bytes) -> Transcript:
    path.write_bytes(data)
    return Transcript.load(path)


def chained(header: bytes, records: list[bytes], footer: bytes) -> bytes:
    """A file with a closing chain, written after the docstring and not after the code."""
    link = hashlib.sha256(header).digest()
    for record in records:
        link = hashlib.sha256(link + record).digest()
    link = hashlib.sha256(link + footer).digest()
    return b"".join(
        [
            b"TACITURN-TRANSCRIPT\n" + bytes([TRANSCRIPT_VERSION]),
            struct.pack("<I", len(header)),
            header,
            *records,
            b"\xff",
            struct.pack("<I", len(footer)),
            footer,
            struct.pack("<Q", len(records)),
            link,
        ]
    )


def test_what_was_written_is_read_back(recorded):
    transcript = Transcript.load(recorded)
    assert transcript.header == HEADER
    assert transcript.records == RECORDS
    assert transcript.footer == FOOTER
    assert list(transcript.frames("alice")) == [RECORDS[0][1], RECORDS[3][1]]
    assert list(transcript.frames("bob")) == [RECORDS[1][1], RECORDS[2][1]]
    assert content(recorded.parent) == ["run.transcript"]


def test_the_file_is_laid_out_as_the_docstring_says(recorded):
    records = [
        bytes([{"alice": 0, "bob": 1}[sender]]) + struct.pack("<I", len(frame)) + frame
        for sender, frame in RECORDS
    ]
    texts = (
        json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
        for values in (HEADER, FOOTER)
    )
    assert recorded.read_bytes() == chained(next(texts), records, next(texts))


def test_an_older_file_of_that_name_is_replaced(recorded):
    recorded.write_bytes(b"older")
    write(recorded)
    assert Transcript.load(recorded).records == RECORDS


def test_what_the_recorder_kept_is_chained_and_is_no_frame(tmp_path):
    path = tmp_path / "kept"
    with TranscriptFile(path, HEADER) as file:
        file.persisted(b"a key")
        file(*RECORDS[0])
    assert Transcript.load(path) == Transcript(HEADER, RECORDS[:1], {}, (b"a key",))
    with refused(TranscriptError):
        load_bytes(path, path.read_bytes().replace(b"a key", b"b key"))


def test_a_transcript_does_not_show_its_coins():
    assert "secret" not in repr(Transcript({"coins": "secret"}, (("bob", b"secret"),)))


# --- refused if cut or altered -------------------------------------------------------------------


@pytest.mark.slow  # some seconds: every bit
def test_every_single_bit_flip_is_refused(recorded, tmp_path):
    """Every byte counts: the chain covers the texts and records, the reader checks the rest."""
    data, other = recorded.read_bytes(), tmp_path / "altered"
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            with pytest.raises(TranscriptError):
                load_bytes(other, bytes(changed))


def test_every_truncation_is_refused(recorded, tmp_path):
    data = recorded.read_bytes()
    for length in range(len(data)):
        with pytest.raises(TranscriptError):
            load_bytes(tmp_path / "cut", data[:length])


def test_records_in_another_order_or_left_out_are_refused(tmp_path):
    one, two = b"\x00\x01\x00\x00\x00a", b"\x01\x01\x00\x00\x00b"
    data = chained(b"{}", [one, two], b"{}")
    assert len(load_bytes(tmp_path / "t", data).records) == 2
    for altered in (
        data.replace(one + two, two + one),
        data.replace(one + two, one),
        data.replace(one + two, one + one + two),
        data.replace(one + two, b"\x00\x07\x00\x00\x00" + b"a" + two),
    ):
        assert altered != data
        with pytest.raises(TranscriptError):
            load_bytes(tmp_path / "t", altered)


def of_version(number: int) -> Callable[[bytes], bytes]:
    return lambda data: data[: len(MAGIC)] + bytes([number]) + data[len(MAGIC) + 1 :]


def instead(data: bytes) -> Callable[[bytes], bytes]:
    return lambda _: data


ALTERED: dict[str, Callable[[bytes], bytes]] = {
    **{f"{n} bytes more": lambda data, n=n: data + bytes(n) for n in (1, 1000)},  # type: ignore[misc]
    "two in one file": lambda data: 2 * data,
    "a header of another run": lambda data: data.replace(b'"epochs":1', b'"epochs":2'),
    "nothing": instead(b""),
    "half of the magic": instead(b"TACITURN"),
    "an archive": instead(b"PK\x03\x04" + bytes(100)),
    "the magic in the second line": instead(b"\n" + MAGIC),
    **{f"version {number}": of_version(number) for number in (0, 2, TRANSCRIPT_VERSION + 1, 255)},
    **{
        f"header {header!r}, footer {footer!r}": instead(chained(header, [], footer))
        for header, footer in [
            (b"[]", b"{}"),
            (b"{}", b"1"),
            (b"{", b"{}"),
            (b"{}", b""),
            (b"\xff", b"{}"),
        ]
    },
    # All else is right, the hash chain included.
    "another magic": lambda data: data.replace(MAGIC, MAGIC.swapcase(), 1),
    "a header that is too long": instead(chained(b'{"a":"' + b"a" * MAX_HEADER + b'"}', [], b"{}")),
    "a deeply nested header": instead(chained(b"[" * 200_000, [], b"{}")),
    # Refused before they are read.
    **{
        f"a header of {size} bytes": instead(MAGIC + b"\x01" + struct.pack("<I", size) + b"{}")
        for size in (MAX_HEADER + 1, 2**32 - 1)
    },
    "a record of absurd length": instead(
        chained(b"{}", [b"\x00" + struct.pack("<I", 2**32 - 1)], b"{}")
    ),
    **{
        f"a record of sender {kind}": instead(chained(b"{}", [bytes([kind]) + bytes(4)], b"{}"))
        for kind in (33, 254)
    },
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_or_foreign_file_is_refused_with_its_place_and_a_way_out(recorded, name):
    data = recorded.read_bytes()
    changed = ALTERED[name](data)
    assert changed != data
    with refused(TranscriptError) as raised:
        load_bytes(recorded, changed)
    assert raised.value.where == str(recorded)
    assert raised.value.hint


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_an_absent_file_or_a_folder_is_named_with_its_place(tmp_path, name):
    with refused(TranscriptError) as raised:
        Transcript.load(tmp_path / name)
    assert raised.value.where == str(tmp_path / name)


# --- writing that fails ---------------------------------------------------------------------------


def write_and_fail(path: Path, problem: BaseException) -> None:
    with TranscriptFile(path, HEADER) as file:
        file("alice", b"frame")
        raise problem


def test_an_error_in_the_conversation_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write_and_fail(tmp_path / "t", ZeroDivisionError())
    assert content(tmp_path) == []


def test_while_the_conversation_goes_on_the_name_is_not_taken(tmp_path):
    with TranscriptFile(tmp_path / "t", HEADER) as file:
        file("alice", b"frame")
        assert content(tmp_path) == ["t.partial"]
    assert content(tmp_path) == ["t"]


@pytest.mark.parametrize("folder", ["absent", "file"])
def test_a_folder_that_is_none_is_named(tmp_path, folder):
    (tmp_path / "file").write_text("here")
    path = tmp_path / folder / "t"
    with refused(OutputError) as raised:
        TranscriptFile(path, HEADER)
    assert raised.value.where == str(path)
    assert content(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_read_only_folder_is_named(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with refused(OutputError):
        TranscriptFile(folder / "t", HEADER)
    assert content(folder) == []


def test_a_folder_of_the_wanted_name_is_left_alone(tmp_path):
    (tmp_path / "t").mkdir()
    with refused(OutputError), TranscriptFile(tmp_path / "t", {}):
        pass
    assert content(tmp_path) == ["t"]


@pytest.mark.parametrize("path", ["/", ".", ""])
def test_a_path_without_a_name_is_refused(path):
    with pytest.raises(OutputError):
        TranscriptFile(Path(path), HEADER)


def test_a_footer_that_is_no_json_leaves_no_file(tmp_path):
    def record() -> None:
        with TranscriptFile(tmp_path / "t", {}) as file:
            file.conclude({"x": object()})

    with pytest.raises(TypeError):
        record()
    gc.collect()  # A stream left open would warn here, and not in a later test.
    assert content(tmp_path) == []


@needs_a_full_disk
@pytest.mark.parametrize(
    ("header", "frame"),
    [({"x": "y" * 100_000}, b""), ({}, b"z" * 100_000), ({}, b"z")],
    ids=["at-the-header", "at-a-frame", "at-the-end"],
)
def test_a_full_disk_is_named_and_leaves_no_file(tmp_path, header, frame):
    """The partial file is a link to /dev/full: every byte that leaves the buffer finds no room."""
    (tmp_path / "t.partial").symlink_to(_DEV_FULL)

    def record() -> None:
        with TranscriptFile(tmp_path / "t", header) as file:
            file("alice", frame)

    with refused(OutputError):
        record()
    assert content(tmp_path) == []
    assert _DEV_FULL.exists()


@pytest.mark.skipif(not _DEV_FULL.exists(), reason="there is no /dev/full on this system")
@pytest.mark.parametrize("size", [4, 1 << 20], ids=["in the buffer", "beyond it"])
def test_what_is_kept_outlives_a_full_disk(tmp_path, size):
    path = tmp_path / "run.transcript"
    recording = TranscriptFile(path, {}, keep=True)
    at = recording.position()
    recording._stream.close()
    recording._stream = _DEV_FULL.open("wb")

    def record() -> None:
        recording("alice", bytes(size))
        recording.position()

    with pytest.raises(OutputError):
        record()
    with TranscriptFile(path, {}, at=at) as resumed:
        resumed("bob", b"another")
    assert Transcript.load(path).records == (("bob", b"another"),)
