"""``taciturn bench``: the encryption of one iteration on the paper's shapes, as ratios in one run.

An iteration is encrypt, product, mask, decrypt, and the bytes both ways. All contenders take turns
on the same numbers, repeat by repeat, and the medians are compared: a busy machine slows all of
them alike. What a scheme of ours makes ahead, while it waits for the peer, is measured apart
(``ms_ahead``). Ratios are over python-paillier of the same key size, and of 2048 bits for those
whose key size means something else.

The other libraries run with their own best settings. **python-paillier** (``phe``, on gmpy2): whole
numbers at one scale, which spares it the alignment of exponents that its floats need; every
ciphertext that leaves a party is obfuscated, as by default. **HEU** (SecretFlow's ``sf-heu``):
ZPaillier and OU, whole numbers, its own matrix product. Its results are not re-randomised beyond
what its evaluator does, and OU is no scheme we would use: an answer that overflows reveals the key.

Whole trainings beside the paper's hours: at most ``MOST_TRAINED`` iterations of each dataset are
run, both parties in one process, and scaled to an epoch and to our default number of epochs. The
paper does not say how many epochs its times are for.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import Capacity, Scheme
from taciturn.crypto.calibration_run import CalibrationRun, KeyPair
from taciturn.crypto.registry import scheme
from taciturn.data.tables import FeatureTable
from taciturn.engine.callbacks import Announce, noop
from taciturn.engine.pair import run_pair
from taciturn.errors import ConfigError, DatasetUnavailable, nearest
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.solvers import resolved
from taciturn.privacy.unprotected import Unprotected
from taciturn.protocol.agree import agree
from taciturn.protocol.alice import train_revealed as alice
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.bob import train_revealed as bob
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.messages import Role
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw
from taciturn_paper import paper
from taciturn_paper.sides import TimedScheme

MASK_BITS = 60


def _module(name: str, package: str) -> Any:  # noqa: ANN401 - an optional library
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(
            f"{package} is not installed", setting="against", hint="make bench installs it"
        ) from None


class PythonPaillier:
    """python-paillier."""

    name = "phe"

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self._phe = _module("phe.paillier", "phe")
        self._public, self._secret = self._phe.generate_paillier_keypair(n_length=bits)

    def lap(self, matrix: IntArray, vector: IntArray) -> CalibrationRun:
        """One iteration; nothing of it is made ahead, as the library has no way to."""
        rows, masks = matrix.tolist(), [(1 << MASK_BITS) - 7 * j for j in range(len(matrix))]
        start = time.perf_counter()
        encrypted = [self._public.encrypt(entry) for entry in vector.tolist()]
        sent = [number.ciphertext() for number in encrypted]
        products = [
            self._product(row, encrypted) + mask for row, mask in zip(rows, masks, strict=True)
        ]
        answered = [number.ciphertext() for number in products]
        decrypted = [
            self._secret.decrypt(self._phe.EncryptedNumber(self._public, ciphertext, 0))
            for ciphertext in answered
        ]
        seconds = time.perf_counter() - start
        width = self.bits // 4
        error = _error([f - m for f, m in zip(decrypted, masks, strict=True)], matrix, vector)
        return CalibrationRun(seconds, 0.0, width * len(sent), width * len(answered), error)

    @staticmethod
    def _product(row: list[int], encrypted: list[Any]) -> Any:  # noqa: ANN401
        total = encrypted[0] * row[0]
        for entry, number in zip(row[1:], encrypted[1:], strict=True):
            total = total + number * entry
        return total


class Heu:
    """SecretFlow's HEU."""

    def __init__(self, schema: str, bits: int) -> None:
        self.name, self.bits = f"heu-{schema.lower()}", bits
        self._numpy, phe = _module("heu.numpy", "sf-heu"), _module("heu.phe", "sf-heu")
        self._kit = self._numpy.setup(getattr(phe.SchemaType, schema), bits)

    def lap(self, matrix: IntArray, vector: IntArray) -> CalibrationRun:
        """One iteration."""
        kit = self._kit
        masks = [(1 << 40) - 7 * j for j in range(len(matrix))]
        plain, hidden = kit.array(matrix.tolist()), kit.array(masks)
        start = time.perf_counter()
        sent = kit.encryptor().encrypt(kit.array(vector.tolist())).serialize()
        received = self._numpy.CiphertextArray.load_from(sent)
        product = kit.evaluator().add(kit.evaluator().matmul(plain, received), hidden)
        answered = product.serialize()
        loaded = self._numpy.CiphertextArray.load_from(answered)
        decrypted = kit.decryptor().decrypt(loaded).to_numpy().tolist()
        seconds = time.perf_counter() - start
        error = _error([int(f) - m for f, m in zip(decrypted, masks, strict=True)], matrix, vector)
        return CalibrationRun(seconds, 0.0, len(sent), len(answered), error)


