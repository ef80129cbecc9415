"""One of several Alices who is not as she should be: Bob names her, and all train once she is."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from taciturn.crypto.signatures import KeyIdentity
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import (
    AgreementError,
    PeerAbsent,
    PeerRefused,
    PeerStopped,
    TaciturnError,
)
from taciturn.party.config import PartyConfig
from taciturn.protocol.codec import decode, encode
from taciturn.protocol.messages import Endorsement, PublicBytes
from taciturn.rng import KeyedEntropy
from taciturn.transport.certs import make_certificates
from taciturn.transport.channel import Channel, Endpoints
from tests.certificates import issue_again
from tests.party.sides import Act, Company, records, training
from tests.party.wires import HookedEndpoint, Hooks, changing
from tests.waiting import HANG, wait_until


@pytest.fixture
def star(tmp_path: Path) -> Company:
    made = Company(tmp_path)
    made.write_tables()
    return made


class Met:
    """An endpoint that tells when it has a connection."""

    def __init__(self, endpoint: Endpoints, meetings: list[str]) -> None:
        assert not isinstance(endpoint, Mapping)
        self._endpoint, self._meetings = endpoint, meetings

    def connect(self, timeout: float) -> Channel:
        channel = self._endpoint.connect(timeout)
        self._meetings.append("met")
        return channel

    def close(self) -> None:
        self._endpoint.close()


class Stage:
    """Bob begins when so many Alices are connected: he is impatient, and a machine may be busy."""

    def __init__(self, waits_for: int = 1) -> None:
        self._met, self._waits_for = list[str](), waits_for
        self._over = threading.Event()

    def first(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        """An Alice as she should be."""
        return training(config, Met(way, self._met), calls)

    def bob(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        wait_until(lambda: len(self._met) >= self._waits_for)
        try:
            return training(config, way, calls)
        finally:
            self._over.set()

    def refused(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        """One who ends before Bob begins."""
        try:
            return training(config, way, calls)
        finally:
            self._met.append("refused")

    def absent(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        """An Alice who never comes."""

    def silent(self, config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        """One who is connected, and says nothing."""
        Met(way, self._met).connect(HANG)
        assert self._over.wait(HANG)


# Nobody is called silent for the time that a busy machine takes: who is missed never connects.
IMPATIENT = {"connect-seconds": 3.0, "answer-seconds": HANG}


def require_named(ends: dict[str, Any], kind: type[TaciturnError]) -> None:
    """Bob says that it is alice-2, and so does he tell the other."""
    assert isinstance(ends["bob"], kind), ends
    assert "alice-2" in ends["bob"].message
    assert isinstance(ends["alice-1"], PeerStopped), ends
    assert "alice-2" in ends["alice-1"].message


def finish(star: Company, again: Act = training) -> None:
    """Everybody runs again with the usual patience."""
    star.write("bob")
    star.require_the_same(records(star.run(real=True, alice_2=again)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", ["absent", "silent"])
def test_an_alice_who_does_not_begin_is_named_and_waited_for_again(star, fault):
    stage = Stage(waits_for=2 if fault == "silent" else 1)
    star.write("bob", link=IMPATIENT)
    acts = {"bob": stage.bob, "alice_1": stage.first, "alice_2": getattr(stage, fault)}
    require_named(star.run(real=True, **acts), PeerAbsent)
    finish(star)


@contextmanager
def another_certificate(star: Company, *, authority: bool) -> Iterator[None]:
    """alice-2 has another key under her name, of the same authority or of another one."""
    others = star.folder / "others"
    if authority:
        make_certificates(others, ["alice-2", "bob"])
    else:
        issue_again(star.folder / "certs", others, "alice-2")
    pins = {"alice-2": star.fingerprint("alice-2", "others")}
    # Of a handshake that fails she is not told more than that nobody answers.
    link = {"connect-seconds": 0.5 if authority else HANG}
    # Her own file names the key that she has: her side would not begin otherwise.
    star.write("alice-2", certs="others", link=link, **{"agreement.parties": pins})
    if authority:
        trusted = (others / "ca.pem").read_text() + (star.folder / "certs" / "ca.pem").read_text()
        (others / "ca.pem").write_text(trusted)
    yield
    star.write("alice-2")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("authority", [False, True], ids=["another key", "another authority"])
def test_an_alice_with_another_certificate_is_named(star, authority):
    stage = Stage(waits_for=2)
    star.write("bob", link=IMPATIENT)
    with another_certificate(star, authority=authority):
        acts = {"bob": stage.bob, "alice_1": stage.first, "alice_2": stage.refused}
        ends = star.run(real=True, **acts)
    require_named(ends, PeerAbsent)
    assert isinstance(ends["alice-2"], PeerAbsent if authority else PeerRefused)
    # Bob has not met her: she alone starts over, since she began with other settings.
    finish(star, partial(training, fresh=True))


@contextmanager
def another_agreement(star: Company) -> Iterator[Act]:
    star.write("alice-2", agreement={"passes": 5})
    yield training
    star.write("alice-2")


@contextmanager
def another_list(star: Company) -> Iterator[Act]:
    """One row is another one's."""
    table = star.file("alice-2", "csv")
    text = table.read_text()
    table.write_text(text.replace("p0007,", "q0007,"))
    yield training
    table.write_text(text)


@contextmanager
def forged_signature(star: Company) -> Iterator[Act]:
    """alice-2 has her key and certificate, and signs the roster with another key."""
    forged = list[bytes]()
    other = KeyIdentity.simulated("alice-2", KeyedEntropy.from_seed(1))

    def change(frame: bytes) -> bytes:
        message = decode(frame)
        if not isinstance(message, Endorsement):
            return frame
        forged.append(frame)
        return encode(replace(message, signature=PublicBytes(other.sign(b"the roster"))))

    def act(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        assert not isinstance(way, Mapping)
        return training(config, HookedEndpoint(way, Hooks(sending=changing(change))), calls)

    yield act
    assert forged, "no signature was forged"


@pytest.mark.parametrize("fault", [another_agreement, another_list, forged_signature])
def test_an_alice_who_is_not_set_up_alike_is_named_before_anything_is_released(star, fault):
    with fault(star) as act:
        ends = star.run(alice_2=act)
        require_named(ends, AgreementError)
        assert isinstance(ends["alice-2"], TaciturnError)
    assert not list(star.folder.glob("*/*.model.json"))
    # Nothing was released: run again, they start a session that fits.
    star.require_the_same(records(star.run()))
