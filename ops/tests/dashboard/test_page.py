"""The page is one file that needs nothing from elsewhere, and the policy names all that runs."""

from __future__ import annotations

import base64
import hashlib
import re

from taciturn_ops.dashboard.server import page

TEXT = page().body.decode()


def test_the_page_names_no_other_place():
    # A namespace is a name, and is not loaded.
    places = set(re.findall(r"https?://[^\s\"'<>)]+", TEXT)) - {"http://www.w3.org/2000/svg"}
    assert places == set()
    assert not re.search(r"\b(?:src|href)=(?!\"data:)", TEXT)
    assert "url(" not in TEXT
    assert "@import" not in TEXT


def test_the_page_makes_no_markup_of_what_it_is_sent():
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in TEXT
    assert not re.search(r"\son[a-z]+=", TEXT)
    assert not re.search(r"\sstyle=", TEXT)


def test_the_policy_names_the_style_and_the_script_by_their_digests():
    for tag in ("style", "script"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", TEXT, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        # exact: a policy that browsers read
    assert f"{tag}-src 'sha256-{digest}'" in page().policy
