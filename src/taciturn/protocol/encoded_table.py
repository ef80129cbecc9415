"""A party's table in the form that encrypted products take."""

from __future__ import annotations

from taciturn.arrays import IntArray
from taciturn.crypto.base import PublicKey, Table


class EncodedTable:
    """A table in the scheme's own form, and the key under which it answers."""

    def __init__(self, whole: IntArray, memory: int) -> None:
        self.whole, self._memory = whole, memory
        self._of: tuple[PublicKey, Table] | None = None

    def under(self, key: PublicKey) -> Table:
        """The table under this key."""
        if self._of is None:
            self._of = key, key.table(self.whole, self._memory)
        elif self._of[0] is not key:
            self._of[1].use_key(key)
            self._of = key, self._of[1]
        return self._of[1]

    def close(self) -> None:
        """Frees what was prepared."""
        if self._of is not None:
            self._of[1].close()
            self._of = None
