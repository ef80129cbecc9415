"""Which messages a job's sides send, compared with its declaration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from taciturn.job_registry import registry
from taciturn.party.link import Link
from taciturn.protocol.codec import kind_of


@contextmanager
def declared_messages_only(purpose: int) -> Iterator[None]:
    """Require that all messages sent meanwhile are declared by the job of a purpose."""
    sent, send = set[int](), Link.send

    def noting(link: Link, frame: bytes) -> None:
        sent.add(kind_of(frame).code)
        send(link, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Link, "send", noting)
        yield
    assert sent
    assert sent <= set(registry().job_of(purpose).declaration.messages)
