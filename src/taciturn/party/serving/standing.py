"""A meeting that stays: from a model in use to the two sides of ``taciturn.protocol.serving``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.signatures import Identity
from taciturn.data.normalisation import NONE
from taciturn.engine.callbacks import Callbacks, silent
from taciturn.engine.channel import Endpoints
from taciturn.errors import OutputError, PeerAbsent, TaciturnError
from taciturn.numerics.whitening import Whitening
from taciturn.party.agreed import require_begun_in_time
from taciturn.party.config import PartyConfig
from taciturn.party.session import Meeting, PeerSession
from taciturn.party.used_model import UsedModel
from taciturn.protocol.circle import NO_MASKS
from taciturn.protocol.messages import Hello
from taciturn.protocol.serving import HEADROOM_BITS, ROW_ANSWERS, meet_standing, serving_terms
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.together import together
from taciturn.rng import Entropy

if TYPE_CHECKING:
    from taciturn.protocol.alice.serve import Responder
    from taciturn.protocol.bob.serve import Requester

# How long a side looks for the other before it looks whether it is to stop.
LOOK_SECONDS, LOOK_FOR_SEVERAL_SECONDS = 1.0, 5.0
# How long a side that was refused waits before it tries again, and the longest it does.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 5.0
# A side that hears nothing for so long takes the other to be gone; Bob asks more often than that.
SILENT_SECONDS = 30.0
BEAT_SECONDS = 1.0
# What the peer is told by a side that ends as it should.
STOPPED = 0
# After how long the same trouble is logged again.
REPEAT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class StandingModel:
    """One side's model in a meeting that stays; ``normalise`` says how ids are read."""

    used: UsedModel
    normalise: str = NONE
    identity: Identity | None = None

    @property
    def terms(self) -> str:
        """What both sides must have alike."""
        used = self.used
        scales = used.scales if used.model.sealed else None
        return serving_terms(used.name, self.normalise, used.terms, scales)

    @property
    def size(self) -> int:
        """No value of this side's rows may exceed two to this; 0 where that is no matter."""
        model = self.used.model
        if not model.sealed:
            return 0
        if self.used.role == "alice":
            return model.magnitude_bits + HEADROOM_BITS
        return model.bob_bits + HEADROOM_BITS if self._shares_all else 0

    @property
    def row_answers(self) -> int | None:
        """How many answers a row may be in; None where they tell nothing beyond scores."""
        return ROW_ANSWERS if self.used.model.sealed and not self._shares_all else None

    @property
    def _shares_all(self) -> bool:
        return self.used.terms.mechanism.shares_scores

    @property
    def _whitening(self) -> Whitening | None:
        used = self.used
        if not used.model.sealed:
            return None
        if used.role == "alice":
            return used.alice_share.whitening
        return used.bob_share.whitening if self._shares_all else None

    def coordinates(self) -> Callable[[FloatArray], FloatArray]:
        """What turns prepared rows into those of the weights."""
        whitening = self._whitening
        return (lambda values: values) if whitening is None else whitening.of_rows()

    def unfit(self, values: FloatArray) -> frozenset[int]:
        """The places of rows with a value that is too large for the scale of the shares."""
        if not self.size or not values.size:
            return frozenset()
        over = ~(np.abs(values).max(axis=1) <= 2.0**self.size)
        return frozenset(np.flatnonzero(over).tolist())

    def require_hidden(self) -> None:
        """Refuses, at Alice, a model whose answers would tell more of a row than its scores."""
        from taciturn.protocol.alice.serve import require_hidden

        if self.used.model.sealed and not self._shares_all:
            require_hidden(self.used.alice_share, self.used.terms, self.size)

    def open_alice(self, entropy: Entropy) -> Program[Responder]:
        """Her first words."""
        # Each side loads its own programs only.
        from taciturn.protocol.alice.circle import join_circle
        from taciturn.protocol.alice.serve import (
            Answers,
            Responder,
            RevealedAnswers,
            SealedAnswers,
            SharedAnswers,
        )

        used, masks = self.used, NO_MASKS
        columns = len(used.model.columns)
        hello = yield from meet_standing("alice", self.terms, columns, self.size)
        if used.parties:
            circle = yield from join_circle(
                used.parties, self.terms, self.identity, entropy, columns, self.size
            )
            masks = circle.masks.fork("serving")
        answers: Answers
        if not used.model.sealed:
            answers = RevealedAnswers(used.model.weights, used.noise_key, used.terms.score_grid)
        elif self._shares_all:
            shares = used.alice_share, used.bob_share
            answers = SharedAnswers(*shares, used.noise_key, used.terms, self.size, entropy)
        else:
            answers = SealedAnswers(
                used.alice_share, used.noise_key, used.terms, self.size, entropy
            )
        yield from answers.open(hello)
        return Responder(answers, masks)

    def open_bob(self, entropy: Entropy) -> Program[Requester]:
        """His first words."""
        from taciturn.protocol.bob.circle import gather_circle
        from taciturn.protocol.bob.partners import Partners
        from taciturn.protocol.bob.serve import (
            Questions,
            Requester,
            RevealedQuestions,
            SealedQuestions,
            SharedQuestions,
        )

        used = self.used
        names, columns = tuple(used.parties) or (ONLY,), len(used.model.columns)
        hellos: dict[str, Hello] = yield from together(
            {name: meet_standing("bob", self.terms, columns, self.size) for name in names}
        )
        if used.parties:
            yield from gather_circle(used.parties, self.terms, hellos, entropy)
        questions: Questions
        if not used.model.sealed:
            questions = RevealedQuestions(used.model.weights, names, used.terms.score_grid)
        elif self._shares_all:
            shares = used.alice_share, used.bob_share
            questions = SharedQuestions(*shares, used.terms, self.size, entropy)
        else:
            questions = SealedQuestions(
                used.model.weights,
                used.alice_share,
                used.terms,
                entropy,
                Partners.of(names, used.widths),
            )
        yield from questions.open(hellos)
        return Requester(questions, names)


