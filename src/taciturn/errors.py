"""Every error a person can meet, in one tree.

::

    TaciturnError                      exit  1   (never raised bare)
    ├── ConfigError                       10  a setting is unknown, missing or out of range
    │   ├── DivergenceError               11  the training diverged at these settings
    │   ├── ExtensionError                12  a package that adds a mechanism or an attack is broken
    │   └── SignatureError                13  an agreement is not signed as it stands, or has ended
    ├── DataError                         20  a table, file or dataset is not fit for use
    │   ├── TableError                    20  several things in one table are not fit for use
    │   ├── FileError                     20  a file is absent, unreadable, cut short or unknown
    │   ├── ColumnError                   20  a column is missing, repeated, empty or not numeric
    │   ├── MissingValueError             20  a NaN or null where a number must stand
    │   ├── InfiniteValueError            20  an infinity where a number must stand
    │   ├── RowIdError                    20  an id is missing, repeated or not printable
    │   ├── RowOrderError                 20  two tables do not name the same rows in the same order
    │   ├── LabelValueError               20  a label is neither 0 nor 1, or all are the same
    │   ├── ShapeError                    20  dimensions that do not fit, or nothing left
    │   └── DatasetUnavailable            21  a named dataset is unavailable or altered
    ├── ProtocolError                     30  the conversation went wrong
    │   ├── LocalProtocolError            30  our own program broke the rules (a bug)
    │   ├── RemoteProtocolError           31  the peer said something it may not say
    │   │   ├── MalformedFrame            31  bytes that are no message
    │   │   └── AgreementError            32  the two sides differ in their settings
    │   ├── Deadlock                      33  both sides wait for each other
    │   └── PeerStopped                   34  the peer aborted; its reason as far as it tells
    ├── TransportError                    40  the connection failed
    │   ├── ConnectionLost                40  the link broke; it may be tried again
    │   ├── PeerSilent                    41  nothing came within the time-out
    │   ├── PeerRefused                   42  a certificate, a name or TLS was refused
    │   ├── PeerAbsent                    43  nobody was there within the time-out
    │   └── CertificateError              44  our own certificate, key or CA is not fit for use
    ├── ClusterError                      45  this side's own cluster is lost or not fit for use
    ├── CryptoError                       50  keys, ciphertexts or ranges
    ├── PrivacyError                      60  a guarantee would be broken
    │   └── BudgetExceeded                61  the privacy budget does not pay for a release
    ├── TranscriptError                   70  a transcript is cut, altered or of another version
    ├── StateError                        71  a party's journal, lock or key is not fit for use
    └── OutputError                       74  a result could not be written

Errors carry names, shapes and types, never a secret's value. ``diagnostics()`` speaks to a person:
what is wrong, where, and the way out. Where that is a setting, its name is spelled in the syntax in
which the person gave it (``SettingSyntax``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import ClassVar, Self

from taciturn.setting_syntax import COMMAND_LINE, PYTHON, Hint, SettingSyntax, TomlFile

_MOST_LISTED = 12


class TaciturnError(Exception):
    """The root of the tree.

    ``where`` is the place: a file, a column, a row. ``setting`` is a setting, or a parameter of the
    command, that is not possible as it is, and ``value`` what it is set to. ``hint`` is the way
    out. ``peer`` is the one of several peers that it is about, or empty. ``for_peer`` is the
    text that is sent to the peer, where it differs from the message.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        setting: str = "",
        value: object = None,
        hint: str | Hint = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.setting = setting
        self.peer = ""
        self.for_peer = ""
        self.syntax: SettingSyntax | None = None
        self._where, self._value, self._hint = where, value, hint

    @property
    def where(self) -> str:
        """The place; a setting is spelled in the error's ``syntax``, or else as Python."""
        return self._place(self.syntax or PYTHON)

    @property
    def hint(self) -> str:
        """The way out, spelled likewise."""
        return self._way_out(self.syntax or PYTHON)

    def at(self, where: str) -> Self:
        """The same error, at another place."""
        # Not by ``copy``: what sends errors between processes changes how they are copied.
        moved = type(self).__new__(type(self), *self.args)
        moved.__dict__.update(self.__dict__)
        moved._where = where
        return moved

    def telling_peer(self, text: str) -> Self:
        """Copy of the error, in place of whose message ``text`` is sent to the peer.

        Only for an error that follows from what the peer has sent and holds.
        """
        changed = self.at(self._where)
        changed.for_peer = text
        return changed

    def by(self, peer: str) -> Self:
        """Copy of the error that names the peer which it is about.

        >>> RemoteProtocolError("the peer sent nothing").by("alice-2").message
        'alice-2 sent nothing'
        """
        moved = self.at(self._where)
        moved.peer = peer
        named = self.message.replace("the peer", peer)
        moved.message = named if peer in named else f"{peer}: {named}"
        moved.args = (moved.message,)
        return moved

    def diagnostics(self, syntax: SettingSyntax = PYTHON) -> str:
        """Message, location and hint for the user.

        ``syntax`` spells settings where the error has none of its own (``rendering_errors_as``).

        >>> print(ConfigError("epochs is 0", setting="epochs", hint="use 1 or more").diagnostics())
        epochs is 0
          where: epochs=
          try:   use 1 or more
        """
        chosen = self.syntax or syntax
        lines = [self.message]
        if where := self._place(chosen):
            lines.append(f"  where: {where}")
        if hint := self._way_out(chosen):
            lines.append(f"  try:   {hint}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.diagnostics()

    def _place(self, syntax: SettingSyntax) -> str:
        if self._where or not self.setting:
            return self._where
        return syntax.place(self.setting, self._value)

    def _way_out(self, syntax: SettingSyntax) -> str:
        return self._hint.text(syntax) if isinstance(self._hint, Hint) else self._hint


# Receiver of the remarks of the running command.
_READER: ContextVar[SettingSyntax] = ContextVar("reader", default=PYTHON)


@contextmanager
def rendering_errors_as(syntax: SettingSyntax | None, section: str = "") -> Iterator[None]:
    """Errors that pass are spelled in this syntax, unless a context nearer to them set another.

    ``section`` is the one that is being read. Remarks that are made meanwhile (``spelled``) are
    spelled in the syntax too.

    >>> from taciturn.setting_syntax import COMMAND_LINE
    >>> try:
    ...     with rendering_errors_as(COMMAND_LINE):
    ...         raise ConfigError("epochs is 0", setting="epochs")
    ... except ConfigError as problem:
    ...     print(problem)
    epochs is 0
      where: --epochs
    """
    token = _READER.set(syntax or _READER.get())
    try:
        yield
    except TaciturnError as problem:
        if problem.syntax is None and syntax is not None:
            problem.syntax = syntax.within(section) if section else syntax
        raise
    finally:
        _READER.reset(token)


def spelled(hint: Hint) -> str:
    """A hint within a remark, in the syntax of ``rendering_errors_as``.

    >>> from taciturn.setting_syntax import COMMAND_LINE
    >>> with rendering_errors_as(COMMAND_LINE):
    ...     spelled(Hint("{epochs}", epochs=3))
    '--epochs 3'
    """
    return hint.text(_READER.get())


def advised(template: str, **values: object) -> str:
    """Advice on settings: as lines of a party's file where one is read, and else as options.

    >>> advised("{epochs}: fewer", epochs=3)
    '--epochs 3: fewer'
    """
    syntax = _READER.get()
    return Hint(template, **values).text(syntax if isinstance(syntax, TomlFile) else COMMAND_LINE)


class ConfigError(TaciturnError):
    """A setting is unknown, missing or out of range."""

    exit_code = 10


class DivergenceError(ConfigError):
    """The training diverged at these settings."""

    exit_code = 11


class ExtensionError(ConfigError):
    """A package that adds a mechanism or an attack does not load, or breaks a rule."""

    exit_code = 12


class SignatureError(ConfigError):
    """Not every side has signed this version of the agreement, or it has expired."""

    exit_code = 13


class DataError(TaciturnError):
    """A table, file or dataset is not fit for use."""

    exit_code = 20


class TableError(DataError):
    """Several problems in one table, each with its hint."""

    problems: tuple[DataError, ...] = ()

    @classmethod
    def from_problems(cls, problems: Iterable[DataError], *, where: str = "") -> DataError:
        """Combine all problems into one error; return a single one unchanged.

        >>> problems = [ColumnError("no age", hint="add it"), ColumnError("no sex")]
        >>> print(TableError.from_problems(problems))
        2 problems were found
          1. no age
             try:   add it
          2. no sex
        """
        flat: list[DataError] = []
        for problem in problems:
            flat += problem.problems if isinstance(problem, TableError) else [problem]
        # One thing may be met twice, as a missing header is by each column that is looked for.
        flat = list({(problem.message, problem.where): problem for problem in flat}.values())
        if len(flat) == 1:
            return flat[0]
        error = cls(f"{len(flat)} problems were found", where=where)
        error.problems = tuple(flat)
        return error

    def diagnostics(self, syntax: SettingSyntax = PYTHON) -> str:
        """The message, and below it each problem with its place and way out."""
        chosen = self.syntax or syntax
        lines = [super().diagnostics(chosen)]
        for number, problem in enumerate(self.problems, start=1):
            first, *others = problem.diagnostics(chosen).splitlines()
            lines += [f"  {number}. {first}", *(f"   {line}" for line in others)]
        return "\n".join(lines)


class FileError(DataError):
    """A file is absent, unreadable, cut short or of no known kind."""


class ColumnError(DataError):
    """A column is missing, repeated, empty or not numeric."""


class MissingValueError(DataError):
    """A NaN or null where a number is required."""


class InfiniteValueError(DataError):
    """An infinity where a finite number is required."""


class RowIdError(DataError):
    """A row id is missing, repeated or not printable."""


class RowOrderError(DataError):
    """Two tables do not name the same rows in the same order."""


class LabelValueError(DataError):
    """A label is neither 0 nor 1, or only one class is present."""


class ShapeError(DataError):
    """Dimensions do not fit together, or nothing is left."""


class DatasetUnavailable(DataError):
    """A named dataset is missing and cannot be downloaded, or its content is not the known one."""

    exit_code = 21


class ProtocolError(TaciturnError):
    """The conversation between the parties went wrong."""

    exit_code = 30


class LocalProtocolError(ProtocolError):
    """Our own program broke the rules of the conversation: a bug on this side."""


class RemoteProtocolError(ProtocolError):
    """The peer sent a message that the protocol does not allow at this point."""

    exit_code = 31


class MalformedFrame(RemoteProtocolError):
    """Received bytes are not a message. The only error that decoding raises."""


class AgreementError(RemoteProtocolError):
    """The two sides differ in version, settings or rows."""

    exit_code = 32


class Deadlock(ProtocolError):
    """Both sides wait for each other."""

    exit_code = 33


class PeerStopped(ProtocolError):
    """The peer aborted, with its reason if it gave one."""

    exit_code = 34
    code: int = 0
    """The exit code that the peer ends with, as it says."""


class TransportError(TaciturnError):
    """The connection to the peer failed."""

    exit_code = 40


class ConnectionLost(TransportError):
    """The link to the peer broke. Connecting anew may help."""


class PeerSilent(TransportError):
    """The link is open, but nothing arrived within the time-out."""

    exit_code = 41


class PeerRefused(TransportError):
    """One side does not accept the other: certificate, name or TLS. Trying again does not help."""

    exit_code = 42


class PeerAbsent(TransportError):
    """Nobody was there within the time-out."""

    exit_code = 43


class CertificateError(TransportError):
    """Our own certificate, key or CA is absent, unreadable, expired or does not fit."""

    exit_code = 44


class ClusterError(TaciturnError):
    """The cluster that computes for this side is lost, cannot be reached or is not fit for use."""

    exit_code = 45


class CryptoError(TaciturnError):
    """A key, a ciphertext or a value's range is not acceptable."""

    exit_code = 50


class PrivacyError(TaciturnError):
    """Continuing would break a stated guarantee."""

    exit_code = 60


class BudgetExceeded(PrivacyError):
    """The privacy budget does not pay for a release; nothing was sent."""

    exit_code = 61


class TranscriptError(TaciturnError):
    """A transcript is cut, altered, or of a version this program does not read."""

    exit_code = 70


class StateError(TaciturnError):
    """The stored state of an unfinished session is not fit to resume from."""

    exit_code = 71


class OutputError(TaciturnError):
    """A result could not be written."""

    exit_code = 74


def counted(count: int, noun: str) -> str:
    """A number of things, in words for a person.

    >>> counted(1, "row"), counted(1200, "row"), counted(8, "pass")
    ('1 row', '1,200 rows', '8 passes')
    """
    ending = "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the known word closest to a mistyped one.

    >>> nearest("breast-cancr", ["breast-cancer", "sklearn-digits"])
    'did you mean breast-cancer? known: breast-cancer, sklearn-digits'
    """
    return _suggestion(word, list(known), str)


def nearest_setting(word: str, settings: Iterable[str]) -> Hint:
    """The same for the name of a setting, which a ``SettingSyntax`` spells.

    >>> nearest_setting("batch-sise", ["batch_size", "epochs"]).text(PYTHON)
    'did you mean batch_size? known: batch_size, epochs'
    """
    return Hint(_suggestion(word.replace("-", "_"), list(settings), lambda name: f"{{{name}}}"))


def _suggestion(word: str, names: list[str], spell: Callable[[str], str]) -> str:
    close = get_close_matches(word, names, n=1)
    listed = "known: " + ", ".join(map(spell, names[:_MOST_LISTED]))
    if len(names) > _MOST_LISTED:
        listed += ", …"
    return f"did you mean {spell(close[0])}? {listed}" if close else listed
