"""Runs one side of a training: reads its file, meets the peer, trains, writes its model.

Running the same command again goes on where it stopped; after the end it only confirms to a peer
that may have missed the last words.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.data.tables import LabelTable
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.flip_book import FlipBook
from taciturn.deploy.journal import NONCE_BYTES, Meta, Past, unchanged
from taciturn.deploy.keep import Kept, boot, state_folder
from taciturn.deploy.link import DRY_RUN, TRAINING, Link, Patience, silent
from taciturn.deploy.log import Figures, Log
from taciturn.deploy.playback import Rhythm, run_party, unheard
from taciturn.deploy.programs import Result, alice_program, bob_program, dry_run
from taciturn.deploy.tables import PartyTables, load_tables
from taciturn.deploy.telling import Telling
from taciturn.engine.channel import Endpoint
from taciturn.engine.driver import ignore
from taciturn.engine.forecast import forecast
from taciturn.engine.transcript import TranscriptFile
from taciturn.errors import AgreementError, ConfigError, PrivacyError, StateError
from taciturn.model.share import ModelShare
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.metrics import evaluate
from taciturn.privacy.label_response import FlippedLabels
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism
from taciturn.protocol.agree import agree, unused
from taciturn.protocol.bob.labels import released_labels
from taciturn.protocol.events import Boundary, Event, Progress
from taciturn.protocol.handshake import PROTOCOL_VERSION
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program
from taciturn.protocol.terms import Terms
from taciturn.results.estimate import Estimate
from taciturn.results.parties import DryRun, Identity, PartyMetrics, PartyRun
from taciturn.results.serialise import read, record_of
from taciturn.rng import KeyedEntropy, SystemEntropy
from taciturn.settings.agreement import Agreement
from taciturn.version import __version__

LINGER_SECONDS = 60.0
OPENING_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told what happens."""

    announce: Callable[[str], None] = silent
    observe: Callable[[Event], None] = ignore


