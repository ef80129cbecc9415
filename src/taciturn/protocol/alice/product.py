"""Alice's half of ``X_A^T r`` under Bob's key: the part that revealed gradients share.

::

    Alice                                            Bob
                                                <-   EncryptedResidues   <r>
      MaskedGradient       <X_A^T r + xi>       ->
                                                <-   RevealedGradient    X_A^T r + xi
"""

from __future__ import annotations

from taciturn.arrays import IntArray
from taciturn.crypto.base import PreparedMatrix, PublicKey
from taciturn.protocol.messages import EncryptedResidues, MaskedGradient, RevealedGradient
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.rng import Entropy


def unmasked_product(
    key: PublicKey, matrix: PreparedMatrix, iteration: int, entropy: Entropy
) -> Program[IntArray]:
    """``X^T r`` of one batch in exact integers: the encrypted round trip.

    Masks and obfuscators have a stream for each iteration: a resumed run cannot use one twice, and
    a replay that skips the encryption draws the same masks.
    """
    # Before waiting, not after: Bob is at work on his residues meanwhile.
    mask = key.draw_mask(matrix.rows, entropy.fork(f"masks {iteration}"))
    stream = entropy.fork(f"obfuscators {iteration}")
    key.stock(matrix, mask, stream)
    sent = yield from receive(EncryptedResidues)
    require_turn("EncryptedResidues", sent.iteration, iteration)
    answer = key.masked_product(matrix, sent.residues, mask, stream)
    yield from send(MaskedGradient(iteration, answer))
    revealed = yield from receive(RevealedGradient)
    require_turn("RevealedGradient", revealed.iteration, iteration)
    return key.unmask(revealed.gradient.value, mask)
