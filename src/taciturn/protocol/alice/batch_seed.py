"""Alice's part in the seed of the batches. The chart stands in ``taciturn.protocol.batch_seed``."""

from __future__ import annotations

from taciturn.errors import RemoteProtocolError
from taciturn.protocol.batch_seed import commitment, draw_share, joint_seed, require_length
from taciturn.protocol.messages import BatchCommitment, BatchShare
from taciturn.protocol.steps import Program, receive, send
from taciturn.rng import Entropy


def agree_seed(entropy: Entropy) -> Program[bytes]:
    """The joint seed of the batches, to which Alice contributes."""
    bound = (yield from receive(BatchCommitment)).digest
    require_length(bound, "seed commitment")
    share = draw_share(entropy)
    yield from send(BatchShare(share))
    theirs = (yield from receive(BatchShare)).share
    require_length(theirs, "seed share")
    if commitment(theirs) != bound:
        raise RemoteProtocolError("the peer's seed share does not match its commitment")
    return joint_seed(share, theirs)
