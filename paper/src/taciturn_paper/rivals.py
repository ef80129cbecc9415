"""Other people's libraries doing our one job, each with its own best settings.

**python-paillier** (``phe``, on gmpy2): whole numbers at one scale, which spares it the alignment
of exponents that its floats need; every ciphertext that leaves a party is obfuscated, as by
default.

**HEU** (SecretFlow's ``sf-heu``): ZPaillier and OU, whole numbers, its own matrix product. Its
results are not re-randomised beyond what its evaluator does, and OU is no scheme we would use: an
answer that overflows reveals the key. Both are here as yardsticks.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any, Protocol

from taciturn.arrays import IntArray
from taciturn.engine.trial import Trial
from taciturn.errors import ConfigError

MASK_BITS = 60


class Contender(Protocol):
    """Something that can do one iteration."""

    @property
    def name(self) -> str:
        """The scheme."""
        ...

    @property
    def bits(self) -> int:
        """The key size."""
        ...

    def lap(self, matrix: IntArray, vector: IntArray) -> Trial:
        """Encrypt, multiply, mask, decrypt, with serialisation both ways."""
        ...


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

    def lap(self, matrix: IntArray, vector: IntArray) -> Trial:
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
        return Trial(seconds, 0.0, width * len(sent), width * len(answered), error)

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

    def lap(self, matrix: IntArray, vector: IntArray) -> Trial:
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
        return Trial(seconds, 0.0, len(sent), len(answered), error)


def _error(products: list[int], matrix: IntArray, vector: IntArray) -> int:
    true: list[int] = (matrix @ vector).tolist()
    return max(abs(f - t) for f, t in zip(products, true, strict=True))


RIVALS: dict[str, tuple[Callable[[], Contender], ...]] = {
    "phe": (lambda: PythonPaillier(2048), lambda: PythonPaillier(3072)),
    "heu": (lambda: Heu("ZPaillier", 2048), lambda: Heu("OU", 2048)),
}
