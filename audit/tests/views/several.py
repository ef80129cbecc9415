"""Trainings of several Alices as each side sees them, made once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from taciturn.crypto.registry import scheme
from taciturn_audit.views.alice_view import AliceView
from taciturn_audit.views.bob_view import BobView
from taciturn_audit.views.coalition import pooled
from tests.protocol.parties import BOB, Tables, agreement
from tests.protocol.stars import Star, StarTalk, converse, entropy_of

NEWTON = {"solver": "newton", "epochs": 8, "l2": 0.02, "batch_size": 400, "learning_rate": 1.0}


@dataclass(frozen=True)
class Several:
    """A training, and the views of it."""

    star: Star
    talk: StarTalk

    @cached_property
    def alices(self) -> tuple[AliceView, ...]:
        """The view of each, from her own link."""
        agreed, recorded = self.star.terms.agreement, self.talk.transcript
        return tuple(
            AliceView(
                agreed, self.star.shares[name], entropy_of(name or "alice-1"), recorded.link(at)
            )
            for at, name in enumerate(self.star.parties)
        )

    def coalition(self, *places: int) -> AliceView:
        return pooled([self.alices[place] for place in places])

    @cached_property
    def bob(self) -> BobView:
        tables = self.star.tables
        return BobView(
            self.star.terms.agreement,
            tables.bob,
            tables.labels,
            BOB,
            self.talk.transcript,
            persisted=self.talk.kept,
        )


@cache
def several(alices: int, rows: int = 40, columns: int = 9, bob: int = 0, **options: Any) -> Several:
    """A training with so many Alices; columns are dealt out in order."""
    tables = Tables.make(rows=rows, alice=columns, bob=bob)
    agreed = agreement(**options)
    star = Star.of(tables, agreed, alices, scheme(agreed.scheme))
    return Several(star, converse(star, whole=True))
