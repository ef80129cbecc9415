"""Reason why a TLS handshake failed, on the serving side.

gRPC does not tell a program: it writes a line to the process's standard error, and hangs up. Here
that line is read and explained. The side that dials learns its reasons otherwise, and so does a
program that cannot open a port: such lines are dropped. Standard error of the C libraries goes
through a pipe; all other lines pass unchanged. Python's own ``sys.stderr`` is pointed at the
original, so that progress bars and messages do not take the detour.

This changes the whole process, so it is asked for by a command that owns its process, never by
importing something. A message of a crashing library may be lost in the pipe.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from taciturn.transport.limits import RateLimiter

REPORTS_PER_SECOND = 5.0
LONGEST_LINE = 4096
_FAILED = re.compile(rb"ssl_transport_security\w*\.cc:\d+\] Handshake failed with error (.*)")
_WRONG_NAME = re.compile(rb"ssl_transport_security\w*\.cc:\d+\] No match found for server name")
# What gRPC tells of its own doings, such as a link that the other side has closed.
_CHATTER = re.compile(rb"I\d{4} [\d:.]+ +\d+ \S+\.cc:\d+\]")
# Reported elsewhere: a port that is taken, a record that was damaged on the way.
_TOLD = re.compile(
    rb"[IWE]\d{4} [\d:.]+ +\d+ (add_port|secure_endpoint|ssl_transport_security\w*)\.cc:\d+\]"
)
_PREAMBLE = b"WARNING: All log messages before absl::InitializeLog()"
# The first reason with a sign in the error.
_REASONS = {
    "it shows no certificate": "PEER_DID_NOT_RETURN_A_CERTIFICATE",
    "its certificate has expired": "certificate has expired",
    "its certificate is not valid yet": "not yet valid",
    "its certificate was signed by another authority": (
        "certificate signature failure|issuer|self signed|self-signed"
    ),
    "its certificate does not allow client authentication": "unsupported certificate purpose",
    "its certificate is not accepted": "CERTIFICATE_VERIFY_FAILED",
    "it does not use TLS 1.3": "NO_SHARED_CIPHER|UNSUPPORTED_PROTOCOL",
    "it does not accept our certificate": (
        "ALERT_UNKNOWN_CA|ALERT_CERTIFICATE|ALERT_BAD_CERTIFICATE|ALERT_UNSUPPORTED_CERTIFICATE"
    ),
    "it does not speak TLS": "HTTP_REQUEST|WRONG_VERSION_NUMBER",
}


def explain(line: bytes) -> str | None:
    """Reason of a failed handshake in a log line of gRPC; None if it is about something else."""
    if _WRONG_NAME.search(line):
        return "it asks for a party of another name"
    match = _FAILED.search(line)
    if match is None:
        return None
    error = match[1].decode("ascii", "replace")
    matching = (reason for reason, signs in _REASONS.items() if re.search(signs, error))
    return next(matching, "its TLS handshake failed")


@contextmanager
def handshake_reasons(
    on_failed: Callable[[str], None] | None, *, for_good: bool = False
) -> Iterator[None]:
    """Report why callers' handshakes fail, while the context lasts.

    ``on_failed`` is called with the reason, a few times a second at most, from another thread; the
    caller's address is not known. It is None on the side that calls. With ``for_good`` the process
    ends soon after, and the C libraries' output is dropped from then on: gRPC's threads run on for
    a moment, and log a closed link.
    """
    sys.stderr.flush()
    original = os.dup(2)
    source, sink = os.pipe()
    os.dup2(sink, 2)
    os.close(sink)
    direct = os.fdopen(os.dup(original), "w", buffering=1, encoding="utf-8", errors="replace")
    before, sys.stderr = sys.stderr, _direct(sys.stderr, direct)
    reader = threading.Thread(
        target=_sort, args=(source, original, on_failed), name="taciturn-corelog", daemon=True
    )
    reader.start()
    try:
        yield
    finally:
        # Either closes the pipe's last writing end, which ends the reader. Where sys.stderr was
        # replaced, as a test runner does, the process does not end with this command.
        if for_good and sys.stderr is direct:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 2)
        else:
            sys.stderr = before
            direct.close()
            os.dup2(original, 2)
        reader.join(5)
        os.close(original)


def _direct(before: TextIO, direct: TextIO) -> TextIO:
    """The original stream for Python, unless ``sys.stderr`` has been replaced already."""
    try:
        return direct if before.fileno() == 2 else before
    except (OSError, ValueError, AttributeError):
        return before


def _sort(source: int, original: int, on_failed: Callable[[str], None] | None) -> None:
    allowance = RateLimiter(REPORTS_PER_SECOND)
    with os.fdopen(source, "rb") as lines:
        while line := lines.readline(LONGEST_LINE):
            reason = explain(line)
            if reason is not None:
                if on_failed is not None and allowance.try_acquire():
                    # An observer that fails must not leave the pipe without a reader.
                    with suppress(Exception):
                        on_failed(reason)
            elif not (line.startswith(_PREAMBLE) or _CHATTER.match(line) or _TOLD.match(line)):
                os.write(original, line)
