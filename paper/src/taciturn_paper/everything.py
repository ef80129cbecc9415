"""All of the paper at once: its tables, its figures, its claims, and what is left of each."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy

from taciturn.version import __version__
from taciturn_paper import claims, curves, leaks, table2, table3
from taciturn_paper.pieces import Progress
from taciturn_paper.record import Record
from taciturn_paper.statements import statements

SAMPLES, QUICK_SAMPLES = 400_000, 50_000


def run(
    *,
    quick: bool = False,
    seed: int = 0,
    seeds: int | None = None,
    datasets: Sequence[str] = (),
    folder: Path | None = None,
    announce: Callable[[str], None] = lambda message: None,
    progress: Progress = lambda done, total: None,
) -> Record:
    """Reproduces everything.

    Args:
        quick: Fewer seeds, a small grid, fewer turns; the leaks of the small datasets alone.
        seed: The first seed.
        seeds: How many; by default more for small datasets.
        datasets: These alone; all where empty.
        folder: Where results are kept; None keeps nothing.
        announce: Called with what runs now.
        progress: Called with how much is done, and of how much.
    """
    some: Record = {"quick": quick, "seed": seed, "datasets": datasets}
    some |= {"announce": announce, "progress": progress}
    kept = {**some, "folder": folder}
    records: Record = {
        "table2": table2.run(**kept, seeds=seeds),
        **{figure: curves.run(figure, **kept, seeds=seeds) for figure in curves.FIGURES},
        "table3": table3.run(**some),
        "claims": claims.run(
            samples=QUICK_SAMPLES if quick else SAMPLES, seed=seed, announce=announce
        ),
        "leaks": leaks.run(**kept),
    }
    return {**records, "statements": statements(records), "made_with": _made_with(quick, seed)}


def _made_with(quick: bool, seed: int) -> Record:
    return {
        "quick": quick,
        "seed": seed,
        "taciturn": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
        "processor": _processor(),
    }


def _processor() -> str:
    """The processor's name and how many there are, where the system tells."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2] for line in lines if line.startswith("model name")), name)
    return f"{model.strip() or 'unknown'}, {os.cpu_count()} cores"