def _error(products: list[int], matrix: IntArray, vector: IntArray) -> int:
    true: list[int] = (matrix @ vector).tolist()
    return max(abs(f - t) for f, t in zip(products, true, strict=True))


RIVALS: dict[str, tuple[Callable[[], PythonPaillier | Heu], ...]] = {
    "phe": (lambda: PythonPaillier(2048), lambda: PythonPaillier(3072)),
    "heu": (lambda: Heu("ZPaillier", 2048), lambda: Heu("OU", 2048)),
}


VECTOR_BITS, MATRIX_BITS = 20, 18
SLOW_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of the paper's experiments: batch rows (terms) by Alice's columns."""

    name: str
    rows: int
    columns: int


SHAPES = (
    Shape("breast", 16, 30),
    Shape("breast, L_RR", 40, 30),
    Shape("digits", 32, 64),
    Shape("digits, L_RR", 70, 64),
    Shape("census", 32, 81),
    Shape("census, L_RR", 90, 81),
    Shape("credit", 8, 10),
    Shape("credit, L_RR", 15, 10),
    Shape("large", 256, 81),
    Shape("larger", 1024, 81),
)
QUICK_SHAPES = (SHAPES[0], SHAPES[6])


@dataclass(frozen=True, slots=True)
class Row:
    """One scheme on one shape."""

    shape: str
    rows: int
    columns: int
    scheme: str
    bits: int
    ms: float
    ms_ahead: float
    times_phe: float | None
    bytes_up: int
    bytes_down: int
    max_error: int
    repeats: int


class Ours:
    """One of our schemes, with its precomputation done."""

    def __init__(self, name: str, bits: int) -> None:
        self.name, self.bits = name, bits
        self._entropy = KeyedEntropy.from_system()
        self._keys: dict[int, KeyPair] = {}

    def lap(self, matrix: IntArray, vector: IntArray) -> CalibrationRun:
        """One iteration; a key is made the first time and kept for each length."""
        terms = len(vector)
        if terms not in self._keys:
            capacity = Capacity(VECTOR_BITS, MATRIX_BITS, terms)
            self._keys[terms] = KeyPair.generate(
                scheme(self.name), self.bits, capacity, self._entropy
            )
        return self._keys[terms].calibrate(matrix, vector, self._entropy)


Contender: TypeAlias = Ours | PythonPaillier | Heu

OURS = (("bfv", 128), ("paillier", 2048), ("paillier", 3072))


def contenders(against: tuple[str, ...]) -> list[Contender]:
    """Our schemes and the rivals that are asked for, which must be installed."""
    entrants: list[Contender] = [Ours(name, bits) for name, bits in OURS]
    for name in against:
        if name not in RIVALS:
            raise ConfigError(
                f"unknown rival {name}", setting="against", hint=nearest(name, RIVALS)
            )
        entrants += [make() for make in RIVALS[name]]
    return entrants


def run(
    against: tuple[str, ...],
    *,
    quick: bool = False,
    repeats: int = 5,
    announce: Announce = noop,
) -> list[Row]:
    """The figures of every contender on every shape; two shapes and two repeats where quick."""
    entrants = contenders(against)
    rows: list[Row] = []
    for shape in QUICK_SHAPES if quick else SHAPES:
        rows += measure(shape, entrants, 2 if quick else repeats, announce)
    return rows


def measure(
    shape: Shape, entrants: list[Contender], repeats: int, announce: Callable[[str], None]
) -> list[Row]:
    """All contenders in turn on one shape; who is slow gets a single repeat."""
    entropy = KeyedEntropy.from_seed(shape.rows * 1000 + shape.columns)
    laps: dict[int, list[CalibrationRun]] = {number: [] for number in range(len(entrants))}
    for turn in range(repeats + 1):
        matrix = random_integers(entropy, (shape.columns, shape.rows), MATRIX_BITS)
        vector = random_integers(entropy, (shape.rows,), VECTOR_BITS)
        for number, entrant in enumerate(entrants):
            if _too_slow(entrant, shape) or (
                laps[number] and laps[number][0].seconds > SLOW_SECONDS
            ):
                continue
            announce(f"{shape.name}: {entrant.name} {entrant.bits}, turn {turn + 1}")
            laps[number].append(entrant.lap(matrix, vector))
    measured = [
        _row(shape, entrant, laps[number])
        for number, entrant in enumerate(entrants)
        if laps[number]
    ]
    return [_compared(row, measured) for row in measured]


def _too_slow(entrant: Contender, shape: Shape) -> bool:
    """python-paillier of 3072 bits on the large batches alone would take several minutes."""
    return entrant.name == "phe" and entrant.bits > 2048 and shape.rows * shape.columns > 10_000


def random_integers(entropy: KeyedEntropy, shape: tuple[int, ...], bits: int) -> IntArray:
    """Integers between plus and minus ``2^bits``."""
    return np.rint((entropy.uniform(shape) * 2 - 1) * 2.0**bits).astype(np.int64)


def _row(shape: Shape, entrant: Contender, laps: list[CalibrationRun]) -> Row:
    # The first lap makes keys and warms up, and counts only where it is the only one.
    timed = laps[1:] or laps
    return Row(
        shape=shape.name,
        rows=shape.rows,
        columns=shape.columns,
        scheme=entrant.name,
        bits=entrant.bits,
        ms=1e3 * statistics.median(lap.seconds for lap in timed),
        ms_ahead=1e3 * statistics.median(lap.ahead for lap in timed),
        times_phe=None,
        bytes_up=laps[-1].bytes_to_alice,
        bytes_down=laps[-1].bytes_to_bob,
        max_error=max(lap.error for lap in laps),
        repeats=len(timed),
    )


def _compared(row: Row, rows: list[Row]) -> Row:
    bits = 3072 if row.bits == 3072 else 2048
    rival = next((other for other in rows if (other.scheme, other.bits) == ("phe", bits)), None)
    if rival is None:
        return row
    return replace(row, times_phe=rival.ms / row.ms)


MOST_TRAINED = 200
PAPER_SECONDS = {name: times.seconds["none"] for name, times in paper.TABLE_3.items()}


@dataclass(frozen=True, slots=True)
class Training:
    """One dataset's training with one scheme."""

    dataset: str
    scheme: str
    iterations_measured: int
    iterations_per_epoch: int
    ms_per_iteration: float
    encryption_share: float
    epoch_seconds: float
    bytes_to_alice_per_epoch: int
    bytes_to_bob_per_epoch: int
    epochs: int
    training_seconds: float
    paper_seconds: float


