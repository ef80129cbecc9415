"""The two sides of a training, and what of a party's file follows from which one it is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from taciturn.errors import CertificateError, ConfigError
from taciturn.party.agreement_file import BOB, AgreedSide, AgreementFile
from taciturn.protocol.handshake import ANY_TABLE, PeerTable
from taciturn.protocol.messages import Role
from taciturn.setting_syntax import Hint
from taciturn.settings.checked import require

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig
    from taciturn.transport.tls import Credentials

# The most columns of Alice's that Bob accepts where their number is not agreed on.
MOST_COLUMNS = 1000


class FeatureRole:
    """Alice, who has columns and no labels: rules for her file."""

    role: ClassVar[Role] = "alice"

    def require_file(self, config: PartyConfig) -> None:
        """Refuse nothing more: what is Bob's to set is marked so in its declaration."""

    def require_link(self, config: PartyConfig) -> None:
        """Insist on a peer, who is Bob, and who listens where there are several Alices."""
        _require_peer(config)
        require(
            config.link.listen is None or not config.parties,
            "with several Alices Bob listens, and each of them connects to him",
            "listen",
            "write {connect} in place of {listen}",
            connect="bob.example:9443",
        )
        require(
            config.link.peer not in config.parties,
            f"{config.link.peer} is one of the Alices, who talk to Bob and not to each other",
            "peer",
            "write the name in Bob's certificate",
        )

    def require_certificate(self, config: PartyConfig, credentials: Credentials) -> None:
        """Insist that one of several Alices has the agreed name and key."""
        # Loaded here: settings are read without it.
        from taciturn.transport.tls import pin_mismatch

        where, pin = str(config.path(config.link.certificate)), config.parties.get(credentials.name)
        if pin is None:
            names = ", ".join(config.parties)
            raise CertificateError(
                f"the certificate names {credentials.name}, and the parties are {names}",
                where=where,
                hint=Hint("name this side's own certificate, or add it to {parties} on all sides"),
            )
        if pin != credentials.fingerprint:
            raise CertificateError(
                f"{credentials.name}: {pin_mismatch(credentials.fingerprint, pin)}",
                where=where,
                hint=Hint(
                    "name this side's own certificate; or have its fingerprint, which taciturn "
                    "certs {show} prints, written under {parties} on all sides"
                ),
            )

    def title(self, config: PartyConfig, name: str) -> str:
        """Her title in an agreement; her name among several."""
        return name if config.parties else self.role

    def agreed_sides(
        self, config: PartyConfig, own_side: AgreedSide, peer_key: str | None
    ) -> tuple[AgreedSide, ...]:
        """The sides of an agreement that she proposes: Bob, and all Alices in their order."""
        pinned = _alices(config)
        alices = {**pinned, own_side.name: own_side}.values() if pinned else [own_side]
        return (AgreedSide(BOB, config.peer, peer_key), *alices)

    def counterparts(self, agreement: AgreementFile) -> tuple[AgreedSide, ...]:
        """The sides of an agreement that she talks to: Bob."""
        return (agreement.bob,)

    def agreed_width(self, config: PartyConfig, columns: int) -> int | None:
        """Number of the only Alice's columns; None among several."""
        return None if config.parties else columns

    def intercept(self, config: PartyConfig) -> bool:
        """Whether the table has an intercept: hers never."""
        return False

    def peer_table(self, config: PartyConfig) -> PeerTable:
        """Requirements on Bob's table."""
        return ANY_TABLE


class LabelRole:
    """Bob, who has the labels: rules for his file."""

    role: ClassVar[Role] = "bob"

    def require_file(self, config: PartyConfig) -> None:
        """Require a label column, and refuse settings of Alice's columns."""
        require(
            config.data.label is not None,
            "Bob's table needs the name of its label column",
            "label",
            "write {label}, say; or is this Alice's file?",
            label="default",
        )
        if config.has_section("woe"):
            raise ConfigError(
                "only Alice's file weighs her columns",
                where=f"{config.where}, [woe]",
                hint="leave the section out here; Alice writes it in her file",
            )

    def require_link(self, config: PartyConfig) -> None:
        """Insist on a peer, or on a port for several Alices."""
        if not config.parties:
            _require_peer(config)
            return
        require(
            config.link.peer is None,
            "Bob's peers are the parties of the agreement, and no single one",
            "peer",
            "leave {peer} out; {parties} has their names",
        )
        require(
            config.link.connect is None,
            "with several Alices Bob listens, and each of them connects to him",
            "connect",
            "write {listen} in place of {connect}",
            listen="0.0.0.0:9443",
        )

    def require_certificate(self, config: PartyConfig, credentials: Credentials) -> None:
        """Refuse Bob a certificate of one of the Alices."""
        if credentials.name in config.parties:
            raise CertificateError(
                f"Bob's certificate names {credentials.name}, which is one of the Alices",
                where=str(config.path(config.link.certificate)),
                hint="give each side its own certificate",
            )

    def title(self, config: PartyConfig, name: str) -> str:
        """His title in an agreement."""
        return self.role

    def agreed_sides(
        self, config: PartyConfig, own_side: AgreedSide, peer_key: str | None
    ) -> tuple[AgreedSide, ...]:
        """The sides of an agreement that he proposes: he, and the only Alice or all of them."""
        return (
            own_side,
            *(_alices(config).values() or [AgreedSide("alice", config.peer, peer_key)]),
        )

    def counterparts(self, agreement: AgreementFile) -> tuple[AgreedSide, ...]:
        """The sides of an agreement that he talks to: the Alices."""
        return agreement.alices

    def agreed_width(self, config: PartyConfig, columns: int) -> int | None:
        """None: his columns are not Alice's."""
        return None

    def intercept(self, config: PartyConfig) -> bool:
        """As it was agreed."""
        return bool(config.agreed["intercept"])

    def peer_table(self, config: PartyConfig) -> PeerTable:
        """As many columns as were agreed, or a bound."""
        return PeerTable(config.alice_columns, MOST_COLUMNS)


def _require_peer(config: PartyConfig) -> None:
    require(config.link.peer is not None, "setting peer: field required", "peer")


def _alices(config: PartyConfig) -> dict[str, AgreedSide]:
    return {name: AgreedSide(name, name, key) for name, key in config.parties.items()}


ROLES: Mapping[Role, FeatureRole | LabelRole] = MappingProxyType(
    {"alice": FeatureRole(), "bob": LabelRole()}
)
