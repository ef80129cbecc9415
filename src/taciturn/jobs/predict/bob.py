"""Bob's side of a prediction, once the rows are found."""

from __future__ import annotations

from taciturn.data.tables import FeatureTable
from taciturn.party.used_model import UsedModel
from taciturn.protocol.bob.circle import gather_circle
from taciturn.protocol.bob.scoring import ask_rows, score_requester
from taciturn.protocol.prediction import Scored, meet
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.together import together
from taciturn.rng import Entropy


def ask(used: UsedModel, table: FeatureTable, entropy: Entropy) -> Program[Scored]:
    """The scores of these rows, from all Alices."""
    name, names = used.name, tuple(used.parties) or (ONLY,)
    hellos = yield from together({peer: meet("bob", name, table) for peer in names})
    if used.parties:
        yield from gather_circle(used.parties, name.canonical(), hellos, entropy)
    weights, widths = used.model.weights, used.widths
    requester = score_requester(weights, *used.shares, used.terms, entropy, names, widths)
    return (yield from ask_rows(requester, table))
