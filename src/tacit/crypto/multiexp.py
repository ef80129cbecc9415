"""Products of powers with one shared chain of squarings.

The product of all ``b_i ^ e_i`` is computed as Straus did [Straus64]: write every exponent in
signed digits, walk the bit positions from the top, square once per position, and multiply by a
tabled power wherever an exponent has a digit. However many bases there are, there is one chain of
squarings.

The digits are the width-k non-adjacent form: odd, below 2^(k-1) in size, and at least k-1 zeros
between two of them, so an exponent of B bits costs about B/(k+1) multiplications. Negative digits
need powers of the inverse, which negative exponents need anyway. Exponents with long runs of zeros
(packed ones, where a short entry stands in a wide slot) cost nothing in the runs beyond the shared
squarings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import gmpy2
from gmpy2 import mpz

_WIDEST = 8
_LONG_RUN = 8


def best_window(bits: int) -> int:
    """The window with the fewest multiplications for a base, given its exponents' total bits.

    A window k costs about 2^(k-1) multiplications for the table of both signs, and bits/(k+1) in
    use.

    >>> best_window(24), best_window(2048)
    (2, 7)
    """
    return min(range(2, _WIDEST + 1), key=lambda k: 2 ** (k - 1) + bits / (k + 1))


def signed_digits(exponent: mpz, window: int) -> Iterator[tuple[int, int]]:
    """The non-adjacent form as (bit position, odd digit), lowest position first.

    >>> list(signed_digits(mpz(15), 2)), list(signed_digits(mpz(-6), 2))
    ([(0, -1), (4, 1)], [(1, 1), (3, -1)])
    """
    full, half = 1 << window, 1 << (window - 1)
    position = 0
    while exponent:
        zeros = gmpy2.bit_scan1(exponent)
        exponent >>= zeros
        position += zeros
        digit = int(exponent & (full - 1))
        if digit > half:
            digit -= full
        yield position, digit
        exponent -= digit


class PowerTable:
    """The small odd powers of one invertible base and of its inverse.

    Args:
        base: An invertible element.
        modulus: The modulus.
        window: Digits are below 2^(window-1) in size.

    >>> table = PowerTable(mpz(3), mpz(1000), 4)
    >>> int(table.power(5)), int(table.power(-1))
    (243, 667)
    """

    __slots__ = ("_powers", "window")

    def __init__(self, base: mpz, modulus: mpz, window: int) -> None:
        self.window = window
        # A negative digit d is found where Python finds index d: counted from the end.
        self._powers: list[mpz] = [mpz(0)] * (1 << window)
        for sign, element in ((1, base), (-1, gmpy2.invert(base, modulus))):
            square = element * element % modulus
            for size in range(1, 1 << (window - 1), 2):
                self._powers[sign * size] = element
                element = element * square % modulus

    def power(self, digit: int) -> mpz:
        """The base to an odd digit."""
        return self._powers[digit]


def product_of_powers(
    factors: Iterable[tuple[PowerTable, Iterable[tuple[int, int]]]], modulus: mpz
) -> mpz:
    """The product of every table's base to the exponent whose digits stand beside it.

    **Guarantee.** Exact. The number of multiplications, and so the time, depends on the exponents.

    **Assumes.** The tables were made for this modulus, the digits in their windows.

    >>> seven = mpz(7)
    >>> tables = [PowerTable(mpz(2), seven, 3), PowerTable(mpz(3), seven, 3)]
    >>> exponents = [signed_digits(mpz(10), 3), signed_digits(mpz(-4), 3)]
    >>> int(product_of_powers(zip(tables, exponents), seven))
    4
    """
    ladder: dict[int, list[mpz]] = {}
    for table, digits in factors:
        for position, digit in digits:
            ladder.setdefault(position, []).append(table.power(digit))
    result, above = mpz(1), max(ladder, default=0)
    for position in sorted(ladder, reverse=True):
        result = _squared(result, above - position, modulus)
        for power in ladder[position]:
            result = result * power % modulus
        above = position
    return _squared(result, above, modulus)


def _squared(element: mpz, times: int, modulus: mpz) -> mpz:
    """The element squared so many times."""
    if times >= _LONG_RUN:
        # One call for the run between two slots: it leaves the other threads alone meanwhile.
        return gmpy2.powmod(element, mpz(1) << times, modulus)
    for _ in range(times):
        element = element * element % modulus
    return element
