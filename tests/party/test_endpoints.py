"""One port for several Alices, over TLS, with the keys that were agreed on."""

from __future__ import annotations

import json

import pytest

import taciturn.transport  # noqa: F401 - before anybody imports grpc: it says which ciphers
from taciturn.errors import PeerAbsent, PeerRefused
from taciturn.jobs.align.declaration import ALIGNMENT
from taciturn.party.endpoints import open_endpoint
from taciturn.party.session import PeerSession
from taciturn.transport.dial import DialEndpoint
from taciturn.transport.tls import load_credentials
from tests.certificates import issue_again
from tests.expected import refused
from tests.party.sides import Company
from tests.waiting import HANG


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Company:
    """Bob and two Alices; the authority has certified another key of alice-2's, and carol."""
    made = Company(tmp_path_factory.mktemp("star"))
    for folder, name in (("others", "alice-2"), ("strangers", "carol")):
        issue_again(made.folder / "certs", made.folder / folder, name)
    return made


def calling(star: Company, folder: str, name: str) -> DialEndpoint:
    """Whoever has these files, and no checks of ours."""
    place = star.folder / folder
    own = load_credentials(place / f"{name}.pem", place / f"{name}.key", place / "ca.pem")
    return DialEndpoint(f"127.0.0.1:{star.port}", own, peer="bob")


@pytest.mark.parametrize(("folder", "name"), [("strangers", "carol"), ("others", "alice-2")])
def test_whoever_is_refused_stands_in_bobs_log_and_in_his_error(star, folder, name):
    """Whoever runs the authority can make any name, but not the key that was agreed on."""
    config = star.write("bob", link={"connect-seconds": 0.3})
    with open_endpoint(config, lambda text: None) as ways:
        stranger = calling(star, folder, name)
        with refused(PeerRefused, names="bob"):
            stranger.connect(HANG)
        stranger.close()
        side = PeerSession(config, ways)
        with (
            refused(PeerAbsent, names=("alice-2", "0.3", name)),
            side.meet(ALIGNMENT) as meeting,
        ):
            meeting.links["alice-2"].connect()
    events = [json.loads(line) for line in config.path("bob.log").read_text().splitlines()]
    reasons = [event["reason"] for event in events if "reason" in event]
    assert name in reasons[-1]
