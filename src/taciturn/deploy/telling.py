"""What the peer is told when this side gives up."""

from __future__ import annotations

from contextlib import suppress

from taciturn.deploy.link import Link
from taciturn.deploy.log import Log
from taciturn.errors import (
    AgreementError,
    OutputError,
    PeerStopped,
    RemoteProtocolError,
    StateError,
    TaciturnError,
)


class Telling:
    """Tells the peer that this side gives up, and as much of the reason as it may know."""

    def __init__(self, link: Link, log: Log) -> None:
        self._link, self._log = link, log

    def __enter__(self) -> None:
        """The link connects when it is first used."""

    def __exit__(self, kind: type[BaseException] | None, problem: object, _: object) -> None:
        if kind is None:
            return
        code, reason = tellable(problem)
        # A log that cannot be written must not keep the reason from the peer.
        with suppress(OutputError):
            self._log("giving up", reason=getattr(problem, "message", "interrupted"))
        if not isinstance(problem, PeerStopped):
            self._link.fail(code, reason)
        self._link.close()


def tellable(problem: object) -> tuple[int, str]:
    """What the peer may know: its own mistakes in full, of ours only the kind.

    >>> tellable(OutputError("no room", where="a secret place"))
    (74, 'it had a problem of its own (OutputError)')
    """
    if isinstance(problem, AgreementError | RemoteProtocolError):
        return problem.exit_code, problem.message
    if isinstance(problem, StateError):
        return problem.exit_code, "its record of the session does not fit"
    if isinstance(problem, TaciturnError):
        return problem.exit_code, f"it had a problem of its own ({type(problem).__name__})"
    return 1, "it was interrupted"
