"""Header of a recording, for the side that made it."""

from __future__ import annotations

from taciturn.data.tables import FeatureTable
from taciturn.engine.transcript import Transcript
from taciturn.errors import ConfigError, TranscriptError
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import Agreement


def own_header(
    transcript: Transcript, name: str, features: FeatureTable
) -> tuple[Agreement, KeyedEntropy]:
    """Agreement and randomness of a side, from its recording and its training table.

    ``name`` is that of a role, or of one of several Alices.
    """
    header = transcript.header
    try:
        agreement = Agreement.from_mapping(header["agreement"])
        entropy = KeyedEntropy(bytes.fromhex(header["coins"][name]))
        digests = header["features_digest"]
        # Of several Alices each has her own.
        digest = digests[name] if isinstance(digests, dict) else digests
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError):
        raise TranscriptError("the transcript's header is not that of a recorded run") from None
    if digest != features.digest():
        raise TranscriptError(
            "the transcript was recorded with another table of features",
            hint="give the dataset or the file that was used then, unchanged",
        )
    return agreement, entropy
