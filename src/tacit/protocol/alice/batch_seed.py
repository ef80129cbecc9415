"""The public seed of the batches, as Alice receives it."""

from __future__ import annotations

from tacit.errors import RemoteProtocolError
from tacit.protocol.batches import BatchPlan
from tacit.protocol.messages import BatchSeed
from tacit.protocol.steps import Program, receive
from tacit.protocol.terms import Terms
from tacit.rng import KEY_BYTES


def receive_plan(terms: Terms, rows: int) -> Program[BatchPlan]:
    """All batches of the training.

    Raises:
        RemoteProtocolError: The seed has another length.
    """
    message = yield from receive(BatchSeed)
    if len(message.seed) != KEY_BYTES:
        raise RemoteProtocolError(f"the peer's batch seed has {len(message.seed)} bytes")
    return terms.plan(message.seed, rows)
