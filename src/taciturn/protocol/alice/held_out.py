"""Alice's scores of held-out rows at the end of each epoch, where that is agreed.

::

    Alice                                            Bob
      PartialScores        X_A w_A, held out    ->
                                                <-   EpochVerdict        continue, or stop
                                                     (only with agreed patience)

Bob alone learns how good the model is. With patience he ends the training once the held-out loss
has not fallen for that number of epochs. Alice sees when he does, and that depends on labels: it is
a release without protection, and the ledger says so.
"""

from __future__ import annotations

from taciturn.arrays import FloatArray
from taciturn.errors import RemoteProtocolError
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.masks import NO_MASKS, ZeroSum
from taciturn.protocol.messages import EpochVerdict
from taciturn.protocol.scores import scores_message
from taciturn.protocol.steps import Program, receive_at, send


def report(
    inputs: AliceInputs, weights: FloatArray, iteration: int, masks: ZeroSum = NO_MASKS
) -> Program[bool]:
    """Sends her noisy scores at the end of an epoch, where that is agreed; True where Bob stops."""
    held_out = inputs.scored_each_epoch
    if held_out is None:
        return False
    grid, message_masks = inputs.terms.score_grid, masks.fork(f"held out {iteration}")
    noise = ScoreNoise.for_pass(inputs.noise_key, iteration)
    scores = held_out.values @ weights + noise.reals(held_out.ids, held_out.values, grid)
    yield from send(scores_message(iteration, scores, grid, message_masks))
    if inputs.terms.agreement.patience is None:
        return False
    verdict = yield from receive_at(EpochVerdict, iteration)
    if verdict.stop.value.tolist() not in ([0], [1]):
        raise RemoteProtocolError("the peer's verdict is neither to stop nor to continue")
    return bool(verdict.stop.value[0])
