"""Bob's inputs besides his rows: the labels that a training may use, and his ledger.

Only Bob's process loads this file; Alice's has no labels, no ledger and none of his programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taciturn.data.label_table import LabelTable
from taciturn.data.tables import SideTables
from taciturn.errors import ConfigError
from taciturn.memmap import MEMORY, Scratch
from taciturn.privacy.base import Mechanism
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.bob.inputs import BobInputs, released_labels
from taciturn.protocol.outcome import HeldOut
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig
    from taciturn.party.side_inputs import SideInputs


@dataclass(frozen=True, slots=True, repr=False)
class BobTrainingInputs:
    """Bob's part of a training that is about to begin or to be resumed.

    ``labels`` are those that the training may use: true, or flipped and paid for. ``ledger`` is
    charged before every release.
    """

    labels: LabelTable
    ledger: Ledger

    @classmethod
    def from_config(
        cls,
        config: PartyConfig,
        truth: LabelTable,
        terms: Terms,
        entropy: Entropy,
        spent: dict[str, Any] | None = None,
    ) -> BobTrainingInputs:
        """Flips labels and charges the ledger where the mechanism asks for it.

        ``spent`` is the ledger at the checkpoint; None to begin. Where the budget does not pay for
        the flips, nothing is drawn (BudgetExceeded).
        """
        limits, method = config.privacy, terms.mechanism
        ledger = Ledger(truth.rows, method.assumption, limits.budget, limits.delta)
        respond = None
        if method.label_flips is not None:
            # Loaded here: most mechanisms flip nothing.
            from taciturn.party.consent.label_flips import LabelFlipStore
            from taciturn.party.state_store import state_key

            key, _ = state_key(config)
            respond = LabelFlipStore.from_config(config, method.label_flips, key).release
        labels = released_labels(truth, method, ledger, entropy, respond)
        if spent is not None:
            # In place of the charge for flips, which the checkpoint's account contains already.
            ledger.restore(spent)
        return cls(labels, ledger)

    def inputs(
        self,
        side: SideInputs,
        entropy: Entropy,
        resume: TrainingState | None = None,
        scratch: Scratch = MEMORY,
        *,
        opens_held_out: bool = True,
    ) -> BobInputs[Mechanism]:
        """Everything that Bob's program needs."""
        terms = side.terms
        return BobInputs(
            side.tables.train,
            self.labels,
            terms,
            terms.mechanism,
            self.ledger,
            entropy,
            resume,
            _held_out(side.tables, terms),
            side.peer_table,
            side.table_memory,
            scratch,
            tuple(terms.agreement.parties or (ONLY,)),
            opens_held_out,
        )


def _held_out(tables: SideTables, terms: Terms) -> HeldOut | None:
    if tables.held_out is not None and tables.held_out_labels is not None:
        return HeldOut(tables.held_out, tables.held_out_labels)
    if terms.agreement.evaluate == "epoch":
        raise ConfigError(
            "evaluation after each epoch needs held-out rows, and there are none",
            setting="evaluate",
            hint=Hint("raise {held_out}, or use {evaluate}", evaluate="end"),
        )
    if terms.agreement.share_metrics == "quality":
        raise ConfigError(
            "the metrics that Alice receives are those of held-out rows, and there are none",
            setting="share_metrics",
            hint=Hint("raise {held_out}, or leave {share_metrics} out"),
        )
    return None
