"""Each format has a version of its own, which what it keeps or sends begins with."""

from __future__ import annotations

import re
from pathlib import Path

from taciturn import version

SOURCE = Path(version.__file__).parent
OWNERS = {
    "PROTOCOL_VERSION": "protocol/handshake.py",
    "JOURNAL_VERSION": "party/encrypted_log.py",
    "TRANSCRIPT_VERSION": "engine/transcript.py",
    "MODEL_VERSION": "model/share.py",
    "CONSENT_VERSION": "party/consent/store.py",
}


def test_each_format_reads_its_own_version_and_no_other():
    named = {name for name in vars(version) if name.endswith("_VERSION")}
    assert named == set(OWNERS)
    for name, owner in OWNERS.items():
        used = set(re.findall(r"\b[A-Z]+_VERSION\b", (SOURCE / owner).read_text("utf-8")))
        assert used & named == {name}


def test_models_and_consent_stores_of_release_0_3_are_read():
    """A format that changes has to read them, or say why not: raise these with care."""
    assert (version.MODEL_VERSION, version.CONSENT_VERSION) == (7, 3)
