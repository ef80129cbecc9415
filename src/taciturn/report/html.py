"""Blocks as one page of HTML: no script, no request, everything inside.

**Guarantee.** Every text is escaped. The page's own policy forbids scripts and every request, so
that a column name or a note is words and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from taciturn.report.blocks import Block, Figure, Page, printable, spans


def render(page: Page) -> str:
    """A page as one self-contained file; the same page gives the same text."""
    return _template().render(page=page)


def fragment(blocks: Iterable[Block]) -> str:
    """Blocks as a fragment of a page with its own style; figures take that page's colours."""
    empty = Page(window="", title="", subject="", blocks=())
    macros = _template().make_module({"page": empty})
    return f'<div class="taciturn">{macros.render(tuple(blocks))}</div>'  # type: ignore[attr-defined]


def _drawn(figure: Figure) -> Markup:
    # The words around it say what it shows; its own, number by number, would only disturb.
    hidden = figure.svg.replace("<svg", '<svg aria-hidden="true"', 1)
    return Markup(hidden)  # noqa: S704 - drawn by matplotlib, which escapes


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("taciturn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        spans=spans, printable=printable, drawn=_drawn, kind=lambda block: type(block).__name__
    )
    return environment.get_template("page.html.jinja")
