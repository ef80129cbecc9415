"""Profile of a ``bfv`` iteration, and SEAL's share of it.

Run it with ``python -m taciturn_paper.profile``. The sum of SEAL's own calls is the floor:
what is left when all of our own work takes no time.
"""

from __future__ import annotations

import cProfile
import pstats
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from taciturn.crypto.base import Capacity
from taciturn.crypto.calibration_run import KeyPair
from taciturn.crypto.registry import scheme
from taciturn.rng import KeyedEntropy
from taciturn_paper.encryption import random_integers

ROWS, COLUMNS, LAPS = 32, 81, 100
SEAL = "_sealapi_cpp."


@dataclass(frozen=True, slots=True)
class Share:
    """One function of SEAL's, or all that is ours."""

    name: str
    ms: float


def profile(rows: int = ROWS, columns: int = COLUMNS, laps: int = LAPS) -> list[Share]:
    """The critical path of one iteration, by function; SEAL's first, ours last."""
    entropy = KeyedEntropy.from_seed(1)
    matrix = random_integers(entropy, (columns, rows), 18)
    vector = random_integers(entropy, (rows,), 18)
    pair = KeyPair.generate(scheme("bfv"), 128, Capacity(20, 18, rows), entropy)
    prepared = pair.public.prepare(matrix)
    watch = cProfile.Profile()
    for _ in range(laps):
        # What is made ahead stays outside the measurement, as in the benchmark.
        pair.secret.stock(columns, rows, entropy)
        mask = pair.public.draw_mask(columns, entropy)
        pair.public.stock(prepared, mask, entropy)
        watch.enable()
        sent = pair.secret.encrypt(vector, columns, entropy)
        answer = pair.public.masked_product(prepared, sent, mask, entropy)
        pair.public.unmask(pair.secret.decrypt(answer, rows), mask)
        watch.disable()
    seal: dict[str, float] = {}
    total = 0.0
    for (_, _, name), (_, _, own, _, _) in pstats.Stats(watch).stats.items():  # type: ignore[attr-defined]
        total += own
        if SEAL in name:
            short = name.split(SEAL)[1].rstrip(">")
            seal[short] = seal.get(short, 0.0) + own
    shares = [Share(name, 1e3 * seconds / laps) for name, seconds in seal.items()]
    shares.sort(key=lambda share: -share.ms)
    return [*shares, Share("ours", 1e3 * (total - sum(seal.values())) / laps)]


def main() -> None:
    """Prints the table."""
    shares = profile()
    table = Table(title=f"bfv, {ROWS} rows by {COLUMNS} columns, mean of {LAPS}, under a profiler")
    table.add_column("")
    table.add_column("ms", justify="right")
    for share in shares:
        table.add_row(share.name, f"{share.ms:.2f}")
    floor = sum(share.ms for share in shares[:-1])
    table.add_section()
    table.add_row("SEAL together: the floor", f"{floor:.2f}")
    table.add_row("all", f"{floor + shares[-1].ms:.2f}")
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
