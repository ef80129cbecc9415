"""Every way we know of tampering with a signed agreement, with what its error names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from taciturn.errors import ConfigError, SignatureError
from taciturn.party.agreement_check import statement
from taciturn.party.agreement_file import AgreementFile, Signature
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import signer
from taciturn.party.tables import load_tables
from taciturn.transport.certs import make_certificates
from taciturn.transport.tls import Credentials, day, load_credentials
from taciturn_ops.agreement.propose import proposal_text, propose
from taciturn_ops.agreement.sign import signature_block, signed
from tests.certificates import issue_again
from tests.party.sides import NEWTON, write_config, write_tables

NAMED = '[agreement]\nfile = "agreement.toml"\nsigned = true\n\n'
AGREED = {"mechanism": "sealed", "alice-columns": 6, **NEWTON}


def name_agreement(path: Path) -> None:
    """A party's file names the agreement in place of its settings."""
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"\[agreement\]\n.*?\n\n", NAMED, text, flags=re.DOTALL))


def furnish(folder: Path, **agreement: Any) -> None:
    """Tables, certificates and files of both sides."""
    folder.mkdir(exist_ok=True)
    write_tables(folder, rows=60)
    make_certificates(folder / "certs", ["alice", "bob", "carol"])
    for role in ("alice", "bob"):
        write_config(folder, role, agreement={**AGREED, **agreement})


class Scene:
    """Two sides with a signed agreement, and others who would like to have signed it.

    Args:
        folder: Where the files go.
    """

    def __init__(self, folder: Path) -> None:
        furnish(folder)
        self.folder, self.now = folder, datetime.now(UTC).replace(microsecond=0)
        # Another authority with the same names, and other keys of this one.
        make_certificates(folder / "elsewhere", ["alice", "bob"])
        issue_again(folder / "certs", folder / "others", "bob")
        self.proposal = self._proposed()
        self.other = self._proposed()
        (folder / "plain.toml").write_bytes((folder / "bob.toml").read_bytes())
        for role in ("alice", "bob"):
            name_agreement(folder / f"{role}.toml")
        self.bob, self.alice = self.signature("bob"), self.signature("alice")
        self.text = self.file(self.bob, self.alice)

    def _proposed(self) -> AgreementFile:
        config = PartyConfig.read(self.folder / "bob.toml")
        return propose(
            config,
            load_tables(config),
            "agreement.toml",
            purpose="a pilot",
            valid_until=self.now + timedelta(days=30),
        )

    def credentials(self, name: str, place: str = "certs") -> Credentials:
        folder = self.folder / place
        return load_credentials(folder / f"{name}.pem", folder / f"{name}.key", folder / "ca.pem")

    def signature(
        self,
        name: str,
        place: str = "certs",
        *,
        agreement: AgreementFile | None = None,
        at: timedelta = timedelta(),
    ) -> Signature:
        """What a side signs, perhaps with another key, another agreement or at another time."""
        text = agreement or self.proposal
        side = text.sides[0 if name == "bob" else 1]
        return signed(text, self.credentials(name, place), side, self.now + at)

    def moved(self) -> Signature:
        """Bob's signature of another agreement, with the text of this one."""
        return replace(self.signature("bob", agreement=self.other), text=self.proposal.canonical())

    def by_another(self, name: str, by: str) -> Signature:
        """A signature in one's name by another one's key, with that one's certificate."""
        one, own = self.signature(name), self.credentials(by)
        (shown,) = x509.load_pem_x509_certificates(own.certificate)
        return replace(
            one,
            fingerprint=own.fingerprint,
            chain=(shown.public_bytes(Encoding.DER),),
            value=signer(own).sign(statement(one.digest, one.role, one.name, one.time)),
        )

    def file(self, *signatures: Signature, agreement: AgreementFile | None = None) -> str:
        """The file of an agreement with these signatures."""
        return "\n".join(
            [proposal_text(agreement or self.proposal), *map(signature_block, signatures)]
        )

    def config(self, text: str, role: str = "alice") -> PartyConfig:
        """A side whose file names this text."""
        (self.folder / "agreement.toml").write_text(text, encoding="utf-8")
        return PartyConfig.read(self.folder / f"{role}.toml")

    @property
    def words(self) -> dict[str, object]:
        """What the sentences say of this scene."""
        others = self.credentials("bob", "others").fingerprint
        return {
            "bob": self.bob.fingerprint[:16],
            "other_bob": others[:16],
            "id": self.proposal.id,
            "other_id": self.other.id,
            "ca": self.folder / "certs" / "ca.pem",
            "rows": self.proposal.agreement["rows"],
            "carol": self.credentials("carol").fingerprint[:16],
            "until": day(self.proposal.valid_until),
            "until_full": self.proposal.valid_until.isoformat(),
            "later_full": (self.proposal.valid_until + timedelta(days=365)).isoformat(),
            "tomorrow": day(self.now + timedelta(days=1)),
            "late": day(self.now + timedelta(days=31)),
            "early": day(self.now - timedelta(days=2)),
            "full_other_bob": others,
            "full_bob": self.bob.fingerprint,
        }


