"""A party's share of a trained model, in a file: weights, preparation, provenance.

The file is JSON, versioned, and holds no labels and nothing of the other side but what both know.
Weights are written so that reading gives the same bits. A share alone predicts nothing: scores need
both sides.

It holds a digest of all the rest, which shows a file that was cut or changed by accident. That is
no signature: anyone who changes a file on purpose makes it anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.prepare import Preparation
from taciturn.data.tables import INTERCEPT
from taciturn.errors import ColumnError, ConfigError, DataError, FileError
from taciturn.families.base import Family, Response
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.file_kinds import file_kind
from taciturn.files import canonical_json, finite_json, write_private
from taciturn.numerics.metrics import log_odds_shift
from taciturn.numerics.threshold import Threshold, even_odds
from taciturn.numerics.whitening import Whitening, centring_offset
from taciturn.results.reading import read
from taciturn.version import MODEL_VERSION, __version__

FORMAT = "taciturn-model"
_MOST_SHARE = 1 << 62
_NOISE_KEY = "[0-9a-f]{64}"
_SCALES = ("modulus_bits", "feature_bits", "residue_bits", "decay")
_TEXTS, _RECORDS = (
    ("session", "data_digest", "taciturn", "name", "noise_key"),
    ("agreement", "metrics", "ledger", "scales", "parties", "study", "response"),
)


@dataclass(frozen=True, slots=True)
class ModelShare:
    """One side of a model.

    Where weights are shared, Alice has no ``weights``, and each side has its ``share`` of hers; Bob
    has his own, unless both have a ``bob_share`` of his. ``scales`` are the public scales of the
    shares. No value of Alice's training table exceeded two to the ``magnitude_bits``, of Bob's to
    the ``bob_bits``; both sides know these. ``whitening`` has the coordinates of this side's own
    weights, where they are shared, as ``Whitening.to_numbers`` gives them; none where they are
    those of its columns. ``means`` are those of its training columns, 0 of an intercept, where they
    were centred; ``weights`` are those of columns as they are, and what centring adds to a score
    beside an intercept of this side is the ``offset``.

    ``noise_key`` is at Alice the key of the noise on her scores, 32 bytes in hexadecimal: its
    holder can subtract the noise from the scores that Bob has.

    ``response`` has, at Bob and for other families than ``binomial``, the coordinates of scores: a
    linear predictor is the location plus the scale times a score.

    ``parties`` are several Alices by name, each with the number of her columns: Bob's share holds
    those of their weights one after the other. ``study`` says which of the models of a study it is,
    with their number, the values of the settings that vary, and whether it was taken into use.
    """

    role: str
    columns: tuple[str, ...]
    weights: FloatArray = field(repr=False)
    preparation: Preparation = field(repr=False)
    agreement: dict[str, Any]
    session: str
    rows: int
    data_digest: str
    metrics: dict[str, Any] = field(default_factory=dict)
    ledger: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    share: tuple[int, ...] = field(default=(), repr=False)
    bob_share: tuple[int, ...] = field(default=(), repr=False)
    bob_bits: int = 0
    scales: dict[str, Any] = field(default_factory=dict)
    magnitude_bits: int = 0
    whitening: tuple[float, ...] = field(default=(), repr=False)
    means: tuple[float, ...] = field(default=(), repr=False)
    noise_key: str = field(default="", repr=False)
    response: dict[str, float] = field(default_factory=dict)
    name: str = ""
    parties: dict[str, int] = field(default_factory=dict)
    study: dict[str, Any] = field(default_factory=dict)
    taciturn: str = __version__

    @property
    def sealed(self) -> bool:
        """Whether Alice's weights are shared between the two sides."""
        return bool(self.scales)

    @property
    def is_bob(self) -> bool:
        """Whether it is the share of the side with the labels."""
        return self.role == "bob"

    @property
    def own_share(self) -> tuple[int, ...]:
        """This side's share of its own weights; empty if it has the weights themselves."""
        return self.bob_share if self.is_bob else self.share

    @property
    def title(self) -> str:
        """Name of one of several Alices, or the role."""
        return self.name or self.role

    def share_with(self, alice: str) -> tuple[int, ...]:
        """Bob's share of one Alice's weights; her name is empty where there is one Alice."""
        if not self.parties:
            return self.share
        start = sum(self.parties[name] for name in [*self.parties][: [*self.parties].index(alice)])
        return self.share[start : start + self.parties[alice]]

    @property
    def intercept(self) -> bool:
        """Whether the last column is the intercept."""
        return self.columns[-1:] == (INTERCEPT,)

    @property
    def offset(self) -> float:
        """Constant that centring adds to this side's scores; 0 if its intercept includes it."""
        if self.intercept or not self.means or not len(self.weights):
            return 0.0
        return centring_offset(self.weights, np.array(self.means))

    @property
    def coordinates(self) -> Whitening | None:
        """Coordinates of this side's own weights, where they are shared and not its columns'."""
        if not self.whitening:
            return None
        return Whitening.from_numbers(
            self.whitening, len(self.columns), self.means, int(self.intercept)
        )

    @property
    def family(self) -> Family:
        """The family of the labels."""
        return FAMILIES[str(self.agreement.get("family", BINOMIAL))]

    @property
    def coordinates_of_scores(self) -> Response:
        """Coordinates of scores, which Bob has."""
        return Response(**self.response)

    @property
    def log_odds_shift(self) -> float:
        """Shift of the scores from the label's log-odds by class weights."""
        weights = self.agreement.get("class_weight")
        if weights is None:
            return 0.0
        try:
            zero, one = map(float, weights)
            return log_odds_shift((zero, one))
        except (TypeError, ValueError):
            raise ConfigError("the model's class weights are not two numbers") from None

    @property
    def threshold(self) -> Threshold:
        """Threshold of a one: as the training chose, and else even odds."""
        if self.metrics.get("threshold") is None:
            return even_odds(self.log_odds_shift)
        try:
            return read(Threshold, self.metrics["threshold"])
        except DataError as problem:
            raise ConfigError(f"the model's threshold cannot be read: {problem.message}") from None

    @property
    def agreement_digest(self) -> str:
        """SHA-256 over the canonical JSON of the agreement."""
        return hashlib.sha256(canonical_json(finite_json(self.agreement)).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write the file atomically, readable by its owner only."""
        numbers = {"weights": self.weights.tolist(), "preparation": self.preparation.to_json()}
        _write(path, {**asdict(self), **numbers})

    @classmethod
    def load(cls, path: Path) -> ModelShare:
        """Read a file."""
        record = _parsed(path)
        try:
            share = cls(
                weights=np.array(record.pop("weights"), dtype=np.float64),
                columns=tuple(record.pop("columns")),
                preparation=Preparation.from_json(record.pop("preparation")),
                notes=tuple(record.pop("notes")),
                share=tuple(record.pop("share")),
                bob_share=tuple(record.pop("bob_share")),
                whitening=tuple(record.pop("whitening")),
                means=tuple(record.pop("means")),
                **record,
            )
        except (KeyError, TypeError, ValueError, OverflowError, ConfigError, ColumnError):
            raise FileError(
                "the model file lacks a key, or has an unknown one", where=str(path)
            ) from None
        _require_sound(share, path)
        return share


def add_metrics(path: Path, session: str, metrics: Mapping[str, Any]) -> bool:
    """Add metrics to a model's file; False where it is another session's, and stays as it is."""
    record = _parsed(path)
    if record.get("session") != session:
        return False
    _write(path, {**record, "metrics": {**record["metrics"], **metrics}})
    return True


def _write(path: Path, record: Mapping[str, Any]) -> None:
    values = finite_json({"format": FORMAT, "version": MODEL_VERSION, **record})
    values["digest"] = hashlib.sha256(canonical_json(values).encode()).hexdigest()
    write_private(path, json.dumps(values, indent=1, allow_nan=False) + "\n")


def _parsed(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise FileError(
            f"the model cannot be read: {problem.strerror}",
            where=str(path),
            hint="taciturn party writes it at the end of a training",
        ) from None
    except (ValueError, RecursionError):
        kind = file_kind(path)
        if kind not in ("", "a model file"):
            raise not_a_model(path, kind) from None
        raise FileError(
            "this is not a whole model file",
            where=str(path),
            hint="take a whole copy of it, or train again",
        ) from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise not_a_model(path, file_kind(path))
    version = record.get("version")
    if type(version) is not int or version != MODEL_VERSION:
        raise FileError(
            f"the model is of version {str(version)[:20]}; this program reads {MODEL_VERSION}",
            where=str(path),
            hint="train again, or use it with the taciturn that wrote it",
        )
    _require_digest(record, path)
    del record["format"], record["version"]
    return record


def not_a_model(path: Path, kind: str) -> FileError:
    """Error of a file of another kind."""
    return FileError(
        f"this is {kind or 'another file'}, and not a model of taciturn",
        where=str(path),
        hint="name the file that taciturn party wrote ([output] model)",
    )


def _require_digest(record: dict[str, Any], path: Path) -> None:
    """Take the digest out of the object and compare it with the rest."""
    said = record.pop("digest", None)
    try:
        fits = hashlib.sha256(canonical_json(record).encode()).hexdigest() == said
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise FileError(
            "the model file was changed after it was written: its digest does not fit",
            where=str(path),
            hint="take a whole copy of it, or train again",
        )


def _require_sound(share: ModelShare, path: Path) -> None:
    expected = share.preparation.columns
    texts = (*(getattr(share, name) for name in _TEXTS), *share.columns, *share.notes)
    wrong = (
        share.role not in ("alice", "bob")
        or not all(isinstance(text, str) for text in texts)
        or not all(isinstance(getattr(share, name), dict) for name in _RECORDS)
        or not all(
            type(number) is int
            for number in (share.rows, share.magnitude_bits, share.bob_bits, *_shares(share))
        )
        or not all(abs(number) < _MOST_SHARE for number in _shares(share))
        or not _scales_sound(share.scales)
        or str(share.agreement.get("family", BINOMIAL)) not in FAMILIES
        or not _response_sound(share.response)
    )
    if wrong:
        raise FileError("a value in the model file has the wrong type", where=str(path))
    if share.columns not in (expected, (*expected, INTERCEPT)):
        raise FileError("the model's columns are not those of its preparation", where=str(path))
    if not re.fullmatch("" if share.is_bob else _NOISE_KEY, share.noise_key):
        raise FileError("the model's key of the noise on scores is not one", where=str(path))
    away = share.sealed and len(share.own_share) == len(share.columns) and not len(share.weights)
    if share.weights.shape != (len(share.columns),) and not away:
        raise FileError("the model's weights do not fit its columns", where=str(path))
    if share.sealed and not share.is_bob and len(share.share) != len(share.columns):
        raise FileError("the model's share does not fit its columns", where=str(path))
    _require_parties(share, path)
    count = len(share.columns)
    numbers = share.whitening
    if numbers and (
        len(numbers) != count * (count + 1) // 2
        or not all(isinstance(number, float) and math.isfinite(number) for number in numbers)
    ):
        raise FileError("the model's whitening does not fit its columns", where=str(path))
    if share.means and (
        len(share.means) != count
        or not all(isinstance(mean, float) and math.isfinite(mean) for mean in share.means)
    ):
        raise FileError("the model's means do not fit its columns", where=str(path))
    if not np.isfinite(share.weights).all():
        raise FileError("a weight of the model is not a finite number", where=str(path))


def _require_parties(share: ModelShare, path: Path) -> None:
    widths = share.parties.values()
    sound = all(type(width) is int and width > 0 for width in widths)
    if share.parties and not share.is_bob:
        sound = sound and share.parties.get(share.name) == len(share.columns)
    elif share.parties and share.sealed:
        sound = sound and sum(widths) == len(share.share)
    if not sound or bool(share.name) != (bool(share.parties) and not share.is_bob):
        raise FileError("the model's parties do not fit its share", where=str(path))


def _shares(share: ModelShare) -> tuple[int, ...]:
    return (*share.share, *share.bob_share)


def _scales_sound(scales: dict[str, Any]) -> bool:
    if not scales:
        return True
    if set(scales) != set(_SCALES):
        return False
    *bits, decay = (scales[name] for name in _SCALES)
    whole = all(type(exponent) is int and 0 <= exponent < 64 for exponent in bits)
    return whole and isinstance(decay, float | int) and math.isfinite(decay)


def _response_sound(response: dict[str, Any]) -> bool:
    numbers = all(isinstance(one, float) and math.isfinite(one) for one in response.values())
    return numbers and {*response} in (set(), {"location", "scale"})
