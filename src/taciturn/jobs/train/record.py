"""Header and footer of a transcript.

The header holds enough to load the same rows and to replay Alice, or each of several; Bob's
randomness is not in it. But a *seed*, where one was given, is: anyone who has it can derive
everything, his key included. The footer holds what the run gave, and a digest of the labels it was
trained with.
"""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.data.label_table import LabelTable
from taciturn.data.split import VerticalData
from taciturn.engine.transcript import Header, Transcript
from taciturn.errors import ConfigError, DataError, TranscriptError
from taciturn.results.reading import read
from taciturn.results.serialise import record_of
from taciturn.results.training import TrainingRun
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Settings
from taciturn.simulation import DataEntropy, RunEntropy


def header_of(
    settings: Settings, agreement: Agreement, entropy: RunEntropy, data: VerticalData
) -> Header:
    """The header of a simulated run."""
    return {
        "kind": "simulation",
        "agreement": agreement.model_dump(),
        "settings": settings.model_dump(),
        "coins": entropy.data.to_dict() | {"alice": entropy.alice.key.hex()},
        "features_digest": data.alice_train.digest(),
        **_of_several(entropy, data),
    }


def _of_several(entropy: RunEntropy, data: VerticalData) -> Header:
    """In the order of their links, several Alices; and the entropy and the table of each."""
    tables = data.alice_train_parts
    if not tables:
        return {}
    keys = {name: entropy.of_alice(name).key.hex() for name in tables}
    return {
        "parties": [*tables],
        "coins": entropy.data.to_dict() | keys,
        "features_digest": {name: table.digest() for name, table in tables.items()},
    }


def footer_of(result: TrainingRun, labels: LabelTable) -> Header:
    """The footer: what the run gave, and which labels it was trained with."""
    return {"record": record_of(result), "labels_digest": labels.digest()}


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A transcript's header and footer, understood."""

    settings: Settings
    entropy: DataEntropy
    result: TrainingRun
    labels_digest: str

    @classmethod
    def from_transcript(cls, transcript: Transcript) -> RecordedRun:
        """Read the header and footer of a transcript; raises ``TranscriptError``."""
        header, footer = transcript.header, transcript.footer
        if header.get("kind") == "party":
            raise TranscriptError(
                "this is a transcript of one party, of a real session",
                setting="party",
                hint=Hint(
                    "give {party} too, the file of the side that recorded it; and {truth} where "
                    "Bob's labels may judge",
                    party="alice.toml",
                    truth="bob.toml",
                ),
            )
        try:
            run = cls(
                settings=Settings.from_mapping(header["settings"]),
                entropy=DataEntropy.from_header(header),
                result=read(TrainingRun, footer["record"]),
                labels_digest=str(footer["labels_digest"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ConfigError, DataError):
            raise TranscriptError(
                "the transcript's header and footer are not those of a recorded run"
            ) from None
        return run

    def require_labels(self, labels: LabelTable) -> None:
        """Refuses other labels than those the run was trained with."""
        if labels.digest() != self.labels_digest:
            raise TranscriptError(
                "the labels are not those of the recorded run",
                hint="give the dataset or the file that was used then, unchanged",
            )
