"""A party's tables in the form that encrypted products take."""

from __future__ import annotations

from taciturn.arrays import IntArray
from taciturn.crypto.base import PublicKey, Table


class EncodedTable:
    """A table's encrypted products under the key in use; a fresh key has it prepared anew."""

    def __init__(self, whole: IntArray, memory: int) -> None:
        self.whole, self._memory = whole, memory
        self._of: tuple[PublicKey, Table] | None = None

    def under(self, key: PublicKey) -> Table:
        """The table under this key."""
        if self._of is None or self._of[0] is not key:
            self.close()
            self._of = key, key.table(self.whole, self._memory)
        return self._of[1]

    def close(self) -> None:
        """Frees what was prepared."""
        if self._of is not None:
            self._of[1].close()
            self._of = None
