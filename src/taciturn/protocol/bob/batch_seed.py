"""Bob's part in the seed of the batches. The chart stands in ``taciturn.protocol.batch_seed``."""

from __future__ import annotations

from taciturn.protocol.batch_seed import commitment, draw_share, joint_seed, require_length
from taciturn.protocol.messages import BatchCommitment, BatchShare
from taciturn.protocol.steps import Program, receive, send
from taciturn.rng import Entropy


def agree_seed(entropy: Entropy) -> Program[bytes]:
    """The seed to which he contributes: bound first, told last."""
    share = draw_share(entropy)
    yield from send(BatchCommitment(commitment(share)))
    theirs = (yield from receive(BatchShare)).share
    require_length(theirs, "seed share")
    yield from send(BatchShare(share))
    return joint_seed(theirs, share)
