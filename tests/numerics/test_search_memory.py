"""How much memory Bob's search takes: that of a few blocks of rows, however many there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROWS, PASSES = 1_500_000, 12
_SEARCH = """
import sys
from functools import partial
from pathlib import Path

import numpy as np

from taciturn import memmap
from taciturn.memmap import Scratch, over_blocks
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.parallel import one_thread

# More cores have more blocks at work.
memmap.threads = lambda: 2
rows, passes, scratch = int(sys.argv[1]), int(sys.argv[2]), Scratch(Path(sys.argv[3]), least=1)
own = scratch.unnamed((rows, 4), np.float64)
labels = np.empty(rows, np.int8)


def fill(place):
    rng = np.random.default_rng(place.start)
    own[place] = rng.normal(size=own[place].shape)
    labels[place] = own[place, 0] + rng.logistic(size=len(labels[place])) > 0


list(over_blocks(fill, rows, own))
likelihood = label_likelihood(labels, partial(weighted_likelihood, class_weight=None))
with one_thread():
    solver = SubspaceSolver(likelihood, own, 1 / rows, 0, passes, scratch)
    for number in range(passes):
        direction = solver.direction()
        # As good an answer as any: only its length matters here.
        solver.add(direction, direction * rows**0.5)
    solver.scores()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow  # many passes over a table that does not fit; the bits are tested on a small one
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is told by Linux")
def test_neither_rows_nor_passes_stay_in_memory(tmp_path: Path) -> None:
    held = []
    for rows in (ROWS // 5, ROWS):
        command = [sys.executable, "-c", _SEARCH, str(rows), str(PASSES), str(tmp_path / "scratch")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        held.append(int(done.stdout) << 10)
    # Five times the rows have 230 MB more of directions and scores, and 50 MB more of a table.
    assert held[1] - held[0] < 2 * 8 * ROWS * PASSES // 4