class Party:
    """One side, ready to meet the other.

    Args:
        config: Its settings.
        endpoint: Its way to the peer.
        watch: Who is told what happens.

    Raises:
        ConfigError: The settings do not go together.
        DataError: Its table is not fit for use.
    """

    def __init__(self, config: PartyConfig, endpoint: Endpoint, watch: Watch) -> None:
        self.config, self._endpoint, self._watch = config, endpoint, watch
        output = config.output
        self._log = Log(
            config.path(output.log) if output.log else None, config.role, watch.announce
        )
        self.tables = load_tables(config)
        self.terms = terms_of(config, self.tables)
        for note in (*self.tables.notes, *unused(config.settings())):
            self._log("note", about=note)
        way = config.link
        self._patience = Patience(
            way.connect_seconds, way.answer_seconds, min(OPENING_SECONDS, way.answer_seconds)
        )

    def dry_run(self) -> DryRun:
        """Meets the peer, compares everything, and stops before the training.

        Raises:
            TaciturnError: The two sides do not fit, or cannot meet.
        """
        meta = Meta({}, b"", SystemEntropy().token(NONCE_BYTES))
        link = self._link(None, Past(meta), purpose=DRY_RUN)
        bits = self._magnitude_bits
        start = time.perf_counter()
        with Telling(link, self._log):
            program = dry_run(self.config.role, self.tables, self.terms, bits)
            hello = run_party(self.config.role, program, link, Past(meta))
            link.finish(self._patience.opening)
        seconds = time.perf_counter() - start
        self._log("dry run passed", seconds=round(seconds, 3))
        return DryRun(
            identity=self._identity(), peer_columns=hello.columns, estimate=self._estimate()
        )

    def run(self, *, record: Path | None = None, fresh: bool = False) -> PartyRun:
        """Trains, or goes on.

        Args:
            record: Write the transcript of this side to this file.
            fresh: Forget an unfinished session and begin anew.

        Raises:
            TaciturnError: This side or the peer cannot go on; says why, and what to do.
        """
        with state_folder(self.config) as kept:
            for warning in kept.warnings:
                self._log("warning", about=warning)
            past = self._past(kept, fresh)
            link = self._link(kept, past)
            try:
                with Telling(link, self._log):
                    if past.done is None:
                        done = self._train(kept, past, link, record)
                        kept.journal.done(json.dumps(record_of(done)).encode())
                    else:
                        done = read(PartyRun, json.loads(past.done))
                        self._log("this side had finished; confirming to the peer")
                    confirmed = link.finish(LINGER_SECONDS)
            finally:
                link.close()
            if not confirmed:
                self._log("the peer has not confirmed the last message; run again if it lacks it")
            return replace(done, peer_confirmed=confirmed)

    def _past(self, kept: Kept, fresh: bool) -> Past:
        facts = self._facts()
        past = None if fresh else kept.journal.resume()
        if past is None:
            coins = KeyedEntropy.from_system().key
            self._log("session begun")
            return kept.journal.begin(Meta(facts, coins, SystemEntropy().token(NONCE_BYTES)))
        changed = unchanged(past.meta, facts)
        if changed:
            raise StateError(
                "since the session began these have changed: " + ", ".join(changed),
                where=str(self.config.path(self.config.state.folder)),
                hint="restore them, or begin anew on both sides with --fresh",
            )
        sent, received = past.checkpoint.sent + len(past.sent), len(past.received)
        received += past.checkpoint.received
        self._log("session goes on", frames_sent=sent, frames_received=received)
        return past

    def _facts(self) -> dict[str, Any]:
        labels = self.tables.labels
        return {
            "role": self.config.role,
            "terms": self.terms.agreement.canonical(),
            "protocol": PROTOCOL_VERSION,
            "version of taciturn": __version__,
            # Without sync a stop of the machine can lose what was sent already.
            "start of the machine (sync = false)": "" if self.config.state.sync else boot(),
            "table": self.tables.train.digest(),
            "held-out table": self.tables.held_out.digest() if self.tables.held_out else "",
            "labels": "" if labels is None else labels.digest(),
            "limits": self.config.privacy.model_dump(),
        }

    def _link(self, kept: Kept | None, past: Past, purpose: int = TRAINING) -> Link:
        return Link(
            self._endpoint,
            None if kept is None else kept.journal,
            past,
            patience=self._patience,
            announce=self._log,
            purpose=purpose,
        )

    def _train(self, kept: Kept, past: Past, link: Link, record: Path | None) -> PartyRun:
        role, state = self.config.role, self.config.state
        body = json.loads(past.checkpoint.body) if past.checkpoint.body else None
        resume = None if body is None else TrainingState.of_bytes(bytes.fromhex(body["state"]))
        coins = KeyedEntropy(past.meta.coins)
        labels, ledger = self._paid_labels(body, coins)
        figures = Figures(
            self.config.path(self.config.output.metrics) if self.config.output.metrics else None,
            self.tables.labels,
            self.terms.per_epoch(self.tables.train.rows),
            self._log,
        )
        if body is not None:
            figures.restore(body["figures"])
        recording = self._recording(record, body, coins)

        def freeze(at: TrainingState) -> bytes:
            values = {
                "state": at.to_bytes().hex(),
                "ledger": None if ledger is None else ledger.to_json(),
                "recorded": None if recording is None else recording.position(),
                "figures": figures.to_json(),
            }
            return json.dumps(values).encode()

        def observe(event: Event) -> None:
            figures.observe(event)
            figures.write(link.traffic)
            self._watch.observe(event)
            if role == "alice" and isinstance(event, Boundary):
                # Her program says where she stands, and not out of how many.
                observe(Progress(event.state.iteration, self._iterations))

        # A diverging training overflows; the programs refuse what comes of it, in words.
        with recording or nullcontext(), np.errstate(over="ignore", invalid="ignore"):
            result = run_party(
                role,
                self._program(labels, ledger, coins, resume),
                link,
                past,
                journal=kept.journal,
                freeze=freeze,
                rhythm=Rhythm(state.every_iterations, state.every_seconds),
                tap=recording or unheard,
                observe=observe,
            )
            if role == "alice":
                self._count_last(figures)
            share = self._share(result, ledger, link, figures)
            share.save(self.config.path(self.config.output.model))
            if recording is not None:
                recording.conclude({"session": share.session})
        figures.write(link.traffic, force=True)
        self._log("model written", file=self.config.output.model)
        return PartyRun(
            identity=self._identity(),
            model=str(self.config.path(self.config.output.model)),
            stopped=figures.stopped,
            metrics=read(PartyMetrics, share.metrics),
            ledger=None if ledger is None else ledger.statement(),
            run=figures.so_far(link.traffic),
        )

    def _count_last(self, figures: Figures) -> None:
        """Alice's last iteration ends without a word; where it came early, Bob ended it."""
        done = figures.figures["iterations"] + 1
        figures.figures["iterations"] = min(done, self._iterations)
        if done < self._iterations:
            figures.stopped = "the peer ended the training"

    @property
    def _magnitude_bits(self) -> int:
        """The size of Alice's values, which both sides know; Bob's own is nobody's business."""
        return magnitude_bits(self.tables.train.largest) if self.config.role == "alice" else 0

    @property
    def _iterations(self) -> int:
        """How many there are, unless the training ends early."""
        return self.terms.agreement.epochs * self.terms.per_epoch(self.tables.train.rows)

    def _program(
        self,
        labels: LabelTable | None,
        ledger: Ledger | None,
        coins: KeyedEntropy,
        resume: TrainingState | None,
    ) -> Program[Result]:
        if labels is None or ledger is None:
            return alice_program(self.tables, self.terms, coins, resume)
        return bob_program(self.tables, labels, self.terms, ledger, coins, resume)

    def _paid_labels(
        self, body: dict[str, Any] | None, coins: KeyedEntropy
    ) -> tuple[LabelTable | None, Ledger | None]:
        """The labels that Bob's training may use, and his ledger as it stood at the checkpoint."""
        truth = self.tables.labels
        if truth is None:
            return None, None
        limits, method = self.config.privacy, mechanism(self.terms.agreement)
        ledger = Ledger(truth.rows, method.assumption, limits.budget, limits.delta)
        book = self.config.path(limits.flips)
        respond = FlipBook(book, method).release if isinstance(method, FlippedLabels) else None
        labels = released_labels(truth, method, ledger, coins, respond)
        if body is not None and body["ledger"] is not None:
            ledger.restore(body["ledger"])
        return labels, ledger

    def _share(
        self, result: Result, ledger: Ledger | None, link: Link, figures: Figures
    ) -> ModelShare:
        metrics: dict[str, Any] = {}
        labels, held_out = self.tables.labels, self.tables.held_out_labels
        if labels is not None and result.train_scores is not None:
            metrics["train"] = record_of(evaluate(result.train_scores, labels.values))
        if held_out is not None and result.held_out_scores is not None:
            metrics["held_out"] = record_of(evaluate(result.held_out_scores, held_out.values))
        if figures.curve:
            metrics["curve"] = figures.curve
        return ModelShare(
            role=self.config.role,
            columns=self.tables.train.columns,
            weights=result.weights,
            preparation=self.tables.preparation,
            agreement=self.terms.agreement.model_dump(),
            session=_session(self.config.role, link),
            rows=self.tables.train.rows,
            data_digest=self.tables.train.digest(),
            metrics=metrics,
            ledger={} if ledger is None else record_of(ledger.statement()),
            notes=self.tables.notes,
            share=() if result.kept is None else tuple(result.kept.share.tolist()),
            scales={} if result.kept is None else result.kept.scales.to_json(),
            magnitude_bits=self._magnitude_bits,
        )

    def _recording(
        self, record: Path | None, body: dict[str, Any] | None, coins: KeyedEntropy
    ) -> TranscriptFile | None:
        """The transcript of this side, begun or gone on with.

        Raises:
            StateError: The session began without one.
        """
        if record is None:
            return None
        if body is not None and body["recorded"] is None:
            raise StateError(
                "the session began without a transcript, and a part of one says little",
                where="--record",
                hint="leave --record out, or begin anew on both sides with --fresh",
            )
        at = None if body is None else body["recorded"]
        return TranscriptFile(record, self._header(coins), at=at, keep=True)

    def _header(self, coins: KeyedEntropy) -> dict[str, Any]:
        return {
            "kind": "party",
            "role": self.config.role,
            "version": __version__,
            "agreement": self.terms.agreement.model_dump(),
            "coins": {self.config.role: coins.key.hex()},
            "features_digest": self.tables.train.digest(),
        }

    def _identity(self) -> Identity:
        held_out = self.tables.held_out
        return Identity(
            role=self.config.role,
            peer=self.config.link.peer,
            mechanism=self.terms.agreement.mechanism,
            scheme=self.terms.agreement.scheme,
            key_bits=self.terms.agreement.key_bits,
            columns=len(self.tables.train.columns),
            rows=self.tables.train.rows,
            held_out_rows=0 if held_out is None else held_out.rows,
            version=__version__,
        )

    def _estimate(self) -> Estimate | None:
        """How long it will take; only Alice has the columns that decide it."""
        if self.config.role == "bob":
            return None
        return forecast(self.terms, self.tables.train)


