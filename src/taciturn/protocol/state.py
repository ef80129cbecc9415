"""State from which a party resumes a training: everything but its table.

A program reports its state at the start of each iteration (``Boundary``), and can be started from
one. Randomness is not in it: streams are forked by iteration, so that the same key gives the same
draws wherever a run resumes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.errors import StateError
from taciturn.protocol.masks import ALONE, GroupShape, PairwiseMasks
from taciturn.setting_syntax import Hint

Load: TypeAlias = Callable[[], FloatArray]


class ArrayStore(Protocol):
    """Store of a state's long arrays: in its text, or in separate files."""

    def put(self, name: str, values: FloatArray) -> Any:  # noqa: ANN401 - JSON
        """Store an array; returns its reference for the text.

        A name stands for one array as long as the training lasts.
        """

    def get(self, reference: Any) -> Load:  # noqa: ANN401 - JSON
        """Loader of an array, by its reference from ``put``; ``StateError`` if it has changed."""


class InlineArrays:
    """Arrays in the state's own text.

    >>> store = InlineArrays()
    >>> store.get(store.put("scores", np.array([0.5, -2.0])))().tolist()
    [0.5, -2.0]
    """

    def put(self, name: str, values: FloatArray) -> str:
        """The array as text, in two thirds of the room that hexadecimal digits take."""
        return base64.b64encode(values.astype("<f8").tobytes()).decode("ascii")

    def get(self, reference: Any) -> Load:  # noqa: ANN401 - JSON
        """Reads it back."""
        values = np.frombuffer(base64.b64decode(reference, validate=True), "<f8").astype(np.float64)
        return lambda: values


INLINE = InlineArrays()


class LazyArrays(Sequence[FloatArray]):
    """Arrays that are read when they are asked for, one at a time."""

    def __init__(self, loads: Sequence[Load]) -> None:
        self._loads = loads

    def __len__(self) -> int:
        return len(self._loads)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - an array, or some of them
        if isinstance(index, slice):
            return LazyArrays(self._loads[index])
        return self._loads[index]()


def bits_of(values: IntArray) -> FloatArray:
    """Integers of 64 bits as floats with the same bits, which an array store keeps.

    >>> integers_of(bits_of(np.array([2**58 + 1, -3]))).tolist()
    [288230376151711745, -3]
    """
    return values.view(np.float64)


def integers_of(bits: FloatArray) -> IntArray:
    """The integers whose bits these are."""
    return bits.view(np.int64)


def _bits(load: Load) -> Callable[[], Any]:
    return lambda: integers_of(load())


@dataclass(frozen=True, slots=True)
class SearchState:
    """State of Bob's search between two passes.

    ``directions`` are those that he still needs, one array a pass, and ``scores`` what his solver
    keeps of their effect. ``held_out`` is what each pass did to Alice's part of the held-out
    scores. ``position`` is where his solver stands. ``opened`` has exact scores, where they are
    tested in the end.
    """

    directions: Sequence[FloatArray] = ()
    scores: Sequence[FloatArray] = ()
    held_out: Sequence[FloatArray] = ()
    position: FloatArray = field(default_factory=lambda: np.empty(0))
    opened: Sequence[IntArray] = ()

    def to_json(self, passes: int, array_store: ArrayStore) -> dict[str, Any]:
        """The state for a file, after this many passes."""
        kinds = {
            "direction": self.directions,
            "scores": self.scores,
            "held-out": self.held_out,
            "opened": [bits_of(values) for values in self.opened],
        }
        references = {
            # The last array is that of the last pass.
            kind: [
                array_store.put(f"{kind}-{number}", values)
                for number, values in enumerate(arrays, start=passes - len(arrays))
            ]
            for kind, arrays in kinds.items()
        }
        return {**references, "position": _hex(self.position)}

    @classmethod
    def from_json(cls, values: dict[str, Any], array_store: ArrayStore) -> SearchState:
        """Reads it back."""

        def shelved(kind: str) -> LazyArrays:
            return LazyArrays([array_store.get(reference) for reference in values[kind]])

        return cls(
            shelved("direction"),
            shelved("scores"),
            shelved("held-out"),
            _floats(values["position"]),
            cast(
                "Sequence[IntArray]",
                LazyArrays([_bits(array_store.get(reference)) for reference in values["opened"]]),
            ),
        )


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
        """The same training, further on."""
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
            "weights": _hex(self.weights),
            "seed": self.seed.hex(),
            "key": self.key.hex(),
            "columns": self.columns,
            "magnitude_bits": self.magnitude_bits,
            "losses": _hex(self.losses),
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
                weights=_floats(values["weights"]),
                seed=bytes.fromhex(values["seed"]),
                key=bytes.fromhex(values["key"]),
                columns=int(values["columns"]),
                magnitude_bits=int(values["magnitude_bits"]),
                losses=_floats(values["losses"]),
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


def _hex(values: FloatArray) -> str:
    return values.astype("<f8").tobytes().hex()


def _floats(text: str) -> FloatArray:
    return np.frombuffer(bytes.fromhex(text), "<f8").astype(np.float64)


def _integers(text: str) -> IntArray:
    return np.frombuffer(bytes.fromhex(text), "<i8").astype(np.int64)
