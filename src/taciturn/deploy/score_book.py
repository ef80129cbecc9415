"""``ScoreBook``: how many scores of each row of Alice's a partner was given, in a file.

A score is a linear function of a row of hers, and enough of them give the row away
(``taciturn.engine.exposure``). One training does not know of another. The book does: it counts, for
each partner and row, over all trainings, held-out rows and predictions, and refuses what would
exceed ``[privacy] scores-per-row``.

A training is charged as a whole, for the most scores that it can open, before the first of them
leaves; resumed, it is not charged again, and one that begins anew is. A prediction is charged one
score a row.

The file (``book_file``) has a salt, and for each partner the rows by their count and the sessions
that were charged; of each session since this is recorded, when it was, its mechanism and how many
scores of a training row it opened. Rows stand in it as salted hashes of their ids, of 64 bits each
(``tagged``).

**Guarantee.** No row of the book is given to a partner more often than the limit allows, also by
two programs at the same time. The file is on disk before a score leaves.

**Assumes.** The file is not deleted, restored from an older copy or used beside another one; a row
keeps its id; and a partner keeps its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.data.ids import RowIds
from taciturn.deploy.book_file import BookFile
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.tagged import Codes, TaggedRows, tags_of
from taciturn.engine.exposure import OpenedScores
from taciturn.errors import BudgetExceeded
from taciturn.faces import Hint
from taciturn.protocol.terms import Terms
from taciturn.results.ledger import ExposedSession
from taciturn.rng import SystemEntropy

_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Opening:
    """What a training opens: its mechanism, and the most scores of one training row."""

    mechanism: str
    scores_per_row: int

    @classmethod
    def of(cls, terms: Terms, opened: OpenedScores) -> Opening:
        """What one training opens, or several together."""
        # Rows of a fold are scored by a model that was not trained on them.
        exposes = not terms.mechanism.shares_scores
        return cls(terms.agreement.mechanism, opened.per_row if exposes else 0)


@dataclass(frozen=True, slots=True)
class Charge:
    """Scores that are about to be opened to the partner.

    ``rows`` are sets of rows, each with how many scores of every row there will be. The name of the
    session is charged once; it is empty where there is none to resume. ``opening`` is None where
    nothing is trained.
    """

    rows: tuple[tuple[RowIds, int], ...]
    session: str = ""
    opening: Opening | None = None


@dataclass(slots=True)
class _Partner:
    counts: TaggedRows = field(default_factory=TaggedRows)
    sessions: list[str] = field(default_factory=list)
    trainings: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class _Page:
    salt: bytes
    partners: dict[str, _Partner] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoreBook:
    """The scores that a partner was given, in a file, made when first charged.

    ``limit`` is the most scores of a row, None for any number; ``served`` is the file that counts
    what was served on demand, which counts too.
    """

    path: Path
    partner: str
    limit: int | None = None
    served: Path | None = None

    def require(self, charge: Charge) -> None:
        """Insists that a charge is within the limit (else BudgetExceeded); nothing is written."""
        if self.limit is not None:
            with self._served() as served:
                self._charged(self._read(), charge, served)

    def charge(self, charge: Charge) -> None:
        """Counts scores before they leave; counts nothing on BudgetExceeded."""
        # What is served on demand waits until this is counted.
        with self._file.alone(), self._served() as served:
            page = self._read()
            if self._charged(page, charge, served):
                self._write(page)

    def most_given(self) -> int:
        """The most scores of a row that the partner was given so far."""
        partner = self._read().partners.get(self.partner, _Partner())
        with self._served() as served:
            in_both = served.codes + partner.counts.codes_of(served.tags)
        return max(int(partner.counts.codes.max(initial=0)), int(in_both.max(initial=0)))

    def exposed_sessions(self) -> tuple[ExposedSession, ...]:
        """The sessions, with any partner, that opened scores of training rows, the oldest first.

        Of a session that was charged before this was recorded only its name is known; it is listed.
        """
        listed = [
            ExposedSession(partner=name, session=session, **partner.trainings.get(session, {}))
            for name, partner in self._read().partners.items()
            for session in partner.sessions
        ]
        return tuple(session for session in listed if session.scores_per_row != 0)

    def salt(self) -> bytes:
        """What ids are hashed with; the book is made where it is not there."""
        if not self.path.exists():
            self.charge(Charge(()))
        return self._read().salt

    def counts(self) -> TaggedRows:
        """The scores of each row that the partner was given, those on demand left out."""
        return self._read().partners.get(self.partner, _Partner()).counts

    @property
    def changed(self) -> tuple[int, int]:
        """Another value whenever the file is another."""
        try:
            facts = self.path.stat()
        except OSError:
            return 0, 0
        return facts.st_mtime_ns, facts.st_ino

    @contextmanager
    def _served(self) -> Iterator[TaggedRows]:
        # Loaded where something was served: it brings SQLite.
        if self.served is None or not self.served.exists():
            yield TaggedRows()
            return
        from taciturn.deploy.serving.usage import rows_ever

        with rows_ever(self.served, self.partner) as counts:
            yield counts

    def _charged(self, page: _Page, charge: Charge, served: TaggedRows) -> bool:
        """Adds a charge to a page; False where its session was charged before."""
        partner = page.partners.setdefault(self.partner, _Partner())
        if charge.session and charge.session in partner.sessions:
            return False
        for ids, scores in charge.rows:
            tags = tags_of(ids, key=page.salt)
            given = partner.counts.codes_of(tags)
            self._require_within(given + served.codes_of(tags), scores)
            partner.counts = partner.counts.with_codes(tags, given + scores)
        if charge.session:
            partner.sessions.append(charge.session)
        if charge.session and charge.opening is not None:
            when = datetime.now(UTC).isoformat(timespec="seconds")
            partner.trainings[charge.session] = {"when": when, **asdict(charge.opening)}
        return True

    def _require_within(self, given: Codes, scores: int) -> None:
        if self.limit is None:
            return
        over = int(np.count_nonzero(given + scores > self.limit))
        if over:
            most = int(given.max())
            raise BudgetExceeded(
                f"{over:,} of {len(given):,} rows would exceed the {self.limit:,} scores of a row "
                f"that {self.partner} may have: up to {most:,} were given, and this opens "
                f"{scores:,} more",
                setting="scores_per_row",
                hint=Hint(
                    f"for these rows {max(0, self.limit - most):,} are left: use fewer epochs, or "
                    "raise {scores_per_row} if this partner may learn more of your columns; "
                    "nothing was sent"
                ),
            )

    def _read(self) -> _Page:
        with self._file.reading() as record:
            if record is None:
                return _Page(SystemEntropy().token(_SALT_BYTES))
            partners = {
                name: _Partner(
                    TaggedRows.of_groups((int(n), tags) for n, tags in partner["rows"].items()),
                    list(map(str, partner["sessions"])),
                    # Books of earlier versions do not have it.
                    {name: _recorded(one) for name, one in partner.get("trainings", {}).items()},
                )
                for name, partner in record["partners"].items()
            }
            return _Page(bytes.fromhex(record["salt"]), partners)

    @property
    def _file(self) -> BookFile:
        return BookFile(
            self.path, "score book", "without it the scores that were given are not counted"
        )

    def _write(self, page: _Page) -> None:
        self._file.write(
            {
                "salt": page.salt.hex(),
                "partners": {
                    name: {
                        "rows": {str(count): tags for count, tags in partner.counts.groups()},
                        "sessions": partner.sessions,
                        "trainings": partner.trainings,
                    }
                    for name, partner in page.partners.items()
                },
            }
        )


def _recorded(training: dict[str, Any]) -> dict[str, Any]:
    """One training of the file, as far as it is one."""
    return {
        "when": str(training["when"]),
        "mechanism": str(training["mechanism"]),
        "scores_per_row": int(training["scores_per_row"]),
    }


def score_book(config: PartyConfig) -> ScoreBook | None:
    """Where Alice counts the scores that she gives to this peer; None at Bob."""
    if config.role == "bob":
        return None
    limits = config.privacy
    return ScoreBook(
        config.path(limits.scores),
        config.peer,
        limits.scores_per_row,
        config.path(config.serve.usage_file(config.role)),
    )
