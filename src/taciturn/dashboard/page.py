"""The page as it is sent: one file, and the policy under which a browser shows it.

The policy names the page's own style and script by their digests, and lets nothing else run, load
or be sent anywhere but to where the page came from.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """The page, its content security policy, and a digest by which browsers notice a new one."""

    body: bytes
    policy: str
    digest: str


@cache
def page() -> Page:
    """The page of this version."""
    text = files("taciturn.dashboard").joinpath("page.html").read_text(encoding="utf-8")
    (style,), (script,) = _STYLE.findall(text), _SCRIPT.findall(text)
    policy = (
        "default-src 'none'",
        f"style-src '{_digest(style)}'",
        f"script-src '{_digest(script)}'",
        "connect-src 'self'",
        # The mark in the browser's tab, which is part of the page.
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    body = text.encode()
    return Page(body, "; ".join(policy), hashlib.sha256(body).hexdigest()[:16])


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
