"""State from which a party resumes a training: everything but its table.

A program reports its state at the start of each iteration (``Boundary``), and can be started from
one. Randomness is not in it: streams are forked by iteration, so that the same key gives the same
draws wherever a run resumes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.errors import StateError
from taciturn.protocol.array_store import (
    INLINE,
    ArrayStore,
    floats_of,
    hex_of,
)
from taciturn.protocol.masks import ALONE, GroupShape, PairwiseMasks
from taciturn.protocol.search_state import SearchState
from taciturn.setting_syntax import Hint


@dataclass(frozen=True, slots=True)
class MutualState:
    """Further state of a training in which Bob's weights are shared as well.

    Keys are secret at their owner and public at the peer. ``waves_key`` is Bob's, for products
    number by number, and ``narrow_key`` his for those modulo a small prime; Alice has a new key
    for each vector. Bob's values are of size ``bob_bits``.
    ``products`` are this party's shares of all weights before they are scaled down, Alice's first,
    and ``carries`` those of their carries; shares of both hold the points that a step starts from.
    ``slope`` and ``sums`` are shares of what is opened in the end (``protocol.mutual_sums``).
    """

    bob_bits: int
    bob_share: IntArray = field(repr=False)
    waves_key: bytes = field(repr=False)
    narrow_key: bytes = field(repr=False)
    products: IntArray = field(repr=False)
    carries: IntArray = field(repr=False)
    slope: IntArray = field(repr=False)
    sums: IntArray = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """The state for a file."""
        return {
            "bob_bits": self.bob_bits,
            "bob_share": self.bob_share.astype("<i8").tobytes().hex(),
            "waves_key": self.waves_key.hex(),
            "narrow_key": self.narrow_key.hex(),
            "products": self.products.astype("<i8").tobytes().hex(),
            "carries": self.carries.astype("<i8").tobytes().hex(),
            "slope": self.slope.astype("<i8").tobytes().hex(),
            "sums": self.sums.astype("<i8").tobytes().hex(),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> MutualState:
        """Reads it back."""
        return cls(
            int(values["bob_bits"]),
            _integers(values["bob_share"]),
            bytes.fromhex(values["waves_key"]),
            bytes.fromhex(values["narrow_key"]),
            _integers(values["products"]),
            _integers(values["carries"]),
            _integers(values["slope"]),
            _integers(values["sums"]),
        )


@dataclass(frozen=True, slots=True)
class TrainingState:
    """One party's training between two iterations.

    ``iteration`` is the next one. ``seed`` is that of the batches; empty where Bob draws them.
    ``key`` is Bob's, secret at him and public at Alice, for values of size ``magnitude_bits``.
    ``columns`` are the peer's. ``losses`` are the held-out losses and ``suspected_wraps`` the
    scores that may have wrapped, as Bob counts them. ``share`` is this party's share of Alice's
    weights. ``widths`` and ``sizes`` have, for each of several Alices, her columns, and the size of
    her values and of her columns together.
    """

    iteration: int
    weights: FloatArray = field(repr=False)
    seed: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    columns: int = 0
    magnitude_bits: int = 0
    losses: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    share: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)
    suspected_wraps: int = 0
    search: SearchState | None = field(default=None, repr=False)
    mutual: MutualState | None = field(default=None, repr=False)
    widths: tuple[int, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    pairwise_masks: PairwiseMasks | None = field(default=None, repr=False)

    @property
    def group_shape(self) -> GroupShape:
        """Shape of the group of Alices."""
        return GroupShape(self.widths, self.seed) if self.widths else ALONE

    def at(
        self,
        iteration: int,
        weights: FloatArray,
        losses: FloatArray | None = None,
        share: IntArray | None = None,
        suspected_wraps: int = 0,
    ) -> TrainingState:
        """A copy after ``iteration`` passes."""
        return replace(
            self,
            iteration=iteration,
            weights=weights,
            losses=self.losses if losses is None else losses,
            share=self.share if share is None else share,
            suspected_wraps=suspected_wraps,
        )

    def to_bytes(self, array_store: ArrayStore = INLINE) -> bytes:
        """The state for a file; anyone who reads it can resume, and read what was encrypted."""
        values = {
            "iteration": self.iteration,
            "weights": hex_of(self.weights),
            "seed": self.seed.hex(),
            "key": self.key.hex(),
            "columns": self.columns,
            "magnitude_bits": self.magnitude_bits,
            "losses": hex_of(self.losses),
            "share": self.share.astype("<i8").tobytes().hex(),
            "suspected_wraps": self.suspected_wraps,
            "search": None
            if self.search is None
            else self.search.to_json(self.iteration, array_store),
            "mutual": None if self.mutual is None else self.mutual.to_json(),
            "widths": list(self.widths),
            "sizes": [list(pair) for pair in self.sizes],
            "circle": None if self.pairwise_masks is None else self.pairwise_masks.to_json(),
        }
        return json.dumps(values).encode()

    @classmethod
    def from_bytes(cls, data: bytes, array_store: ArrayStore = INLINE) -> TrainingState:
        """Reads a state back.

        >>> state = TrainingState(3, np.array([0.1, -2.0]), seed=b"s", key=b"k", columns=2)
        >>> again = TrainingState.from_bytes(state.to_bytes())
        >>> again.weights.tolist(), again.iteration, again.key
        ([0.1, -2.0], 3, b'k')
        """
        try:
            values: dict[str, Any] = json.loads(data)
            return cls(
                iteration=int(values["iteration"]),
                weights=floats_of(values["weights"]),
                seed=bytes.fromhex(values["seed"]),
                key=bytes.fromhex(values["key"]),
                columns=int(values["columns"]),
                magnitude_bits=int(values["magnitude_bits"]),
                losses=floats_of(values["losses"]),
                share=_integers(values["share"]),
                suspected_wraps=int(values["suspected_wraps"]),
                search=(
                    None
                    if values["search"] is None
                    else SearchState.from_json(values["search"], array_store)
                ),
                mutual=None
                if values["mutual"] is None
                else MutualState.from_json(values["mutual"]),
                widths=tuple(map(int, values["widths"])),
                sizes=tuple((int(size), int(spread)) for size, spread in values["sizes"]),
                pairwise_masks=None
                if values["circle"] is None
                else PairwiseMasks.from_json(values["circle"]),
            )
        except (KeyError, TypeError, ValueError):
            raise StateError(
                "these bytes are not the state of a training, or of another version's",
                hint=Hint(
                    "finish with the version that started it, or start over on both sides "
                    "with {fresh}",
                    fresh=True,
                ),
            ) from None


def mutual_of(state: TrainingState) -> MutualState:
    """The further state of a training that shares scores; refuse another training's state."""
    if state.mutual is None:
        raise StateError(
            "the state is not that of a training that shares scores",
            hint=Hint("start over on both sides with {fresh}", fresh=True),
        )
    return state.mutual


def _integers(text: str) -> IntArray:
    return np.frombuffer(bytes.fromhex(text), "<i8").astype(np.int64)