def measure_training(dataset: str, scheme_name: str = "bfv") -> Training:
    """The first iterations of a dataset's training."""
    papers = {"dataset": dataset, "mechanism": "none", "solver": "sgd"}
    defaults = resolved(Settings.from_mapping(papers))
    settings = resolved(
        Settings.from_mapping({**papers, "scheme": scheme_name, "epochs": 1, "seed": 1})
    )
    timed = TimedScheme(scheme(scheme_name))
    entropy = RunEntropy.for_seed(1)
    data = arrange(settings, load_raw(settings), entropy.data)
    terms = agree(
        settings, len(data.alice_train.columns), data.labels_train.rows, cast(Scheme, timed)
    )
    whole = terms.iterations(data.labels_train.rows)
    kept = np.arange(min(data.labels_train.rows, MOST_TRAINED * terms.agreement.sgd.batch_size))
    features, labels = data.alice_train.take(kept), data.labels_train.take(kept)
    nothing = FeatureTable(features.ids, (), np.empty((len(kept), 0)))
    sent: dict[Role, int] = {"alice": 0, "bob": 0}

    def count(sender: Role, frame: bytes) -> None:
        sent[sender] += len(frame)

    start = time.perf_counter()
    run_pair(
        alice.train(AliceInputs(features, terms, entropy.alice)),
        bob.train(
            BobInputs(nothing, labels, terms, Unprotected(), Ledger(len(kept), ""), entropy.bob)
        ),
        tap=count,
    )
    seconds = time.perf_counter() - start
    run = terms.iterations(len(kept))
    epochs = defaults.epochs or 1
    return Training(
        dataset=dataset,
        scheme=scheme_name,
        iterations_measured=run,
        iterations_per_epoch=whole,
        ms_per_iteration=1e3 * seconds / run,
        encryption_share=timed.clock.total / seconds,
        epoch_seconds=seconds / run * whole,
        bytes_to_alice_per_epoch=round(sent["bob"] / run * whole),
        bytes_to_bob_per_epoch=round(sent["alice"] / run * whole),
        epochs=epochs,
        training_seconds=seconds / run * whole * epochs,
        paper_seconds=PAPER_SECONDS[dataset],
    )


def measure_trainings(announce: Callable[[str], None]) -> list[Training]:
    """Every dataset of the paper that is here."""
    measured = []
    for dataset in PAPER_SECONDS:
        announce(f"training {dataset}")
        try:
            measured.append(measure_training(dataset))
        except DatasetUnavailable:
            continue
    return measured
