"""What the fault suite counts: trials that ended alike, were refused by name, or went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from taciturn.errors import TaciturnError

_OF_A_PEER = ("PeerAbsent", "PeerSilent", "PeerStopped")
Verdict = Literal["identical", "refused", "wrong"]


@dataclass
class Tally:
    """The trials of one test by how they ended.

    Args:
        title: What was done.
        survived: What is said of those that went on.
    """

    title: str
    survived: str = "identical"
    counts: dict[str, Counter[Verdict]] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, kind: str, verdict: Verdict, name: str = "", detail: str = "") -> None:
        """Counts a trial; ``name`` is that of the error with which it was refused."""
        self.counts.setdefault(kind, Counter())[verdict] += 1
        if verdict == "refused":
            self.names[name] += 1
        if verdict == "wrong":
            self.failures.append(f"{kind}: {name} {detail}")

    def require_none_wrong(self, least: int) -> None:
        """Prints the table; insists on so many trials, and that none went wrong."""
        print(f"\n{self.title}")
        print(f"{'':36}{'tried':>8}{self.survived:>11}{'refused':>9}{'wrong':>7}")
        total: Counter[Verdict] = sum(self.counts.values(), Counter())
        for kind, counts in [*self.counts.items(), ("all", total)]:
            row = f"{counts['identical']:>11}{counts['refused']:>9}{counts['wrong']:>7}"
            print(f"{kind:36}{counts.total():>8}{row}")
        print("refused as:", ", ".join(f"{name} {n}" for name, n in sorted(self.names.items())))
        assert not self.failures, "\n".join(self.failures)
        assert total.total() >= least


def judged(ends: Mapping[str, Any], same: bool | None) -> tuple[Verdict, str]:
    """How a trial ended.

    Args:
        ends: What each side ended with: an exception, or its result.
        same: Whether the results are those of an undisturbed run; None where a side has none.

    Returns:
        The verdict, and the name of the error.
    """
    raised = [end for end in ends.values() if isinstance(end, BaseException)]
    unnamed = [end for end in raised if not isinstance(end, TaciturnError)]
    if unnamed:
        return "wrong", repr(unnamed)
    if not raised:
        return ("identical", "") if same else ("wrong", "another result")
    # Of two the one that says more than that the other is not there.
    names = {type(end).__name__ for end in raised}
    return "refused", min(names, key=lambda name: (name in _OF_A_PEER, name))
