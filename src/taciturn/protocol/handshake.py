"""The first words of every conversation: the same on both sides.

Each party says its version, its role, its terms (the settings that must agree, in canonical form),
how many rows it has and the digest of their ids in order, which on the wire is bound to the role: a
peer that does not know the ids cannot just send back what it heard. A difference ends the run with
an error that names it. Two facts about a party's features are sent: how many columns there are,
which bounds the length of an answer, and ``magnitude_bits``, the smallest b such that no value
exceeds 2^b in size, which sets the width of the fixed-point products.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace

from taciturn.data.tables import FeatureTable
from taciturn.errors import AgreementError, RemoteProtocolError
from taciturn.files import canonical_json
from taciturn.protocol.messages import MAX_COLUMNS, MAX_MAGNITUDE_BITS, Hello, Role
from taciturn.protocol.steps import Program, receive, send
from taciturn.protocol.terms import Terms
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import differences
from taciturn.version import PROTOCOL_VERSION

_ALIGN = "both sides must use the same ids, in the same spelling: run taciturn align on both first"


@dataclass(frozen=True, slots=True)
class PeerTable:
    """Requirements on the peer's table.

    The work of an answer grows with the columns that the peer claims, and with it what its time
    could tell: a real training bounds them.

    ``columns`` is how many there must be, or None where that is not agreed on; then
    ``most_columns`` is the most that are accepted.
    """

    columns: int | None = None
    most_columns: int = MAX_COLUMNS

    def require(self, hello: Hello) -> None:
        """Compares it with the peer's greeting."""
        self.require_total(hello.columns, "the peer's table has")
        if self.columns is None and hello.columns > self.most_columns:
            raise AgreementError(
                f"the peer's table has {hello.columns:,} columns, and at most "
                f"{self.most_columns:,} are accepted where alice-columns is not agreed on",
                setting="alice_columns",
                hint=Hint("agree on {alice_columns} on both sides", alice_columns=hello.columns),
            )

    def require_total(self, columns: int, having: str = "the parties' tables have") -> None:
        """Compares it with the columns of all Alices together."""
        if self.columns is not None and columns != self.columns:
            raise AgreementError(
                f"alice-columns is {self.columns}, and {having} {columns}",
                setting="alice_columns",
                hint=Hint("agree on {alice_columns} on both sides", alice_columns=columns),
            )


ANY_TABLE = PeerTable()


def greeting(role: Role, terms: str, features: FeatureTable, magnitude_bits: int = 0) -> Hello:
    """A party's greeting; ``magnitude_bits`` is the size of its values, where that is needed."""
    return Hello(
        version=PROTOCOL_VERSION,
        role=role,
        terms=terms,
        rows=features.rows,
        ids_digest=features.ids.digest(),
        magnitude_bits=magnitude_bits,
        columns=len(features.columns),
    )


def wire_form(hello: Hello) -> Hello:
    """Greeting as sent: the digest of the ids depends on the sender's role."""
    text = f"taciturn ids of {hello.role}: {hello.ids_digest}"
    return replace(hello, ids_digest=hashlib.sha256(text.encode()).hexdigest())


def same_ids(hello: Hello, peer_hello: Hello) -> bool:
    """Whether the peer's greeting is about this side's rows."""
    return peer_hello.ids_digest == wire_form(replace(hello, role=peer_hello.role)).ids_digest


def shake_hands(hello: Hello, rows: str = "rows") -> Program[Hello]:
    """Exchanges and compares greetings; returns the peer's, or raises ``AgreementError``.

    ``rows`` says in an error which rows they are about.
    """
    yield from send(wire_form(hello))
    peer_hello = yield from receive(Hello)
    compare(hello, peer_hello, rows)
    return peer_hello


def open_training(
    role: Role,
    terms: Terms,
    features: FeatureTable,
    magnitude_bits: int = 0,
    peer: PeerTable = ANY_TABLE,
) -> Program[Hello]:
    """Exchanges and compares the greetings of a training; returns the peer's.

    ``magnitude_bits`` is the size of the values, where the conversation needs it. Raises
    ``AgreementError`` where versions, roles, terms, rows or columns differ.
    """
    own_hello = greeting(role, terms.agreement.canonical(), features, magnitude_bits)
    peer_hello = yield from shake_hands(own_hello, "training rows")
    peer.require(peer_hello)
    return peer_hello


def group_terms(terms: Terms, features: FeatureTable) -> str:
    """Text that several Alices sign with the list of their keys: settings, rows and version.

    Each compares them with Bob; by the signatures all know that they are the same everywhere.
    """
    agreed = {
        "agreement": terms.agreement.canonical(),
        "ids": features.ids.digest(),
        "purpose": "train",
        "version": PROTOCOL_VERSION,
    }
    return canonical_json(agreed)


def compare(hello: Hello, peer_hello: Hello, rows: str = "rows") -> None:
    """Compares this side's greeting with the peer's; ``AgreementError`` where they differ."""
    # The version first: what the other fields mean depends on it.
    if peer_hello.version != hello.version:
        raise AgreementError(
            f"the peer speaks protocol {peer_hello.version}, this side {hello.version}",
            hint="install the same version of taciturn on both sides",
        )
    require_roles(hello.role, peer_hello.role)
    if peer_hello.terms != hello.terms and not _follow_from_rows(hello, peer_hello):
        named = differences(hello.terms, peer_hello.terms) or ["spelled differently"]
        raise AgreementError(
            "the settings of the two sides differ: " + "; ".join(named),
            hint="write the same [agreement] in both files: one side copies the other's",
        )
    # Before the digests, which would differ as well: a count says more.
    if peer_hello.rows != hello.rows:
        raise AgreementError(
            f"this side has {hello.rows:,} {rows}, the peer {peer_hello.rows:,}",
            hint=_ALIGN,
        )
    if not same_ids(hello, peer_hello):
        raise AgreementError(
            f"the ids of the {rows} differ between the two sides",
            hint=_ALIGN,
        )
    if not 0 <= peer_hello.magnitude_bits <= MAX_MAGNITUDE_BITS:
        raise RemoteProtocolError(
            f"the peer claims features of {peer_hello.magnitude_bits} bits",
            hint="scale or clip the features",
        )
    if not 0 <= peer_hello.columns <= MAX_COLUMNS:
        raise RemoteProtocolError(f"the peer claims a table of {peer_hello.columns} columns")


# What follows from the number of rows, where it is not given.
_BY_ROWS = ("l2", "passes", "score_range")


def _follow_from_rows(hello: Hello, peer_hello: Hello) -> bool:
    """Whether the settings differ by nothing but the defaults of two numbers of rows."""
    try:
        terms, peer_terms = (json.loads(one.terms) for one in (hello, peer_hello))
        return (
            hello.rows != peer_hello.rows
            and terms | dict.fromkeys(_BY_ROWS) == peer_terms | dict.fromkeys(_BY_ROWS)
            and math.isclose(terms["l2"] * hello.rows, 1.0)
            and math.isclose(peer_terms["l2"] * peer_hello.rows, 1.0)
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def require_roles(role: str, peer_role: str) -> None:
    """Refuses a peer that does not have the other role."""
    if {role, peer_role} != {"alice", "bob"}:
        raise AgreementError(
            f"both sides are {role}"
            if role == peer_role
            else "the peer's role is neither alice nor bob",
            hint="one side holds the labels (bob), the other only features (alice)",
        )
