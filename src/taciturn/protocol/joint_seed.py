"""Joint seed of a session: both parties put in a share, and neither can steer the result.

::

    Alice                                            Bob
                                                <-   BatchCommitment     H(share_B)
      BatchShare           share_A              ->
                                                <-   BatchShare          share_B
      both: seed = H(share_A, share_B)

Bob is bound to his share before he sees hers, and she gives hers before she sees his. The batches
are drawn from it, and where scores or weights are shared also the uniform halves of public keys
(``key_seed``): the owner of a key cannot choose its half, and the peer refuses any other.

**Guarantee.** If one of the two draws her or his share at random, the seed is one of 2^256 at
random, whatever the other does, but for ending the run.

**Assumes.** SHA-256 behaves like a random function: it binds, hides a share of 32 random bytes, and
mixes two shares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from taciturn.arrays import IndexArray
from taciturn.errors import RemoteProtocolError
from taciturn.protocol.messages import (
    BatchCommitment,
    BatchShare,
    PublicBytes,
)
from taciturn.protocol.steps import Program, receive, send
from taciturn.rng import KEY_BYTES, Entropy, KeyedEntropy

_COMMITMENT, _SEED = b"taciturn batch commitment", b"taciturn batch seed"
_KEY = b"taciturn uniform half"


def draw_share(entropy: Entropy) -> PublicBytes:
    """A party's share, from a separate stream.

    >>> from taciturn.rng import KeyedEntropy
    >>> len(draw_share(KeyedEntropy.from_seed(1)))
    32
    """
    return PublicBytes(entropy.fork("batches").token(KEY_BYTES))


def commitment(share: bytes) -> PublicBytes:
    """Commitment to Bob's share before he reveals it."""
    return PublicBytes(hashlib.sha256(_COMMITMENT + share).digest())


def joint_seed(alices: bytes, bobs: bytes) -> bytes:
    """The seed that two shares make.

    >>> joint_seed(bytes(32), bytes(32)) == joint_seed(bytes(32), b"1" * 32)
    False
    """
    return hashlib.sha256(_SEED + alices + bobs).digest()


def key_seed(seed: bytes, owner: str) -> bytes:
    """The seed of the uniform half of a key, or of all keys that an owner makes for one purpose.

    Several keys may have one half in common: it is public, and their secrets are independent.

    >>> key_seed(bytes(32), "alice") == key_seed(bytes(32), "bob")
    False
    """
    return hashlib.sha256(_KEY + seed + owner.encode()).digest()


def block_order(seed: bytes, blocks: Sequence[slice]) -> IndexArray:
    """The rows of blocks that cover a table, drawn from the joint seed; ascending in each block.

    >>> order = block_order(bytes(32), [slice(0, 3), slice(3, 6)])
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4, 5]
    """
    order = KeyedEntropy(seed).fork("blocks").permutation(blocks[-1].stop)
    for place in blocks:
        order[place].sort()
    return order


def seed_of(alice: Entropy, bob: Entropy) -> bytes:
    """The seed on which two parties with this entropy agree."""
    return joint_seed(draw_share(alice), draw_share(bob))


def require_length(value: bytes, kind: str) -> None:
    """Refuses a share or a commitment of another length."""
    if len(value) != KEY_BYTES:
        raise RemoteProtocolError(f"the peer's {kind} has {len(value)} bytes")


def agree_as_alice(entropy: Entropy) -> Program[bytes]:
    """Alice's part in the joint seed."""
    bound = (yield from receive(BatchCommitment)).digest
    require_length(bound, "seed commitment")
    share = draw_share(entropy)
    yield from send(BatchShare(share))
    bob_share = (yield from receive(BatchShare)).share
    require_length(bob_share, "seed share")
    if commitment(bob_share) != bound:
        raise RemoteProtocolError("the peer's seed share does not match its commitment")
    return joint_seed(share, bob_share)


def agree_as_bob(entropy: Entropy) -> Program[bytes]:
    """Bob's part in the joint seed: bound first, told last."""
    share = draw_share(entropy)
    yield from send(BatchCommitment(commitment(share)))
    alice_share = (yield from receive(BatchShare)).share
    require_length(alice_share, "seed share")
    yield from send(BatchShare(share))
    return joint_seed(alice_share, share)
