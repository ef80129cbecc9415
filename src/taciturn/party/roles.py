"""What a party's file may say, and whom it names, by the side whose file it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from taciturn.errors import CertificateError, ConfigError
from taciturn.faces import Hint
from taciturn.party.agreement_file import BOB, AgreedSide, AgreementFile
from taciturn.protocol.handshake import ANY_TABLE, PeerTable
from taciturn.protocol.messages import Role

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig
    from taciturn.transport.tls import Credentials

# The most columns of Alice's that Bob accepts where their number is not agreed on.
MOST_COLUMNS = 1000


class PartyRole(ABC):
    """One of the two sides of a training; ``role`` is its name."""

    role: ClassVar[Role]

    @abstractmethod
    def require_file(self, config: PartyConfig) -> None:
        """Refuse a file that lacks what the side must say, or says what is the other's."""

    @abstractmethod
    def require_link(self, config: PartyConfig) -> None:
        """Insist that the link fits the number of Alices."""

    @abstractmethod
    def require_certificate(self, config: PartyConfig, own: Credentials) -> None:
        """Insist that the side's certificate is the one that several parties have agreed on."""

    @abstractmethod
    def title(self, config: PartyConfig, name: str) -> str:
        """What an agreement calls the side whose certificate has this name."""

    @abstractmethod
    def agreed_sides(
        self, config: PartyConfig, own: AgreedSide, peer_key: str | None
    ) -> tuple[AgreedSide, ...]:
        """All sides of an agreement that this side proposes."""

    @abstractmethod
    def counterparts(self, agreement: AgreementFile) -> tuple[AgreedSide, ...]:
        """The sides of an agreement that this one talks to."""

    @abstractmethod
    def agreed_width(self, config: PartyConfig, columns: int) -> int | None:
        """How many columns Alice has, where this side's own table of ``columns`` decides it."""

    def intercept(self, config: PartyConfig) -> bool:
        """Whether the side's table has an intercept."""
        return False

    def peer_table(self, config: PartyConfig) -> PeerTable:
        """What the side takes the peer's table to be."""
        return ANY_TABLE


class FeatureRole(PartyRole):
    """Alice, who has columns and no labels."""

    role: ClassVar[Role] = "alice"

    def require_file(self, config: PartyConfig) -> None:
        """Nothing: what is Bob's to set is marked so in the declarations."""

    def require_link(self, config: PartyConfig) -> None:
        """Insist on a peer, who is Bob, and who listens where there are several Alices."""
        _require_peer(config)
        if config.link.listen is not None and config.parties:
            raise ConfigError(
                "with several Alices Bob listens, and each of them connects to him",
                setting="listen",
                hint=Hint("write {connect} in place of {listen}", connect="bob.example:9443"),
            )
        if config.link.peer in config.parties:
            raise ConfigError(
                f"{config.link.peer} is one of the Alices, who talk to Bob and not to each other",
                setting="peer",
                hint="write the name in Bob's certificate",
            )

    def require_certificate(self, config: PartyConfig, own: Credentials) -> None:
        """Insist that one of several Alices has the agreed name and key."""
        # Loaded here: settings are read without it.
        from taciturn.transport.tls import pin_mismatch

        where, pin = str(config.path(config.link.certificate)), config.parties.get(own.name)
        if pin is None:
            names = ", ".join(config.parties)
            raise CertificateError(
                f"the certificate names {own.name}, and the parties are {names}",
                where=where,
                hint=Hint("name this side's own certificate, or add it to {parties} on all sides"),
            )
        if pin != own.fingerprint:
            raise CertificateError(
                f"{own.name}: {pin_mismatch(own.fingerprint, pin)}",
                where=where,
                hint=Hint(
                    "name this side's own certificate; or have its fingerprint, which taciturn "
                    "certs {show} prints, written under {parties} on all sides"
                ),
            )

    def title(self, config: PartyConfig, name: str) -> str:
        """Her role, or her name among several."""
        return name if config.parties else self.role

    def agreed_sides(
        self, config: PartyConfig, own: AgreedSide, peer_key: str | None
    ) -> tuple[AgreedSide, ...]:
        """Bob, and all Alices in the agreement's order."""
        others = _alices(config)
        alices = {**others, own.name: own}.values() if others else [own]
        return (AgreedSide(BOB, config.peer, peer_key), *alices)

    def counterparts(self, agreement: AgreementFile) -> tuple[AgreedSide, ...]:
        """Bob."""
        return (agreement.bob,)

    def agreed_width(self, config: PartyConfig, columns: int) -> int | None:
        """Her own columns; of several Alices each knows only hers."""
        return None if config.parties else columns


class LabelRole(PartyRole):
    """Bob, who has the labels."""

    role: ClassVar[Role] = "bob"

    def require_file(self, config: PartyConfig) -> None:
        """Insist on a label column, and refuse what Alice says of her columns."""
        if config.data.label is None:
            raise ConfigError(
                "Bob's table needs the name of its label column",
                setting="label",
                hint=Hint("write {label}, say; or is this Alice's file?", label="default"),
            )
        if config.has_section("woe"):
            raise ConfigError(
                "how the columns of Alice are weighed is hers to say",
                where=f"{config.where}, [woe]",
                hint="leave the section out here; Alice writes it in her file",
            )

    def require_link(self, config: PartyConfig) -> None:
        """Insist on a peer, or on a port for several Alices."""
        if not config.parties:
            return _require_peer(config)
        if config.link.peer is not None:
            raise ConfigError(
                "Bob's peers are the parties of the agreement, and no single one",
                setting="peer",
                hint=Hint("leave {peer} out; {parties} has their names"),
            )
        if config.link.connect is not None:
            raise ConfigError(
                "with several Alices Bob listens, and each of them connects to him",
                setting="connect",
                hint=Hint("write {listen} in place of {connect}", listen="0.0.0.0:9443"),
            )
        return None

    def require_certificate(self, config: PartyConfig, own: Credentials) -> None:
        """Refuse Bob a certificate of one of the Alices."""
        if own.name in config.parties:
            raise CertificateError(
                f"Bob's certificate names {own.name}, which is one of the Alices",
                where=str(config.path(config.link.certificate)),
                hint="give each side its own certificate",
            )

    def title(self, config: PartyConfig, name: str) -> str:
        """His role."""
        return self.role

    def agreed_sides(
        self, config: PartyConfig, own: AgreedSide, peer_key: str | None
    ) -> tuple[AgreedSide, ...]:
        """Bob, and the only Alice or all of them."""
        return (own, *(_alices(config).values() or [AgreedSide("alice", config.peer, peer_key)]))

    def counterparts(self, agreement: AgreementFile) -> tuple[AgreedSide, ...]:
        """The Alices."""
        return agreement.alices

    def agreed_width(self, config: PartyConfig, columns: int) -> int | None:
        """None: his columns are not Alice's."""
        return None

    def intercept(self, config: PartyConfig) -> bool:
        """As his file says."""
        return config.data.intercept

    def peer_table(self, config: PartyConfig) -> PeerTable:
        """As many columns as were agreed, or a bound."""
        return PeerTable(config.alice_columns, MOST_COLUMNS)


def _require_peer(config: PartyConfig) -> None:
    if config.link.peer is None:
        raise ConfigError("setting peer: field required", setting="peer")


def _alices(config: PartyConfig) -> dict[str, AgreedSide]:
    return {name: AgreedSide(name, name, key) for name, key in config.parties.items()}


ROLES: Mapping[Role, PartyRole] = MappingProxyType({"alice": FeatureRole(), "bob": LabelRole()})
