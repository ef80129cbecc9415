"""The randomness of a simulated run: one root, forked by purpose.

With a seed the root is the seed's and the run can be repeated; without one it comes from the
operating system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.crypto.signatures import KeyIdentity, fingerprint
from taciturn.engine.transcript import Header
from taciturn.errors import ConfigError, TranscriptError
from taciturn.rng import KeyedEntropy


@dataclass(frozen=True, slots=True)
class DataCoins:
    """What decides the rows: the split, and the shuffling of a canary run."""

    split: KeyedEntropy
    permute: KeyedEntropy

    def to_dict(self) -> dict[str, str]:
        """The keys in hexadecimal, for a transcript's header."""
        return {"split": self.split.key.hex(), "permute": self.permute.key.hex()}

    @classmethod
    def of_header(cls, header: Header) -> DataCoins:
        """The coins with which a recorded run drew its rows."""
        try:
            keys = header["coins"]
            return cls(*(KeyedEntropy(bytes.fromhex(keys[name])) for name in ("split", "permute")))
        except (KeyError, TypeError, ValueError, ConfigError):
            raise TranscriptError("the transcript's header is not that of a recorded run") from None


@dataclass(frozen=True, slots=True)
class Coins:
    """The independent sources of one simulated run."""

    data: DataCoins
    alice: KeyedEntropy
    bob: KeyedEntropy

    @classmethod
    def for_seed(cls, seed: int | None) -> Coins:
        """The coins of a seed, or of the operating system where there is none."""
        root = KeyedEntropy.from_system() if seed is None else KeyedEntropy.from_seed(seed)
        return cls(
            DataCoins(root.fork("split"), root.fork("permute")),
            root.fork("alice"),
            root.fork("bob"),
        )

    def of_alice(self, name: str) -> KeyedEntropy:
        """Those of one of several Alices, by her name; of the only one, who has none, all."""
        return self.alice.fork(name) if name else self.alice

    def identity_of(self, name: str) -> KeyIdentity | None:
        """What one of several Alices signs with."""
        return KeyIdentity.simulated(name, self.of_alice(name)) if name else None

    def pins(self, names: Sequence[str]) -> dict[str, str] | None:
        """The fingerprints that an agreement has of several Alices; None for the only one."""
        identities = filter(None, map(self.identity_of, names))
        return {one.name: fingerprint(one.public_key) for one in identities} or None
