"""What reading a party's file gives is what was recorded."""

from __future__ import annotations

import json

import pytest

from tests.party.party_files import FILES, RECORDED, REFUSED, SOUND, installed, reading

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_the_settings_or_the_error_that_were_recorded(name):
    if not installed(name):
        pytest.skip("its section is another distribution's")
    assert reading(*FILES[name]) == EXPECTED[name]


def test_each_file_is_sound_or_refused_as_it_is_listed():
    digests = {name for name, text in EXPECTED.items() if len(text.split()) == 1}
    assert digests == set(SOUND)
    assert EXPECTED.keys() - digests == set(REFUSED)
