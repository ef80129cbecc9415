"""One side of a joint prediction of new rows: meets the peer, scores, and keeps nothing.

::

    Alice                                            Bob
      Hello (which model, which rows)           <->  Hello
      the prediction, from weights or from shares    scores

Only Bob learns scores. Coins and keys are drawn anew each time, no state is kept, and whoever is
interrupted runs the command again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.registry import scheme
from taciturn.data.tables import FeatureTable
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.journal import NONCE_BYTES, Meta, Past
from taciturn.deploy.link import PREDICTION, Link, Patience
from taciturn.deploy.log import Log
from taciturn.deploy.new_rows import NewRows, new_rows
from taciturn.deploy.playback import run_party
from taciturn.deploy.telling import Telling, tellable
from taciturn.deploy.train import OPENING_SECONDS, Watch
from taciturn.deploy.way import way_to_peer
from taciturn.engine.channel import Endpoint
from taciturn.errors import ConfigError, FileError, TaciturnError
from taciturn.model.share import ModelShare
from taciturn.numerics.logistic import sigmoid
from taciturn.protocol.alice.predict import predict as alice_predict
from taciturn.protocol.alice.predict_sealed import predict as alice_sealed
from taciturn.protocol.bob.predict import predict as bob_predict
from taciturn.protocol.bob.predict_sealed import predict as bob_sealed
from taciturn.protocol.events import Event, WrapsSuspected
from taciturn.protocol.prediction import ModelName, meet
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.parties import PredictionResult, ScoredRow
from taciturn.rng import Entropy, KeyedEntropy, SystemEntropy
from taciturn.settings.agreement import Agreement

# How long a side that cannot begin tries to tell the peer so.
TELLING_SECONDS = 3.0
FINISH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be predicted, on this side: its share of the model and its columns of the rows."""

    model: ModelShare
    rows: NewRows
    terms: Terms

    @classmethod
    def read(
        cls, config: PartyConfig, model: Path, rows: Path, only: tuple[str, ...] = ()
    ) -> Question:
        """Reads both files.

        Args:
            config: This side's settings.
            model: Its share of the model.
            rows: The rows to score, with the id column of the settings.
            only: Score these ids alone; all where empty.

        Raises:
            DataError: A file, a column, an id or a value is not fit for use.
        """
        share = ModelShare.load(model)
        if share.role != config.role:
            raise FileError(
                f"this is {share.role}'s share of a model, and the settings are {config.role}'s",
                where=str(model),
                hint=f"name the file that {config.role}'s side of the training wrote",
            )
        return cls(share, new_rows(rows, config.data.id, share, only), _terms(share, model))

    def program(self, entropy: Entropy) -> Program[FloatArray | None]:
        """This side's part, from the first word to the last."""
        model, table = self.model, self.rows.table
        name = ModelName(model.session, model.agreement_digest, model.sealed)
        if model.role == "alice":
            yield from meet("alice", name, table)
            yield from self._alice(table, entropy)
            return None
        yield from meet("bob", name, table)
        return (yield from self._bob(table, entropy))

    def _alice(self, table: FeatureTable, entropy: Entropy) -> Program[None]:
        model = self.model
        if not model.sealed:
            yield from alice_predict(table, model.weights)
            return
        share, least = np.array(model.share, dtype=np.int64), model.magnitude_bits
        yield from alice_sealed(
            table, share, self.terms, Scales.of_json(model.scales), entropy, least
        )

    def _bob(self, table: FeatureTable, entropy: Entropy) -> Program[FloatArray]:
        model = self.model
        if not model.sealed:
            return (yield from bob_predict(table, model.weights))
        share = np.array(model.share, dtype=np.int64)
        return (
            yield from bob_sealed(
                table, model.weights, share, self.terms, Scales.of_json(model.scales), entropy
            )
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """How a prediction went; scores are Bob's alone, in the order of his file."""

    result: PredictionResult
    ids: tuple[str, ...] = field(default=(), repr=False)
    scores: FloatArray | None = field(default=None, repr=False)

    def rows(self) -> tuple[ScoredRow, ...]:
        """Each row with its log-odds, its probability, and the class at one half."""
        if self.scores is None:
            return ()
        return tuple(
            ScoredRow(name, score, probability, int(score > 0))
            for name, score, probability in zip(
                self.ids, self.scores.tolist(), sigmoid(self.scores).tolist(), strict=True
            )
        )


class Predictor:
    """One side, ready to meet the other.

    Args:
        config: Its settings.
        endpoint: Its way to the peer.
        watch: Who is told what happens.
    """

    def __init__(self, config: PartyConfig, endpoint: Endpoint, watch: Watch) -> None:
        self._config, self._watch, self._wraps = config, watch, 0
        log = config.path(config.output.log) if config.output.log else None
        self._log = Log(log, config.role, watch.announce)
        way = config.link
        patience = Patience(
            way.connect_seconds, way.answer_seconds, min(OPENING_SECONDS, way.answer_seconds)
        )
        self._past = Past(Meta({}, b"", SystemEntropy().token(NONCE_BYTES)))
        self._link = Link(
            endpoint,
            None,
            self._past,
            purpose=PREDICTION,
            patience=patience,
            announce=self._log,
        )

    def run(self, question: Question) -> Answer:
        """Scores the rows with the peer.

        Raises:
            TaciturnError: This side or the peer cannot go on; says why, and what to do.
        """
        role, table = self._config.role, question.rows.table
        start = time.perf_counter()
        try:
            with Telling(self._link, self._log):
                self._link.connect()
                program = question.program(KeyedEntropy.from_system())
                scores = run_party(role, program, self._link, self._past, observe=self._observe)
                confirmed = self._link.finish(FINISH_SECONDS)
        finally:
            self._link.close()
        self._log("rows scored", rows=table.rows)
        model, bob = question.model, scores is not None
        result = PredictionResult(
            role=self._config.role,
            peer=self._config.link.peer,
            mechanism=model.agreement["mechanism"],
            shared_weights=model.sealed,
            session=model.session,
            rows=table.rows,
            columns=len(model.columns),
            seconds=time.perf_counter() - start,
            bytes_sent=self._link.traffic.bytes_sent,
            bytes_received=self._link.traffic.bytes_received,
            peer_confirmed=confirmed,
            learnt=None if bob else LEARNT,
            suspected_wraps=self._wraps if bob else None,
            meaning=meaning_of(question.terms.agreement) if bob else None,
        )
        if scores is None:
            return Answer(result)
        places = question.rows.places
        ids = tuple(table.ids.take(places).series.to_list())
        return Answer(result, ids, scores[places])

    def refuse(self, problem: TaciturnError) -> None:
        """Tells the peer, where it is there, that this side cannot begin."""
        code, reason = tellable(problem)
        if self._link.reach(TELLING_SECONDS):
            self._link.fail(code, reason)
        self._link.close()

    def _observe(self, event: Event) -> None:
        if isinstance(event, WrapsSuspected):
            self._wraps += event.scores
        self._watch.observe(event)


LEARNT = (
    "no score, no label and nothing of the peer's columns; only which rows were asked, "
    "how many and when"
)


def predict(
    config: PartyConfig,
    read: Callable[[], Question],
    watch: Watch,
) -> Answer:
    """Reads this side's files, meets the peer and scores.

    Args:
        config: This side's settings.
        read: Reads the files; what it raises is told to the peer, where the peer is there already.
        watch: Who is told what happens.

    Raises:
        TaciturnError: This side or the peer cannot go on; says why, and what to do.
    """
    try:
        question = read()
    except TaciturnError as problem:
        # What keeps us from telling is of less interest than what is told.
        with suppress(TaciturnError), way_to_peer(config, watch.announce) as endpoint:
            watch.announce(f"giving up, and telling {config.link.peer} so if it is there")
            Predictor(config, endpoint, watch).refuse(problem)
        raise
    with way_to_peer(config, watch.announce) as endpoint:
        return Predictor(config, endpoint, watch).run(question)


def meaning_of(agreed: Agreement) -> str:
    """What a probability means after a training with this mechanism.

    >>> from taciturn.protocol.agree import agree
    >>> from taciturn.settings.schema import Settings
    >>> plain = Settings(mechanism="none", epochs=1, batch_size=8, learning_rate=0.1)
    >>> meaning_of(agree(plain, 3, 40).agreement)
    'of a label 1, for rows like the training rows'
    """
    plain = "of a label 1, for rows like the training rows"
    if agreed.mechanism == "label-rr":
        return (
            "of a TRUE label 1, for rows like the training rows: the training used flipped labels "
            "and corrected for the flips, so nothing is to be corrected again"
        )
    if agreed.mechanism in ("add", "mult"):
        return (
            f"{plain}; the training's residues were noisy, so look at held-out rows before "
            "you take it at its word"
        )
    return plain


def _terms(share: ModelShare, path: Path) -> Terms:
    try:
        agreed = Agreement.of(share.agreement)
        return Terms(agreed, scheme(agreed.scheme))
    except ConfigError as problem:
        raise FileError(
            f"the model's agreement is not one that this program knows: {problem.message}",
            where=str(path),
            hint="read it with the version of taciturn that wrote it",
        ) from None
