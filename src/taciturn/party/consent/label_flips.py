"""The flipped labels of ``label-rr``: drawn once for each row, and given again in every training.

A label's guarantee is that of *one* answer. Labels that a second training flips anew give a second
answer, and the epsilons add up. So the store holds the answer of every row that was ever asked for;
further rows are drawn and added.

A set of answers is bound to its label: it names the column, and has for each row a keyed digest of
the column, the id and the true label, of 16 bits. Another label of the same people, or a label that
was changed, is refused; else it would be given the answers of the first. Without the key, which is
elsewhere, the store tells no true label and no flip.

**Guarantee.** A row gets one answer for as long as the store is kept. The answer is on the disk
before it is handed out. A row whose label is not the one that was answered for is noticed but for
one case in 65,536.

**Assumes.** What ``store`` assumes. Under another key than the set's only the column's name can be
compared: such a set is refused unless Bob names the new key (``[privacy] accept-flips-key``), and
its labels are bound anew then.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from taciturn.data.label_table import LabelTable
from taciturn.errors import FileError, PrivacyError
from taciturn.files import canonical_json
from taciturn.job_registry import Namespace
from taciturn.party.config import PartyConfig
from taciturn.party.consent.label_budget import key_name
from taciturn.party.consent.records import Account, Records, Values
from taciturn.party.consent.store import ConsentStore
from taciturn.privacy.base import LabelFlips
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

_FACT, _SET = "fact", "set"


@dataclass(frozen=True, slots=True, repr=False)
class LabelFlipStore:
    """A set of flipped labels, created when it is first asked for labels.

    ``key`` is 32 secret bytes, kept apart from the store; empty to look at answers without
    comparing labels. ``accepted_key`` is the name of the one key that may replace the set's.
    """

    # It has no limit of its own: a set is paid for once, from the label budget.
    namespace: ClassVar[Namespace] = Namespace("label-flips", "flipped labels")

    store: ConsentStore
    flips: LabelFlips
    column: str
    key: bytes
    set_name: str = ""
    accepted_key: str | None = None

    @classmethod
    def from_config(cls, config: PartyConfig, flips: LabelFlips, key: bytes) -> LabelFlipStore:
        """The set that a party's file names."""
        limits, label = config.privacy, config.data.label or ""
        store = ConsentStore.from_config(config)
        return cls(store, flips, label, key, limits.flip_set, limits.accept_flips_key)

    def release(self, labels: LabelTable, entropy: Entropy) -> LabelTable:
        """The released labels of these rows: those of the set, and fresh ones for new rows.

        The true labels of known rows are only compared. A set of another epsilon, another label or
        a key that is not accepted is refused (PrivacyError).
        """
        digests = self.digests(labels)
        with self.store.writing() as records:
            account = self._account(records)
            self._bind(account, entropy)
            tags = account.tags(labels.ids.series)
            before = account.values(tags)
            known = before != 0
            bound = _digests_in(before)
            changed = int(np.count_nonzero(known & (bound != 0) & (bound != digests)))
            if changed:
                raise PrivacyError(
                    f"{changed:,} of {labels.rows:,} labels in column {self.column!r} are not "
                    "those that were flipped",
                    where=str(self.store.path),
                    hint=Hint(
                        "another label needs another set ({flip_set}), and its epsilon comes "
                        "on top; labels that were corrected since must be put back: their answers "
                        "stay"
                    ),
                )
            answers = _answers_in(before)
            if not known.all():
                new = np.flatnonzero(~known)
                answers[new] = self.flips.respond(labels.take(new), entropy).values
            after = 1 + answers + 2 * digests
            account.write_values(tags[after != before], after[after != before])
        return _table(labels, answers)

    def recall(self, labels: LabelTable) -> LabelTable:
        """The labels that these rows were answered with; nothing is drawn or written."""
        with self.store.reading() as records:
            account = self._account(records)
            self._require_fit(account)
            values = account.values(account.tags(labels.ids.series))
        if lacking := int(np.count_nonzero(values == 0)):
            raise FileError(
                f"there is no flipped label for {lacking:,} of {labels.rows:,} rows",
                where=str(self.store.path),
                hint="give the file with which the labels were flipped then",
            )
        return _table(labels, _answers_in(values))

    def name(self) -> str:
        """Name that tells these answers from those of another set; empty where there are none."""
        with self.store.reading() as records:
            facts = self._require_fit(self._account(records))
        return "" if facts is None else str(facts["name"])

    def rows(self) -> int:
        """Number of rows with an answer."""
        with self.store.reading() as records:
            return self._account(records).row_count

    def digests(self, labels: LabelTable) -> Values:
        """A short keyed digest of each row's id and true label; none is 0."""
        head = len(self.column.encode()).to_bytes(8, "big") + self.column.encode()
        keyed = hashlib.blake2b(head, digest_size=2, key=self.key, person=b"true label")
        digests = np.empty(labels.rows, np.int64)
        rows = zip(labels.ids.series, labels.values.tolist(), strict=True)
        for place, (name, label) in enumerate(rows):
            hasher = keyed.copy()
            hasher.update(bytes([label]) + name.encode())
            digests[place] = 1 + int.from_bytes(hasher.digest(), "big")
        return digests

    def _account(self, records: Records) -> Account:
        return records.account(self.namespace.name, self.set_name)

    def _bind(self, account: Account, entropy: Entropy) -> None:
        """Writes what the answers belong to: in a new set, and where a new key was accepted."""
        facts, key = self._require_fit(account), key_name(self.key)
        if facts is not None and facts["key"] == key:
            return
        # Without the former key labels cannot be compared; the answers still stand.
        tags, values = account.rows()
        account.write_values(tags, 1 + _answers_in(values))
        if facts is None:
            name = entropy.fork("name of the set").words(1)[0].tobytes().hex()
            facts = {"name": name, "epsilon": self.flips.epsilon, "column": self.column}
        account.write_entry(_FACT, _SET, canonical_json({**facts, "key": key}))

    def _require_fit(self, account: Account) -> dict[str, Any] | None:
        """What the answers belong to; None in a new set, PrivacyError in one of another label."""
        text = account.entry(_FACT, _SET)
        if text is None:
            return None
        facts: dict[str, Any] = json.loads(text)
        if facts["column"] != self.column:
            raise PrivacyError(
                f"the flipped labels are of the column {facts['column']!r}, not of {self.column!r}",
                where=str(self.store.path),
                hint=Hint(
                    "another label needs another set ({flip_set}), and its epsilon comes on "
                    "top; give a column that was renamed its former name"
                ),
            )
        key = key_name(self.key)
        if self.key and key not in (facts["key"], self.accepted_key):
            raise PrivacyError(
                "the labels were flipped under another state key, so that nobody can tell whether "
                "the answers are of these labels",
                where=str(self.store.path),
                setting="accept_flips_key",
                hint=Hint(
                    "restore the key ([state] key); if it is lost and the labels are those of "
                    "then, write {accept_flips_key} in [privacy]",
                    accept_flips_key=key,
                ),
            )
        if facts["epsilon"] != self.flips.epsilon:
            raise PrivacyError(
                f"the labels were flipped with epsilon {facts['epsilon']:g}; flipping them again "
                f"with {self.flips.epsilon:g} would add to that",
                where=str(self.store.path),
                hint=Hint(
                    "use {epsilon}; or another {flip_set}, and the epsilons add up",
                    epsilon=facts["epsilon"],
                ),
            )
        return facts


# The value of a row is 1 + its answer + twice the digest, which is 0 where it is not known.
def _answers_in(values: Values) -> Values:
    return (values - 1) & 1


def _digests_in(values: Values) -> Values:
    return (values - 1) >> 1


def _table(labels: LabelTable, answers: Values) -> LabelTable:
    return LabelTable.from_data(answers.astype(np.int8), ids=labels.ids)