def _session(role: str, link: Link) -> str:
    """One name of the session for both sides."""
    mine, peer = link.names
    first, second = (mine, peer) if role == "alice" else (peer, mine)
    return hashlib.sha256(first + second).hexdigest()[:32]


def terms_of(config: PartyConfig, tables: PartyTables) -> Terms:
    """The terms of a party's training, from its file and its table.

    Raises:
        ConfigError: The mechanism cannot be had with these settings.
        PrivacyError: Nor with these limits.
        AgreementError: Alice's table has another number of columns than was agreed.
    """
    settings = config.settings()
    known = config.agreed.get("alice_columns")
    mine = len(tables.train.columns)
    columns = known if isinstance(known, int) else mine
    if config.role == "alice" and isinstance(known, int) and known != mine:
        raise AgreementError(
            f"alice-columns is {known}, and her prepared table has {mine}",
            where="[agreement] alice-columns",
            hint=f"write alice-columns = {mine} on both sides",
        )
    try:
        found = agree(settings, columns, tables.train.rows)
    except (ConfigError, PrivacyError) as problem:
        raise _in_the_file(problem, config.where) from None
    beside = {k: v for k, v in config.beside().items() if k in Agreement.model_fields}
    return Terms(Agreement.of({**found.agreement.model_dump(), **beside}), found.scheme)


def _in_the_file(problem: ConfigError | PrivacyError, file: str) -> ConfigError | PrivacyError:
    """The same error in the words of a party's file: keys, where a simulation has options."""

    def key(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        return f"{name} = {value}" if value[0].isdigit() else f'{name} = "{value}"'

    hint = re.sub(
        r"--([a-z0-9-]+) ([0-9.]+|printed|one-sided|mean-one|released)", key, problem.hint
    )
    hint = re.sub(r"--([a-z0-9-]+)", r"\1", hint)
    place = re.sub(r"^--(budget|delta)$", r"[privacy] \1", problem.where)
    place = re.sub(r"^--([a-z0-9-]+)$", r"[agreement] \1", place)
    return type(problem)(problem.message, where=f"{file}, {place}" if place else file, hint=hint)
