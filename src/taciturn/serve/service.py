"""Both sides of a service, from a party's file to the end of the process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.data.csv_files import Dialect
from taciturn.engine.callbacks import Callbacks, silent
from taciturn.errors import ConfigError
from taciturn.extras import explained
from taciturn.faces import Hint
from taciturn.party.agreed import peer_keys, require_begun_in_time
from taciturn.party.config import PartyConfig
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.service_budget import PartnerBudget, ServiceBudget
from taciturn.party.consent.store import ConsentStore
from taciturn.party.identity import identity_of
from taciturn.party.log import Log
from taciturn.party.serving.desk import Desk
from taciturn.party.serving.partner import ScorePartner
from taciturn.party.serving.sources import Preparer, common_ids, source_of
from taciturn.party.serving.standing import StandingModel
from taciturn.party.used_model import UsedModel
from taciturn.party.way import way_to_peer
from taciturn.serve.callers import Callers
from taciturn.serve.scorer import Scorer, ServiceLimits

if TYPE_CHECKING:
    from taciturn.serve.app import ScoringApp


@contextmanager
def partner_of(config: PartyConfig, model: Path, callbacks: Callbacks) -> Iterator[ScorePartner]:
    """Alice's side, ready to run; lets go of everything at the end."""
    keys = peer_keys(config)
    require_begun_in_time(config)
    standing = _standing(config, model)
    standing.require_hidden()
    scores = ScoreBudget.from_config(config, callbacks.announce)
    if scores is None:
        raise ConfigError("this is not Alice's file", where=config.where)
    with ExitStack() as held:
        source = held.enter_context(closing(source_of(config, standing.used.model)))
        store = held.enter_context(closing(scores.store.open()))
        endpoint = held.enter_context(way_to_peer(config, callbacks.announce, keys))
        budget = PartnerBudget(
            ServiceBudget(store), scores, config.serve.rows_per_day, standing.row_answers
        )
        common = common_ids(config)
        yield ScorePartner(config, standing, source, budget, endpoint, callbacks, common)


@contextmanager
def service_of(config: PartyConfig, model: Path, callbacks: Callbacks) -> Iterator[ScoringApp]:
    """Bob's side: the application, and the desk that looks for Alice."""
    keys = peer_keys(config)
    require_begun_in_time(config)
    with explained():
        from taciturn.serve.app import ScoringApp
    standing, serve = _standing(config, model), config.serve
    callers = callers_of(config)
    with ExitStack() as held:
        share = standing.used.model
        source = held.enter_context(closing(source_of(config, share)))
        consent = ConsentStore.from_config(config, callbacks.announce)
        store = held.enter_context(closing(consent.open()))
        endpoint = held.enter_context(way_to_peer(config, callbacks.announce, keys))
        desk = held.enter_context(closing(Desk(config, standing, endpoint, callbacks)))
        preparer = Preparer(share, Dialect.of(config.data).missing)
        limits = ServiceLimits(
            rows_per_day=serve.rows_per_day,
            row_per_day=serve.row_per_day,
            request_rows=serve.request_rows,
            request_seconds=serve.request_seconds,
            most_waiting=serve.most_waiting,
        )
        threshold = standing.used.threshold(model)
        scorer = Scorer(
            standing,
            threshold,
            config.normalisation,
            source,
            preparer,
            desk,
            ServiceBudget(store),
            limits,
            common_ids(config),
        )
        about = {
            "model": share.session,
            "version": hashlib.sha256(model.read_bytes()).hexdigest()[:16],
            "mechanism": share.agreement["mechanism"],
            "meaning": standing.used.meaning,
            "threshold": threshold.probability,
            "columns": [*preparer.columns],
            "request_rows": serve.request_rows,
        }
        held.callback(scorer.close)
        desk.start()
        # Lines of requests are many: to the file alone.
        yield ScoringApp(scorer, callers, about, Log.of(config, silent))


def callers_of(config: PartyConfig) -> Callers:
    """Who may ask, as the file has it."""
    serve = config.serve
    if serve.tokens is None and serve.callers_ca is None:
        raise ConfigError(
            "the file does not say who may ask for scores",
            setting="tokens",
            hint=Hint(
                "write {tokens} and run taciturn serve with {new_token}; or write {callers_ca}",
                tokens="bob.callers.toml",
            ),
        )
    callers = Callers() if serve.tokens is None else Callers.read(config.path(serve.tokens))
    return replace(callers, peers=frozenset(map(str.lower, config.peers)))


def _standing(config: PartyConfig, model: Path) -> StandingModel:
    used = UsedModel.read(config, model)
    return StandingModel(used, str(config.normalisation), identity_of(config))
