"""The parameters of BFV, with what is proven about them.

There is the ring degree N and three kinds of primes: ``kept`` ones carry an answer to Bob, the
``dropped`` one is switched away by Alice before she answers, and a small ``special`` one is SEAL's
own (its keys live one prime higher than its ciphertexts). With q' the product of the kept primes, P
the dropped one and ``q = q' P``, a vector is encrypted modulo q, and an answer is modulo q'.

**Flooding.** Before the switch Alice adds to every coefficient that she sends a number U, uniform
on ``[-R, R)`` with ``R = q/(2t) - MARGIN P - 2^-GUARD q/t``: nearly the whole gap between two
messages. R is computed from the primes themselves (``flood_half``): a gap that was rounded by a
hundredth of a bit would leave a hundredth of it open. SEAL decrypts by a number that it rounds to
``2^-60`` of the gap [BajardEHZ16, Sec. 3]; the guard keeps clear of that.

**Failure.** After switching, the noise of an entry is ``(E + U)/P + tau_0 + <tau_1, s> + 1``: E the
noise before, tau the rounding errors, uniform on [-1/2, 1/2], s the ternary secret, and 1 for the
two roundings of messages. It must stay below ``q'/(2t)`` less the guard, so that ``MARGIN`` is left
for all but U.
Uniform variables on [-1/2, 1/2] are sub-Gaussian with variance proxy 1/12, so with all N entries of
s non-zero

    P(failure of an entry) <= 2 exp(-6 (MARGIN - E/P - 2)^2 / (N + 1))

**What Bob learns of the matrix** from an answer of d entries, if he made key and vector as
prescribed: ``E + U`` is U up to a statistical distance of ``|E| / 2R``, so the whole answer is
independent of E up to ``d |E| / 2R``; what follows, the switch included, is a function of that.

**And if he did not**, but for the uniform half of his key: with a mask uniform modulo t,
``q mask/t + U`` is uniform modulo q up to ``2 MARGIN t / q' + 2^(1 - GUARD)`` (``cover_bits``),
whatever it is added to. See ``docs/encryption.md`` for the whole argument.

**E** is ``X e`` for each encrypted piece, plus Alice's encryption of zero. SEAL's errors e are
centred binomial with 42 fair bits (variance proxy 21/2); the entries of ``X e`` are sums of at
most N of them with factors of at most 2^matrix_bits, and exceed ``TAIL sqrt(21/2 N) 2^matrix_bits``
with probability below 2 exp(-TAIL^2/2), below 2^-100 for TAIL = 12. Rounding a message to the grid
of q/t adds at most half of the sum of the factors' sizes, ``N 2^matrix_bits / 2``.

**Messages of full range** (``Wrapping``). E does not depend on the message: a message m stands as
``q m/t`` rounded, not as m times a rounded q/t, so that ``X (q/t) m`` and ``(q/t) (X m mod t)``
differ by a multiple of q, which is nothing. Both bounds hold for vectors that are uniform modulo t
and products that wrap; a smaller multiple of q/t would have left ``(q mod t) floor(X m / t)``.

**Whole tables** (``layout``): n rows, d columns, tiles of a by b. An entry of an answer sums over
all tiles of its row or column, and with T the table's entries, at most ``2^m`` in size,

- over rows, ``E = sum T e + sum_i t_ij rho_i + zero``: the errors e of all coefficients meet all
  entries of the tiles, ``n b`` of them, but only coefficients that carry a value were rounded, by
  ``|rho| <= 1/2``, and of those the n of its own column alone reach the entry (``layout`` has why);
- over columns likewise with ``d a`` entries and d roundings.

The distance of ``E + U`` from U, given all that Bob knows, is at most ``|E| / 2R``, so over his
errors it is at most ``E|E| / 2R``, the *mean* and not the tail: distances of mixtures are at most
the mixture of the distances. His errors are fresh in every vector, whatever he chose it by, so the
means of all entries of all passes add up. ``E|E|`` is at most the standard deviation of the first
sum (Jensen) plus the largest values of the others:

    E|E_rows|    <= 2^m (sqrt(21/2 n b) + n/2) + 21 (2N + 1)
    E|E_columns| <= 2^m (sqrt(21/2 d a) + d/2) + 21 (2N + 1)
    leak of a training <= passes (d E|E_rows| + n E|E_columns|) / 2R

The roundings are not taken for random: Bob's values may be few and far from uniform. For failures
the deviations count TAIL times.

**Shares that both sides round** (``rounds``), of tables whose products are never opened. In place
of masks modulo t and a flood, Alice adds to each coefficient that she sends P times a number that
is uniform modulo q', which is one prime: after the switch it is uniform there, whatever it was
added to. With w that number and f = c0 + c1 s the phase that Bob has, her share is ``-round(t w /
q')`` and his ``round(t f / q')``, modulo t. Both roundings are of real numbers modulo t, so that no
case has to be told apart, and the shares sum to the product up to

    1 + (t/q') (|E|/P + |tau_0 + <tau_1, s>| + 1/2)          (``share_error``)

units: two roundings, E as above, those of the switch, and that of Bob's blind. The switch's are
sub-Gaussian with variance proxy (N + 1)/12, 8 units in practice. Nothing fails, nothing is told of
E, and N = 4096 suffices: an answer takes 8 bytes a coefficient.

**Slots** (``slots``): t is a prime that is 1 modulo 2N, a plaintext is n numbers modulo t, and
products are number by number. As polynomials in ``x^(N/n)`` both factors have n coefficients of up
to t/2, so that ``E = P (e + rho)`` with ``|P_i| <= t/2``, and of e and rho the n that stand beside
them. Here the messages' roundings rho *are* random: they go up or down by the owner's random bits,
with mean zero given the message, and are sub-Gaussian with variance proxy 1/4 (``Grid``). An answer
sums the products of c ciphertexts, whose errors and roundings are independent: variances add. So,
with n coefficients sent and nothing known of P,

    E|E| <= (t/2) sqrt((21/2 + 1/4) n c) + 21 (2N + 1),     leak of an answer <= n E|E| / 2R

c answers of a product each would add up to about sqrt(c) times as much.

Two primes of 48 bits are dropped for it, one after the other; what the first switch rounds the
second divides by 2^48, and the bound on failures is as above with P their product.

**Narrow slots**, modulo a prime t of 16 to 22 bits, have no flood beside the mask: R is half of the
gap, so that mask and flood together are uniform modulo q (but for ``2 t / q``), and c0 is, whatever
it is added to. Nothing of a table is told, and nothing is to be summed up. What is left of E is a
chance that a coefficient decrypts to its neighbour, which garbles an answer: U lies within |E| of
the end of its gap. So

    P(a wrong answer) <= n E|E| t / q

and t is the largest prime with which all answers of a training come to ``2^-LEAST_RIGHT_BITS`` at
most (``narrow_modulus``). SEAL's own rounding adds ``2^-GUARD`` of a gap for each coefficient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from taciturn.crypto.base import Capacity, Wrapping
from taciturn.errors import CryptoError

DEGREE = 8192
SECURITY_BITS = 128
# The most bits of all primes together at which degree 8192 has 128-bit security
# [HomomorphicEncryptionStandard18, table 1, ternary secrets].
MOST_PRIME_BITS = 218
LEAST_FAILURE_BITS = 100
# The customary statistical security parameter, for one answer; at the sizes of a training it is 65
# and more, which leaves room for as many answers as a training has.
LEAST_LEAK_BITS = 40
# What the rounding of a switch may use of the room between two messages; the flood has the rest.
MARGIN = 512
# And what SEAL's own rounding may use, as a part of 2^-GUARD of that room.
GUARD = 56
MOST_EXTRA_PIECES = 15
_TAIL = 12.0
_ERROR_PROXY = 21 / 2
# Alice's encryption of zero: two errors times ternary polynomials, and a third.
_ZERO_LARGEST = 21 * (2 * DEGREE + 1)
MOST_SHARE_ERROR = float(1 << 14)
"""Units of the last place by which shares may miss a product: 2^-35 of a whitened weight."""


@dataclass(frozen=True, slots=True)
class BfvParameters:
    """One choice of primes.

    ``rounds`` is True where masks are uniform modulo the kept prime, and both sides round.

    >>> STANDARD.prime_bits, sum(STANDARD.prime_bits)
    ((60, 40, 60, 20), 180)
    """

    kept: tuple[int, ...]
    dropped: tuple[int, ...] = (60,)
    special: int = 20
    degree: int = DEGREE
    rounds: bool = False

    @property
    def prime_bits(self) -> tuple[int, ...]:
        """Bits of all primes, in SEAL's order: the last ones are dropped first."""
        return (*self.kept, *self.dropped, self.special)

    def plain_modulus(self, capacity: Capacity) -> int:
        """The agreed plaintext modulus, or the smallest odd one in which products do not wrap."""
        if isinstance(capacity, Wrapping):
            return 1 << capacity.modulus_bits
        return (1 << (capacity.product_bits + 1)) + 1

    def flood(self, capacity: Capacity) -> float:
        """Lower bound on R, for primes that lie just below their powers of two."""
        return self.flood_at(self.plain_modulus(capacity))

    def flood_at(self, modulus: int) -> float:
        """Lower bound on R for a plaintext modulus."""
        gap = _power(*self.kept, *self.dropped) / modulus
        return gap * (0.5 - 2.0**-GUARD) - MARGIN * 2.0 ** sum(self.dropped)

    def failure_bits(self, capacity: Capacity) -> float:
        """-log2 of a bound on the probability that an entry decrypts to another number."""
        return self._failure_bits(capacity, self.noise(capacity, most_pieces(capacity.terms)))

    def _failure_bits(self, capacity: Capacity, noise: float) -> float:
        """``failure_bits_at``; minus infinity where no room is left for a flood."""
        if self.flood(capacity) <= 0:
            return -math.inf
        return self.failure_bits_at(noise)

    def failure_bits_at(self, noise: float) -> float:
        """-log2 of a bound on the probability of a wrong entry, for a bound on its noise E."""
        room = MARGIN - noise / _power(*self.dropped) - 2
        if room <= 0:
            return -math.inf
        return 6 * room**2 / (DEGREE + 1) / math.log(2) - 1

    def leak_bits(self, capacity: Capacity, entries: int, pieces: int = 1) -> float:
        """-log2 of the statistical distance per answer of what Bob learns of the matrix.

        >>> round(STANDARD.leak_bits(Capacity(20, 20, 16), entries=30))
        77
        """
        return self._hidden_bits(capacity, entries * self.noise(capacity, pieces))

    def _hidden_bits(self, capacity: Capacity, noise: float) -> float:
        """-log2 of the part of the flood's range that the noise of all entries is."""
        hidden = 2 * self.flood(capacity)
        return -math.inf if hidden <= 0 else math.log2(hidden) - math.log2(noise)

    def cover_bits(self, capacity: Capacity) -> float:
        """-log2 of how far a masked entry is from uniform, whatever vector it was made from.

        >>> round(STANDARD.cover_bits(Wrapping.with_modulus(50, 16, 40)))
        40
        """
        gap = _power(*self.kept) / self.plain_modulus(capacity)
        return -math.log2(2 * MARGIN / gap + 2.0 ** (1 - GUARD))

    def check_leak(self, capacity: Capacity, entries: int, pieces: int) -> None:
        """Refuse an answer with ``leak_bits`` below ``LEAST_LEAK_BITS``."""
        bits = self.leak_bits(capacity, entries, pieces)
        if bits < LEAST_LEAK_BITS:
            raise CryptoError(
                f"an answer of {entries} entries would hide its matrix to within 2^-{bits:.1f} "
                f"only, where 2^-{LEAST_LEAK_BITS} is the least",
                hint="lower the fixed-point bits, clip the features, or use fewer rows at a time",
            )

    def table_leak_bits(
        self, capacity: Wrapping, size: tuple[int, int], tile: tuple[int, int], products: int
    ) -> float:
        """-log2 of the statistical distance of a training's answers from table-independent ones.

        ``size`` and ``tile`` are rows and columns. Each of the ``products`` passes answers all
        columns and all rows once.

        >>> ring = Wrapping.with_modulus(59, 20, 10_000_000)
        >>> round(STANDARD.table_leak_bits(ring, (10_000_000, 50), (8191, 1), 20))
        42
        """
        (rows, columns), (high, wide) = size, tile
        noise = columns * self.table_noise(capacity, rows, wide)
        noise += rows * self.table_noise(capacity, columns, high)
        return self._hidden_bits(capacity, products * noise)

    def table_failure_bits(
        self, capacity: Wrapping, size: tuple[int, int], tile: tuple[int, int]
    ) -> float:
        """-log2 of a bound on the probability that an entry of either product is wrong."""
        return self._failure_bits(capacity, self._largest_noise(capacity, size, tile))

    def _largest_noise(
        self, capacity: Wrapping, size: tuple[int, int], tile: tuple[int, int]
    ) -> float:
        """Bound on E in an entry of either product."""
        return max(
            self.table_noise(capacity, size[0], tile[1], _TAIL),
            self.table_noise(capacity, size[1], tile[0], _TAIL),
        )

    def table_noise(
        self, capacity: Wrapping, terms: int, beside: int, deviations: float = 1.0
    ) -> float:
        """Bound on the mean size of E in an entry of a product with a table, or on its tail.

        The entry sums ``terms`` products: the table's rows, or its columns. A tile has ``beside``
        entries beside each of them, whose products carry noise into the entry too. ``deviations``
        is one for the mean, ``_TAIL`` for the tail.
        """
        largest = 1 << capacity.matrix_bits
        random = deviations * math.sqrt(_ERROR_PROXY * terms * beside) * largest
        return random + terms * largest / 2 + _ZERO_LARGEST

    def share_error(
        self, capacity: Wrapping, size: tuple[int, int], tile: tuple[int, int]
    ) -> float:
        """Bound on what shares of a product miss it by, in units, where both sides round.

        It is wrong with a probability below 2^-100 per entry. ``size`` and ``tile`` are rows and
        columns.

        >>> ring = Wrapping.with_modulus(59, 20, 10_000_000)
        >>> round(SHARED.share_error(ring, (40_000, 41), (2048, 2)))
        117
        """
        noise = self._largest_noise(capacity, size, tile)
        switch = _TAIL * math.sqrt((self.degree + 1) / 12)
        unit = self.plain_modulus(capacity) / _power(*self.kept)
        return 1.0 + unit * (noise / _power(*self.dropped) + switch + 0.5)

    def check_shares(
        self, capacity: Wrapping, size: tuple[int, int], tile: tuple[int, int]
    ) -> None:
        """Refuse a table whose products shares would miss by more than ``MOST_SHARE_ERROR``."""
        if self.share_error(capacity, size, tile) > MOST_SHARE_ERROR:
            raise CryptoError(
                f"shares of products with {size[0]} rows of {capacity.matrix_bits} bits would be "
                "off by more than a weight's last place",
                hint="lower the fixed-point bits, or clip the features",
            )

    def check_table(
        self, capacity: Wrapping, size: tuple[int, int], tile: tuple[int, int], products: int
    ) -> float:
        """Return ``table_leak_bits``; refuse a training that leaks too much or decrypts wrongly."""
        bits = self.table_leak_bits(capacity, size, tile, products)
        if bits < LEAST_LEAK_BITS:
            raise CryptoError(
                f"{products} passes over {size[0]} rows and {size[1]} columns would hide the table "
                f"to within 2^{-bits:.0f} only, where 2^-{LEAST_LEAK_BITS} is the least",
                hint="lower the fixed-point bits, clip the features, or use fewer passes",
            )
        if self.table_failure_bits(capacity, size, tile) < LEAST_FAILURE_BITS:
            raise CryptoError(
                f"sums over {size[0]} rows of {capacity.matrix_bits} bits could decrypt wrongly",
                hint="lower the fixed-point bits, or clip the features",
            )
        return bits

    def noise(self, capacity: Capacity, pieces: int = 1) -> float:
        """Bound on E, wrong with probability below 2^-100 per entry."""
        largest = 1 << capacity.matrix_bits
        random = _TAIL * math.sqrt(_ERROR_PROXY * DEGREE * pieces) * largest
        rounding = DEGREE * pieces * largest / 2
        return random + rounding + _ZERO_LARGEST


