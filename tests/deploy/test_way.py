"""One port for several Alices, over TLS, with the keys that were agreed on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import taciturn.deploy.transport  # noqa: F401 - before anybody imports grpc: it says which ciphers
from taciturn.deploy import ALIGNMENT, PartyConfig, PeerSession, way_to_peer
from taciturn.deploy.transport import (
    DialEndpoint,
    load_credentials,
    make_certificates,
    show_certificate,
)
from taciturn.doctor import look_at_certificates
from taciturn.engine import Callbacks
from taciturn.errors import CertificateError, PeerAbsent, PeerRefused, shown_by
from taciturn.protocol import Program
from taciturn.rng import KeyedEntropy
from tests.certificates import issue_again
from tests.deploy.stars import NAMES, party
from tests.deploy.talks import centre, spoke
from tests.waiting import HANG, wait_until

LISTENING = "listening on port "


class Folder:
    """Certificates of one authority for all parties, and other keys under the same names."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        make_certificates(folder / "certs", ["bob", *NAMES, "carol"])
        issue_again(folder / "certs", folder / "others", "alice-2")
        self.pins = {
            name: show_certificate(folder / "certs" / f"{name}.pem").fingerprint for name in NAMES
        }

    def party(self, name: str, file: str = "", *, certs: str = "certs", **link: Any) -> PartyConfig:
        """A party's settings, which name the certificate of that file."""
        place = self.path / certs
        own = {
            "ca": str(place / "ca.pem"),
            "certificate": str(place / f"{file or name}.pem"),
            "key": str(place / f"{file or name}.key"),
        }
        return party(self.path, name, self.pins, **own, **link)

    def calling(self, file: str, at: int, certs: str = "certs") -> DialEndpoint:
        """Whoever has these files, and no checks of ours."""
        place = self.path / certs
        own = load_credentials(place / f"{file}.pem", place / f"{file}.key", place / "ca.pem")
        return DialEndpoint(f"127.0.0.1:{at}", own, peer="bob")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("star"))


def talk(config: PartyConfig, program: Program[Any], said: list[str]) -> Any:
    """One side from its file to the end."""
    with (
        way_to_peer(config, said.append) as ways,
        PeerSession(config, ways, Callbacks(announce=said.append)).meet(ALIGNMENT) as meeting,
    ):
        return meeting.run(program), meeting.finish(HANG)


def port(said: list[str]) -> int:
    """The port that Bob has opened."""
    wait_until(lambda: any(LISTENING in text for text in said))
    (line,) = [text for text in said if LISTENING in text]
    assert line.endswith("for alice-1, alice-2")
    return int(line.removeprefix(LISTENING).split()[0])


@pytest.mark.slow  # seconds, and others show most of it on less
def test_a_star_over_tls(folder):
    said: list[str] = []
    ends: dict[str, Any] = {}

    def run(name: str, config: PartyConfig, program: Program[Any]) -> None:
        ends[name] = talk(config, program, said if name == "bob" else [])

    def started(name: str, config: PartyConfig, program: Program[Any]) -> threading.Thread:
        thread = threading.Thread(target=run, args=(name, config, program))
        thread.start()
        return thread

    threads = [started("bob", folder.party("bob"), centre(KeyedEntropy.from_seed(0), NAMES))]
    address = f"127.0.0.1:{port(said)}"
    # The last one first: Bob waits for the first one, and lets the other in meanwhile.
    for seed, name in enumerate(reversed(NAMES), start=1):
        config = folder.party(name, connect=address)
        threads.append(started(name, config, spoke(KeyedEntropy.from_seed(seed))))
        wait_until(partial(said.__contains__, f"{name}: connected"))
    for thread in threads:
        thread.join(HANG)
    assert len(ends["bob"][0]) > 0
    assert ends == dict.fromkeys(("bob", *NAMES), ends["bob"])
    assert ends["bob"][1]


@contextmanager
def waiting_bob(folder: Folder, **link: Any) -> Iterator[tuple[PeerSession, int, PartyConfig]]:
    config, said = folder.party("bob", **link), list[str]()
    with way_to_peer(config, said.append) as ways:
        yield PeerSession(config, ways), port(said), config


@pytest.mark.parametrize(
    ("file", "certs", "said"),
    [
        ("carol", "certs", "its certificate names 'carol', not 'alice-1' or 'alice-2'"),
        ("alice-2", "others", ", alice-2: its certificate is not the agreed one: its key has"),
    ],
)
def test_whoever_is_refused_stands_in_bobs_log_and_in_his_error(folder, file, certs, said):
    """Whoever runs the authority can make any name, but not the key that was agreed on."""
    with waiting_bob(folder, connect_seconds=0.3) as (side, at, config):
        stranger = folder.calling(file, at, certs)
        with pytest.raises(PeerRefused, match="bob refused this side"):
            stranger.connect(HANG)
        stranger.close()
        with pytest.raises(PeerAbsent) as caught, side.meet(ALIGNMENT) as meeting:
            meeting.links["alice-2"].connect()
    assert caught.value.message.startswith("no connection to alice-2 within 0.3 seconds; ")
    assert said in caught.value.message
    events = [json.loads(line) for line in config.path("bob.log").read_text().splitlines()]
    refused = [event for event in events if event["event"] == "refused a connection"]
    assert said in refused[-1]["reason"]


def complaint(config: PartyConfig) -> CertificateError:
    with (
        pytest.raises(CertificateError) as caught,
        shown_by(config.face),
        way_to_peer(config, lambda text: None),
    ):
        pass
    (finding, *_) = look_at_certificates(config)
    assert caught.value.message in finding.summary
    return caught.value


def test_an_alice_with_another_key_than_was_agreed_on_does_not_begin(folder):
    config = folder.party("alice-2", certs="others")
    error = complaint(config)
    other = show_certificate(Path(config.link.certificate)).fingerprint
    assert error.message == (
        f"alice-2: its certificate is not the agreed one: its key has fingerprint {other[:16]}…, "
        f"and the agreement has {folder.pins['alice-2'][:16]}…"
    )
    assert error.where == config.link.certificate
    assert "taciturn certs --show prints, written under parties on all sides" in error.hint


def test_an_alice_who_is_none_of_the_parties_does_not_begin(folder):
    error = complaint(folder.party("alice-2", "carol"))
    assert error.message == "the certificate names carol, and the parties are alice-1, alice-2"


def test_bob_is_none_of_the_alices(folder):
    error = complaint(folder.party("bob", "alice-1"))
    assert error.message == "Bob's certificate names alice-1, which is one of the Alices"