@dataclass(frozen=True)
class Tampering:
    """A change, and what its error names.

    Args:
        title: What was changed.
        change: Makes the file of a scene.
        names: What the error names; fields in braces are words of the scene.
        kind: The error.
        after: How much later the file is read.
    """

    title: str
    change: Callable[[Scene], str]
    names: tuple[str, ...]
    kind: type[ConfigError] = SignatureError
    after: timedelta = timedelta()

    def named(self, words: dict[str, object]) -> list[str]:
        return [name.format(**words) for name in self.names]


def put(old: str, new: str, *, last: bool = False) -> Callable[[Scene], str]:
    """Replaces a text of the signed file: where it stands first, or last."""

    def change(scene: Scene) -> str:
        before, after = (text.format(**scene.words) for text in (old, new))
        assert before in scene.text, before
        if last:
            head, _, tail = scene.text.rpartition(before)
            return f"{head}{after}{tail}"
        return scene.text.replace(before, after, 1)

    return change


def later(scene: Scene) -> str:
    until = scene.proposal.valid_until
    moved = until + timedelta(days=365)
    spelled = [f"valid-until = {moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (until, moved)]
    assert spelled[0] in scene.text
    return scene.text.replace(spelled[0], spelled[1])


def without_line(scene: Scene, start: str) -> str:
    lines = scene.text.splitlines(keepends=True)
    at = [line.startswith(start) for line in lines].index(True)
    return "".join(lines[:at] + lines[at + 1 :])


def second(field: str, value: str) -> Callable[[Scene], str]:
    """Another value of a key of Bob's signature."""

    def change(scene: Scene) -> str:
        head, tail = scene.text.split("[[signature]]", 1)
        line = f"{field} = {value.format(**scene.words)}"
        changed, count = re.subn(rf"(?m)^{field} = .*$", lambda _: line, tail, count=1)
        assert count == 1
        return f"{head}[[signature]]{changed}"

    return change


TAMPERINGS = (
    Tampering("a setting", put("passes = 4", "passes = 40"), ("agreement.passes", "40", "4")),
    Tampering(
        "a setting left out",
        lambda scene: without_line(scene, "rows = "),
        ("agreement.rows", "{rows}"),
    ),
    Tampering(
        "a setting more",
        put("[agreement]\n", "[agreement]\nclass-weight = [0.5, 1.0]\n"),
        ("agreement.class-weight", "0.5"),
    ),
    Tampering("its end", later, ("valid-until", "{later_full}", "{until_full}")),
    Tampering(
        "its purpose",
        put('purpose = "a pilot"', 'purpose = "any purpose"'),
        ("purpose", "any purpose", "a pilot"),
    ),
    Tampering(
        "a column of Bob's",
        put("mean_symmetry", "mean_age"),
        ("side.bob.columns", "mean_age", "mean_symmetry"),
    ),
    Tampering(
        "Bob's key",
        put('fingerprint = "{full_bob}"', 'fingerprint = "{full_other_bob}"'),
        ("side.bob.fingerprint", "{full_other_bob}", "{full_bob}"),
    ),
    Tampering(
        "the name of a side",
        put('[side.alice]\nname = "alice"', '[side.alice]\nname = "carol"'),
        ("alice", "carol"),
    ),
    Tampering("a signature removed", lambda scene: scene.file(scene.alice), ("bob",)),
    Tampering(
        "a signature twice", lambda scene: scene.file(scene.bob, scene.alice, scene.bob), ("bob",)
    ),
    Tampering(
        "a signature of another agreement between the same",
        lambda scene: scene.file(scene.signature("bob", agreement=scene.other), scene.alice),
        ("bob", "{other_id}", "{id}"),
    ),
    Tampering(
        "the same, with the text of this one",
        lambda scene: scene.file(scene.moved(), scene.alice),
        ("bob",),
    ),
    Tampering(
        "the same, with the text and the digest of this one",
        lambda scene: scene.file(replace(scene.moved(), digest=scene.bob.digest), scene.alice),
        ("bob",),
    ),
    # A time at which Bob could have signed: only his signature tells that he did not.
    Tampering(
        "the time of a signature",
        lambda scene: scene.file(
            replace(scene.bob, time=scene.now + timedelta(minutes=1)), scene.alice
        ),
        ("bob",),
    ),
    Tampering("the role of a signature", second("role", '"alice"'), ("bob",)),
    Tampering("the digest in a signature", second("digest", f'"{"0" * 64}"'), ("bob",)),
    Tampering("the text in a signature", second("text", '"{{}}"'), ("bob",)),
    Tampering(
        "the fingerprint in a signature",
        second("fingerprint", '"{full_other_bob}"'),
        ("bob", "{other_bob}", "{bob}"),
    ),
    Tampering(
        "a signature by somebody else of the same authority",
        lambda scene: scene.file(scene.bob, scene.alice, scene.signature("carol")),
        ("carol", "alice"),
    ),
    Tampering(
        "a signature by Bob in the role of Alice",
        lambda scene: scene.file(
            signed(scene.proposal, scene.credentials("bob"), scene.proposal.sides[1], scene.now),
            scene.alice,
        ),
        ("bob", "alice"),
    ),
    Tampering(
        "a signature in Bob's name by somebody else",
        lambda scene: scene.file(scene.by_another("bob", "carol"), scene.alice),
        ("bob", "carol"),
    ),
    Tampering(
        "a signature under another authority",
        lambda scene: scene.file(scene.signature("bob", "elsewhere"), scene.alice),
        ("bob", "{ca}"),
    ),
    Tampering(
        "a signature with another key of that name",
        lambda scene: scene.file(scene.signature("bob", "others"), scene.alice),
        ("bob", "{other_bob}", "{bob}"),
    ),
    Tampering(
        "the same, with the fingerprint of the agreed key",
        lambda scene: scene.file(
            replace(scene.signature("bob", "others"), fingerprint=scene.bob.fingerprint),
            scene.alice,
        ),
        ("bob", "{bob}", "{other_bob}"),
    ),
    Tampering(
        "a signature of tomorrow",
        lambda scene: scene.file(scene.signature("bob", at=timedelta(days=1)), scene.alice),
        ("bob", "{tomorrow}"),
    ),
    Tampering(
        "a signature after the end",
        lambda scene: scene.file(scene.signature("bob", at=timedelta(days=31)), scene.alice),
        ("bob", "{late}", "{until}"),
        after=timedelta(days=40),
    ),
    Tampering(
        "a signature of before its certificate",
        lambda scene: scene.file(scene.signature("bob", at=-timedelta(days=2)), scene.alice),
        ("bob", "{early}"),
    ),
    Tampering(
        "the end of the file cut off",
        lambda scene: scene.text[: scene.text.rindex("value = ")],
        ("alice", "value"),
    ),
    Tampering(
        "a key more in a signature",
        second("value", '"AA=="\nnote = "x"'),
        ("bob", "note"),
    ),
    Tampering(
        "a key more",
        put("format = 1\n", 'format = 1\nappendix = "x"\n'),
        ("appendix",),
        ConfigError,
    ),
    Tampering(
        "a key more of a side",
        put("[side.bob]\n", '[side.bob]\ntitle = "x"\n'),
        ("side.bob", "title"),
        ConfigError,
    ),
    Tampering("its format", put("format = 1\n", "format = 2\n"), ("2", "1"), ConfigError),
    Tampering(
        "nothing, after its end",
        lambda scene: scene.text,
        ("{until}",),
        after=timedelta(days=40),
    ),
)