def most_pieces(terms: int) -> int:
    """Largest number of ciphertexts that a layout may cut a vector into."""
    return -(-terms // DEGREE) + MOST_EXTRA_PIECES


def flood_half(primes: tuple[int, ...], modulus: int, dropped: int = 1) -> int:
    """R, exactly; the last ``dropped`` of q's primes are switched away.

    Where none is, it is half of the gap between two messages.
    """
    whole = math.prod(primes)
    if not dropped:
        return whole // (2 * modulus)
    lost = math.prod(primes[-dropped:])
    return whole // (2 * modulus) - MARGIN * lost - (whole // modulus >> GUARD)


def _power(*bits: int) -> float:
    """Product of primes, each just below its power of two."""
    return math.exp2(sum(bits) - 0.01)


STANDARD = BfvParameters(kept=(60, 40))

SHARED = BfvParameters(kept=(60,), dropped=(32,), special=17, degree=4096, rounds=True)
"""For products with tables that are never opened; degree 4096 has 128-bit security at 109 bits."""

SHARED_MODULUS = 1_152_921_504_606_830_593
"""Its q': the largest prime below 2^60 that is 1 modulo 2N."""

SLOTS = BfvParameters(kept=(60, 40), dropped=(48, 48))
"""For products of slots, whose plaintexts are as large as the modulus."""

SLOT_MODULUS = (1 << 59) - 212_991
"""The largest prime below 2^59 that is 1 modulo 2N: x^N + 1 splits into N factors there."""


NARROW = BfvParameters(kept=(48, 48), dropped=())
"""For products of slots modulo a small prime, under masks uniform modulo q."""

NARROW_MODULI = (65_537, 163_841, 557_057, 786_433, 4_079_617)
"""Primes that are 1 modulo 2N."""

LEAST_RIGHT_BITS = 25


def slot_noise(products: int = 1, deviations: float = 1.0, modulus: int = SLOT_MODULUS) -> float:
    """A bound on the mean size of E in a coefficient of a sum of products, or on its tail.

    >>> round(math.log2(slot_noise()), 1), round(math.log2(slot_noise(64)), 1)
    (66.2, 69.2)
    """
    largest, proxy = modulus / 2, (_ERROR_PROXY + 0.25) * DEGREE * products
    return deviations * math.sqrt(proxy) * largest + _ZERO_LARGEST


def slot_leak_bits(products: int = 1) -> float:
    """-log2 of the statistical distance of an answer from one independent of the table.

    ``products`` is the number of products that the answer sums.

    >>> round(slot_leak_bits(1)), round(slot_leak_bits(64))
    (58, 55)
    """
    hidden = 2 * SLOTS.flood_at(SLOT_MODULUS)
    return math.log2(hidden) - math.log2(DEGREE * slot_noise(products))


def slot_failure_bits(products: int = 1) -> float:
    """-log2 of a bound on the probability that a coefficient of an answer is wrong.

    >>> slot_failure_bits(256) > LEAST_FAILURE_BITS
    True
    """
    return SLOTS.failure_bits_at(slot_noise(products, _TAIL))


def narrow_right_bits(modulus: int, answers: Sequence[int]) -> float:
    """-log2 of a bound on the probability that any of a training's narrow answers is wrong.

    ``answers`` has for each how many products it sums.

    >>> round(narrow_right_bits(65_537, [42] * 123 * 25)), round(narrow_right_bits(786_433, [42]))
    (29, 34)
    """
    gap = _power(*NARROW.kept) / modulus
    noise = sum(slot_noise(products, modulus=modulus) for products in answers)
    return -math.log2(max(1, len(answers)) * 2.0**-GUARD + noise / gap) - math.log2(DEGREE)


def narrow_modulus(answers: Sequence[int]) -> int:
    """The largest prime with which all of a training's narrow answers are right.

    >>> narrow_modulus([42] * 5 * 25), narrow_modulus([42] * 123 * 25)
    (786433, 163841)
    """
    for prime in reversed(NARROW_MODULI):
        if narrow_right_bits(prime, answers) >= LEAST_RIGHT_BITS:
            return prime
    raise CryptoError(
        f"{len(answers):,} answers number by number could be wrong",
        hint="use fewer passes, or train on fewer rows",
    )


def require_fit(capacity: Capacity) -> BfvParameters:
    """The parameters; refuses a capacity whose products they cannot hold or hide."""
    if isinstance(capacity, Wrapping):
        too_wide = (
            f"a modulus of 2^{capacity.modulus_bits} with a matrix of {capacity.matrix_bits} bits "
            "does not fit bfv, which holds 2^59"
        )
    else:
        too_wide = f"products of {capacity.product_bits} bits do not fit bfv, which holds 58"
    hint = "lower the fixed-point bits, clip the features, use smaller batches, or use paillier"
    if STANDARD.plain_modulus(capacity) >= 1 << 60:
        raise CryptoError(too_wide, hint=hint)
    STANDARD.check_leak(capacity, entries=1, pieces=1)
    if STANDARD.failure_bits(capacity) < LEAST_FAILURE_BITS:
        raise CryptoError(
            f"a matrix of {capacity.matrix_bits} bits does not fit bfv: "
            "its products could decrypt wrongly",
            hint=hint,
        )
    return STANDARD
