"""Message <-> bytes: versioned, canonical, size-limited.

::

    frame   = "TACT" version:u8 code:u8 field*            numbers are little-endian
    int     = i64                      str = count:u32 utf-8        bytes = count:u32 bytes
    floats  = count:u32 f64*           finite only
    whole   = count:u32 i64*           at most 2^20
    cipher  = length:u32 bytes         length: entries of the vector
    event   = str f64*                 the reals are the event's fields, in their order
    product = event width:u16 count:u32 (big-endian unsigned of that width)*
    ints    = event width:u8 count:u32 (signed of that width: 1, 2, 4 or 8)*
    reals   = event floats
    rows    = count:u32 u32*           ascending
    group   = count:u32 (32 bytes)*    at most 2^15; whether they are elements is looked at later

The installed jobs declare the messages (``job_registry``); the class of one is loaded when its code
is first met. Fields follow in the order of their class; there are no names and no optional parts,
so that one message has one encoding: ``encode(decode(frame)) == frame`` for every frame that is
accepted.
Decoding hostile bytes raises ``MalformedFrame`` and nothing else, and takes memory of a small
multiple of the frame's own length: most for a release of many narrow numbers, about twenty times
its bytes, of which there may be 2^20.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector
from taciturn.crypto.group import ELEMENT_BYTES
from taciturn.errors import LocalProtocolError, MalformedFrame, TaciturnError
from taciturn.files import canonical_json
from taciturn.job_registry import registry
from taciturn.privacy.base import MaskedProduct, Released
from taciturn.privacy.events import PrivacyEvent
from taciturn.privacy.prices import EVENTS
from taciturn.protocol.messages import (
    GroupElements,
    Message,
    PublicBytes,
    RowNumbers,
    ShareNumbers,
)

MAGIC = b"TACT"
VERSION = 1
MAX_FRAME = 64 << 20
MAX_TEXT = 64 << 10
MAX_RELEASED = 1 << 20
MAX_ELEMENTS = 1 << 15

DIGEST_BYTES = 16

C = TypeVar("C", EncryptedVector, EncryptedAnswer)


class _Reader:
    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._frame):
            raise MalformedFrame(f"the frame ends {end - len(self._frame)} bytes too early")
        part = self._frame[self._at : end]
        self._at = end
        return part

    def number(self, form: struct.Struct) -> int:
        return int(form.unpack(self.take(form.size))[0])

    def finish(self) -> None:
        if self._at != len(self._frame):
            raise MalformedFrame(f"{len(self._frame) - self._at} bytes follow the frame's end")


_U8, _U16, _U32, _I64 = (struct.Struct("<" + letter) for letter in "BHIq")


def _packed(form: struct.Struct, value: int) -> bytes:
    try:
        return form.pack(value)
    except struct.error:
        raise LocalProtocolError(f"a number does not fit {8 * form.size} bits") from None


def _write_int(value: int) -> bytes:
    return _packed(_I64, value)


def _read_int(reader: _Reader) -> int:
    return reader.number(_I64)


def _write_bytes(value: bytes) -> bytes:
    return _packed(_U32, len(value)) + value


def _read_bytes(reader: _Reader) -> bytes:
    return reader.take(reader.number(_U32))


def _write_str(value: str) -> bytes:
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError("a text field is not Unicode") from None
    if len(data) > MAX_TEXT:
        raise LocalProtocolError(f"a text field of {len(data)} bytes exceeds {MAX_TEXT}")
    return _write_bytes(data)


def _read_str(reader: _Reader) -> str:
    data = _read_bytes(reader)
    if len(data) > MAX_TEXT:
        raise MalformedFrame(f"a text field of {len(data)} bytes exceeds {MAX_TEXT}")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise MalformedFrame("a text field is not UTF-8") from None


def _write_floats(value: FloatArray) -> bytes:
    if value.ndim != 1 or value.dtype != np.float64:
        raise LocalProtocolError("scores must be a vector of float64")
    if not np.isfinite(value).all():
        raise LocalProtocolError("a score is not finite")
    return _U32.pack(len(value)) + value.astype("<f8", copy=False).tobytes()


def _read_floats(reader: _Reader) -> FloatArray:
    # The bytes are taken before an array is made: a count alone cannot ask for memory.
    data = reader.take(8 * reader.number(_U32))
    values: FloatArray = np.frombuffer(data, dtype="<f8").astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        raise MalformedFrame("a score is not finite")
    return values


def _write_cipher(value: EncryptedVector | EncryptedAnswer) -> bytes:
    return _packed(_U32, value.length) + _write_bytes(value.data)


def _cipher_reader(kind: type[C]) -> Callable[[_Reader], C]:
    def read(reader: _Reader) -> C:
        length = reader.number(_U32)
        return kind(data=_read_bytes(reader), length=length)

    return read


def _require_released(value: object) -> None:
    if not isinstance(value, Released):
        raise LocalProtocolError(
            "a value that depends on labels is not Released", hint="pass it through a mechanism"
        )


def _write_product(value: Released[MaskedProduct]) -> bytes:
    _require_released(value)
    numbers = value.value
    if len(numbers) > MAX_RELEASED:
        raise LocalProtocolError(f"a release of {len(numbers)} numbers exceeds {MAX_RELEASED}")
    if any(number < 0 for number in numbers):
        raise LocalProtocolError("a released residue is negative")
    width = max(1, (max(numbers, default=0).bit_length() + 7) // 8)
    body = b"".join(number.to_bytes(width, "big") for number in numbers)
    head = _packed(_U16, width) + _packed(_U32, len(numbers))
    return _write_event(value.event) + head + body


def _write_event(event: PrivacyEvent) -> bytes:
    values = [getattr(event, field.name) for field in fields(event)]
    return _write_str(event.name) + struct.pack(f"<{len(values)}d", *values)


def _read_event(reader: _Reader) -> PrivacyEvent:
    kind = EVENTS.get(_read_str(reader))
    if kind is None:
        raise MalformedFrame("a release is of an unknown kind")
    count = len(fields(kind))
    values = struct.unpack(f"<{count}d", reader.take(8 * count))
    try:
        return kind(*values)
    # An event checks its own parameters, which are the peer's here.
    except TaciturnError:
        raise MalformedFrame("a release's event has an impossible parameter") from None


def _read_product(reader: _Reader) -> Released[MaskedProduct]:
    event = _read_event(reader)
    width, count = reader.number(_U16), reader.number(_U32)
    if count > MAX_RELEASED:
        raise MalformedFrame(f"a release of {count} numbers exceeds {MAX_RELEASED}")
    data = reader.take(width * count)
    if width != 1 and not any(data[::width] if width else b""):
        # Only the narrowest width is canonical.
        raise MalformedFrame("a release is wider than its largest number")
    numbers = tuple(
        int.from_bytes(data[at : at + width], "big") for at in range(0, len(data), width)
    )
    return Released(numbers, event)


def _write_ints(value: Released[IntArray]) -> bytes:
    _require_released(value)
    numbers = value.value
    if numbers.ndim != 1 or numbers.dtype != np.int64:
        raise LocalProtocolError("released integers must be a vector of int64")
    if len(numbers) > MAX_RELEASED:
        raise LocalProtocolError(f"a release of {len(numbers)} numbers exceeds {MAX_RELEASED}")
    width = _narrowest(numbers)
    head = _write_event(value.event) + _packed(_U8, width) + _packed(_U32, len(numbers))
    return head + numbers.astype(f"<i{width}").tobytes()


def _read_ints(reader: _Reader) -> Released[IntArray]:
    event = _read_event(reader)
    width, count = reader.number(_U8), reader.number(_U32)
    if width not in _WIDTHS or count > MAX_RELEASED:
        raise MalformedFrame(f"invalid release of {count} numbers of {width} bytes")
    numbers: IntArray = np.frombuffer(reader.take(width * count), f"<i{width}").astype(np.int64)
    if width != _narrowest(numbers):
        raise MalformedFrame("a release is wider than its largest number")
    return Released(numbers, event)


_WIDTHS = (1, 2, 4, 8)


def _narrowest(numbers: IntArray) -> int:
    if not len(numbers):
        return _WIDTHS[0]
    extremes = int(numbers.min()), int(numbers.max())
    # In two's complement -2^(n-1) fits n bits, and 2^(n-1) does not.
    bits = max((extreme if extreme >= 0 else ~extreme).bit_length() for extreme in extremes)
    return next(width for width in _WIDTHS if bits < 8 * width)


def _write_reals(value: Released[FloatArray]) -> bytes:
    _require_released(value)
    return _write_event(value.event) + _write_floats(value.value)


def _read_reals(reader: _Reader) -> Released[FloatArray]:
    event = _read_event(reader)
    return Released(_read_floats(reader), event)


def _write_rows(value: IndexArray) -> bytes:
    if value.ndim != 1 or value.dtype != np.int64:
        raise LocalProtocolError("row numbers must be a vector of int64")
    if not _ascending(value) or value.max(initial=0) >= 1 << 32:
        raise LocalProtocolError("row numbers must ascend from 0 and fit 32 bits")
    return _packed(_U32, len(value)) + value.astype("<u4").tobytes()


def _read_rows(reader: _Reader) -> IndexArray:
    rows: IndexArray = np.frombuffer(reader.take(4 * reader.number(_U32)), "<u4").astype(np.int64)
    if not _ascending(rows):
        raise MalformedFrame("row numbers do not ascend")
    return rows


def _ascending(rows: IndexArray) -> bool:
    return not len(rows) or bool(rows[0] >= 0 and (rows[1:] > rows[:-1]).all())


def _write_whole(value: IntArray) -> bytes:
    if len(value) > MAX_RELEASED:
        raise LocalProtocolError(f"{len(value)} whole numbers exceed a frame's {MAX_RELEASED}")
    return _packed(_U32, len(value)) + value.astype("<i8").tobytes()


def _read_whole(reader: _Reader) -> IntArray:
    count = reader.number(_U32)
    if count > MAX_RELEASED:
        raise MalformedFrame(f"{count} whole numbers exceed {MAX_RELEASED}")
    return np.frombuffer(reader.take(8 * count), "<i8").astype(np.int64)


def _write_group(value: bytes) -> bytes:
    count, rest = divmod(len(value), ELEMENT_BYTES)
    if rest or count > MAX_ELEMENTS:
        raise LocalProtocolError(f"{len(value)} bytes are no list of group elements for a frame")
    return _packed(_U32, count) + value


def _read_group(reader: _Reader) -> bytes:
    count = reader.number(_U32)
    if count > MAX_ELEMENTS:
        raise MalformedFrame(f"a list of {count} group elements exceeds {MAX_ELEMENTS}")
    return reader.take(ELEMENT_BYTES * count)


@dataclass(frozen=True, slots=True)
class _FieldCodec:
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[_Reader], Any]
    from_bob: bool


# Bob may send what is public, released or encrypted; a bare array is Alice's alone.
_FIELDS: Mapping[Any, _FieldCodec] = {
    int: _FieldCodec("int", _write_int, _read_int, from_bob=True),
    str: _FieldCodec("str", _write_str, _read_str, from_bob=True),
    PublicBytes: _FieldCodec("bytes", _write_bytes, _read_bytes, from_bob=True),
    EncryptedVector: _FieldCodec(
        "cipher", _write_cipher, _cipher_reader(EncryptedVector), from_bob=True
    ),
    EncryptedAnswer: _FieldCodec(
        "answer", _write_cipher, _cipher_reader(EncryptedAnswer), from_bob=True
    ),
    RowNumbers: _FieldCodec("rows", _write_rows, _read_rows, from_bob=True),
    GroupElements: _FieldCodec("group", _write_group, _read_group, from_bob=True),
    Released[IntArray]: _FieldCodec("ints", _write_ints, _read_ints, from_bob=True),
    Released[FloatArray]: _FieldCodec("reals", _write_reals, _read_reals, from_bob=True),
    Released[MaskedProduct]: _FieldCodec("product", _write_product, _read_product, from_bob=True),
    FloatArray: _FieldCodec("floats", _write_floats, _read_floats, from_bob=False),
    ShareNumbers: _FieldCodec("whole", _write_whole, _read_whole, from_bob=False),
}


def field_codecs(kind: type[Message]) -> tuple[tuple[str, _FieldCodec], ...]:
    """Codec of each field of a message class."""
    hints = get_type_hints(kind)
    codecs = []
    for field in fields(kind):
        codec = _FIELDS.get(hints[field.name])
        if codec is None:
            raise LocalProtocolError(f"{kind.__name__}.{field.name} has a type the codec refuses")
        if "bob" in kind.senders and not codec.from_bob:
            raise LocalProtocolError(
                f"{kind.__name__}.{field.name} would let Bob send a bare array",
                hint="wrap it in Released, or encrypt it",
            )
        codecs.append((field.name, codec))
    return tuple(codecs)


@cache
def _registered(code: int) -> tuple[type[Message] | None, tuple[tuple[str, _FieldCodec], ...]]:
    """The message that an installed job declares with a code, and the codecs of its fields."""
    kind = registry().message(code)
    return (None, ()) if kind is None else (kind, field_codecs(kind))


def messages() -> tuple[type[Message], ...]:
    """The messages of all installed jobs, by code; loads them."""
    kinds = (_registered(code)[0] for code in registry().codes())
    return tuple(kind for kind in kinds if kind is not None)


def messages_digest(codes: Iterable[int]) -> bytes:
    """Digest of the wire form of messages: the senders of each, and its fields in their order."""
    forms: dict[str, object] = {}
    for code in sorted(codes):
        kind, codecs = _registered(code)
        if kind is not None:
            forms[str(code)] = [sorted(kind.senders), [codec.name for _, codec in codecs]]
    return hashlib.sha256(canonical_json(forms).encode()).digest()[:DIGEST_BYTES]


def encode(message: Message) -> bytes:
    """The frame of a message."""
    kind, codecs = _registered(message.code)
    # By identity: a subclass would be written without the fields that it adds.
    if kind is not type(message):
        raise LocalProtocolError(f"{type(message).__name__} is not a registered message")
    parts = [MAGIC, _U8.pack(VERSION), _U8.pack(message.code)]
    parts += [codec.write(getattr(message, name)) for name, codec in codecs]
    frame = b"".join(parts)
    if len(frame) > MAX_FRAME:
        raise LocalProtocolError(
            f"a frame of {len(frame)} bytes exceeds {MAX_FRAME}", hint="use smaller batches"
        )
    return frame


def decode(frame: bytes) -> Message:
    """The message of a frame; ``MalformedFrame`` unless it is exactly one of this version."""
    if len(frame) > MAX_FRAME:
        raise MalformedFrame(f"a frame of {len(frame)} bytes exceeds {MAX_FRAME}")
    reader = _Reader(frame)
    kind, codecs = _read_head(reader)
    values = {name: codec.read(reader) for name, codec in codecs}
    # Bytes after the last field would give one message two encodings.
    reader.finish()
    return kind(**values)


def kind_of(frame: bytes) -> type[Message]:
    """Which message a frame holds, by its head alone; its fields are not looked at.

    >>> from taciturn.protocol.messages import BudgetSpent
    >>> kind_of(encode(BudgetSpent(3))).__name__
    'BudgetSpent'
    """
    kind, _ = _read_head(_Reader(frame))
    return kind


def _read_head(reader: _Reader) -> tuple[type[Message], tuple[tuple[str, _FieldCodec], ...]]:
    if reader.take(len(MAGIC)) != MAGIC:
        raise MalformedFrame("the bytes are not a frame")
    version = reader.number(_U8)
    if version != VERSION:
        raise MalformedFrame(f"a frame of version {version}; this program speaks {VERSION}")
    code = reader.number(_U8)
    kind, codecs = _registered(code)
    if kind is None:
        raise MalformedFrame(f"a message of unknown kind {code}")
    return kind, codecs
