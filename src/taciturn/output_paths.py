"""Output paths: refuse one that would overwrite an input or another output.

The settings and the options that name a file say what happens to it (``PathUse``). What a command
and a party's file name is compared before anything is opened, by resolved path and, where both
exist, by device and inode: a link is another name of the same file.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from pathlib import Path

from taciturn.errors import ConfigError


class PathUse(StrEnum):
    """What happens to the file, the folder or the pattern that a setting or an option names.

    A ``RESULT`` of one command is read by others; what is ``KEPT`` is read and written by each.
    """

    READ = "read"
    WRITTEN = "written"
    RESULT = "result"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Replaces:
    """The setting of a party's file whose file an option names in its place."""

    setting: str


@dataclass(frozen=True)
class UsedPath:
    """A path that a command uses; ``place`` is its setting, as an error shows it.

    ``replaces`` is the setting of a party's file that an option takes the place of, and
    ``option`` says that it is an option.
    """

    place: str
    path: Path
    use: PathUse
    setting: str = ""
    replaces: str = ""
    option: bool = False

    @cached_property
    def resolved(self) -> Path:
        """The path without links."""
        try:
            return Path(os.path.realpath(self.path))
        except ValueError:
            raise ConfigError(
                "a path holds a character that no file's name may have",
                where=self.place,
                hint="name a file",
            ) from None

    @cached_property
    def status(self) -> os.stat_result | None:
        """Status of the file, None where it is absent."""
        return _status(self.resolved)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder that exists."""
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def is_stream(self) -> bool:
        """Whether it is a device or a pipe, which nothing overwrites."""
        mode = 0 if self.status is None else self.status.st_mode
        return bool(mode) and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))

    def names(self, other: UsedPath) -> bool:
        """Whether both are one file."""
        if self.resolved == other.resolved:
            return True
        if self.status is None or other.status is None:
            return False
        return os.path.samestat(self.status, other.status)

    def reads(self, other: UsedPath) -> bool:
        """Whether another path lies in this folder, or matches this pattern."""
        if self.use in (PathUse.WRITTEN, PathUse.RESULT):
            return False
        if self.is_folder or self.use is PathUse.KEPT:
            return any(self._is(folder) for folder in other.resolved.parents)
        if not glob.has_magic(str(self.path)) or self.status is not None:
            return False
        pattern = str(self.resolved)
        # Two stars stand for no folder, too.
        patterns = pattern, pattern.replace("**/", "")
        return any(fnmatchcase(str(other.resolved), each) for each in patterns)

    def _is(self, folder: Path) -> bool:
        if folder == self.resolved:
            return True
        status = None if self.status is None else _status(folder)
        return None not in (status, self.status) and os.path.samestat(status, self.status)  # type: ignore[arg-type]


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


_COMMAND: ContextVar[tuple[UsedPath, ...]] = ContextVar("paths of the command", default=())


@contextmanager
def command_paths(paths: Iterable[UsedPath]) -> Iterator[None]:
    """Refuse overwriting among a command's own paths, and compare what is read meanwhile."""
    own = tuple(paths)
    _refuse(own)
    token = _COMMAND.set(own)
    try:
        yield
    finally:
        _COMMAND.reset(token)


def require_no_overwrite(paths: Iterable[UsedPath]) -> None:
    """Raise ``ConfigError`` where an output is an input, another output or in a folder read.

    The paths of the running command (``command_paths``) are compared too.
    """
    options = _COMMAND.get()
    replaced = {path.replaces for path in options} - {""}
    given = (path for path in paths if path.option or path.setting not in replaced)
    _refuse((*options, *given))


def _refuse(paths: Iterable[UsedPath]) -> None:
    for one, other in combinations([path for path in paths if not path.is_stream], 2):
        if not _compared(one, other):
            continue
        # The one to change is an option before a line of a file, and an output before an input.
        first, second = sorted((one, other), key=lambda path: path.use is PathUse.READ)
        if first.names(second):
            raise _refusal(first, f"would overwrite the file of {second.place}")
        for inner, outer in ((first, second), (second, first)):
            if inner.use is not PathUse.KEPT and outer.reads(inner):
                raise _refusal(inner, f"lies in the folder of {outer.place}")


def _compared(one: UsedPath, other: UsedPath) -> bool:
    uses = {one.use, other.use}
    # What one setting names, such as the state folder and what lies in it, is its own.
    if uses == {PathUse.READ} or one.place == other.place:
        return False
    # What a training wrote may be what a command is given to read.
    later = uses == {PathUse.READ, PathUse.RESULT} and one.option != other.option
    return not later


def _refusal(path: UsedPath, problem: str) -> ConfigError:
    return ConfigError(
        f"{path.place} {problem}",
        setting=path.setting,
        where=f"{path.place}: {path.path}",
        hint="name another file",
    )