class StandingSession:
    """Meets the peer again and again until ``stop`` is set."""

    def __init__(
        self,
        config: PartyConfig,
        endpoint: Endpoints,
        callbacks: Callbacks,
        stop: threading.Event,
    ) -> None:
        self._config, self._session = config, PeerSession(config, endpoint, callbacks)
        self._session.notes_absence = False
        look = LOOK_FOR_SEVERAL_SECONDS if len(config.peers) > 1 else LOOK_SECONDS
        self._session.patience = replace(
            self._session.patience, connect=look, answer=SILENT_SECONDS, opening=5.0
        )
        self.log, self._stop = self._session.log, stop
        self._pause, self._said, self._silent_until = FIRST_PAUSE_SECONDS, "", 0.0

    def run(self, stay: Callable[[Meeting], None], away: Callable[[str], None] = silent) -> None:
        """Meets the peer, stays with it, and meets it again when it was lost.

        ``stay`` returns to meet the peer anew; ``away`` is called with why the peer is not there.
        """
        from taciturn.party.link import SERVING

        while not self._stop.is_set():
            try:
                self.require_in_time()
                with self._session.meet(SERVING) as meeting:
                    meeting.connect()
                    stay(meeting)
                    if self._stop.is_set():
                        for link in meeting.links.values():
                            link.fail(STOPPED, "it is being stopped")
                self._pause = FIRST_PAUSE_SECONDS
            except PeerAbsent as problem:
                away(problem.message)
            except TaciturnError as problem:
                away(problem.message)
                self._note(problem)
                self._stop.wait(self._pause)
                self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def require_in_time(self) -> None:
        """Insists that the agreement has not ended; asked before each round of a long meeting."""
        require_begun_in_time(self._config)

    def say(self, event: str, **facts: object) -> None:
        """Notes an event where that can be."""
        with suppress(OutputError):
            self.log(event, **facts)

    def met(self) -> None:
        """The two have understood each other: what failed before is over."""
        self._pause = FIRST_PAUSE_SECONDS

    def _note(self, problem: TaciturnError) -> None:
        """Says why a meeting has ended; the same again after a while only."""
        now = time.monotonic()
        if problem.message == self._said and now < self._silent_until:
            return
        self._said, self._silent_until = problem.message, now + REPEAT_SECONDS
        # A log that cannot be written must not end the service.
        with suppress(OutputError):
            self.log("the meeting has ended", reason=problem.message)
