"""The verdicts of ``check`` and the figures of ``audit``, configuration by configuration.

Verdicts must not depend on how busy the machine is. To see that they do not, write them down twice,
idle and with other work on every core, and compare the two files::

    $ python -m tests.verdicts > idle.txt
    $ python -m tests.verdicts --busy 4 > busy.txt
    $ cmp idle.txt busy.txt
"""

from __future__ import annotations

import argparse
import multiprocessing
from typing import Any

import taciturn
from tests.audit.test_check_and_audit import audited, configurations


def line(options: dict[str, Any]) -> str:
    """A configuration, its verdict, and what each attack reached, to the last digit."""
    verdict = taciturn.check(**options).worst
    figures = {
        attack["name"]: (attack["accuracy"], attack["auc"])
        for attack in audited(options)["attacks"]
    }
    return f"{options}: {verdict}, {figures}"


def _turn() -> None:
    while True:
        pass


def main() -> None:
    """Prints one line for each configuration, two of them worked on at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--busy", type=int, default=0, help="loops that keep the cores busy")
    loops = [
        multiprocessing.Process(target=_turn, daemon=True) for _ in range(parser.parse_args().busy)
    ]
    for loop in loops:
        loop.start()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for text in pool.imap(line, configurations()):
            print(text, flush=True)
    for loop in loops:
        loop.kill()


if __name__ == "__main__":
    main()
