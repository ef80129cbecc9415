"""A page of headings, paragraphs, tables and pictures, as Markdown and as one file of HTML.

**Guarantee.** Every text is escaped in HTML, which holds no script and makes no request; pictures
are drawn into it. The Markdown names pictures as files beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the page's own."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Words; what stands between backquotes is code."""

    text: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; columns after the first are numbers unless they are named as words."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[int] = (0,)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, in a file of this name where the page is not one file."""

    name: str
    title: str
    svg: str = field(repr=False)


Block: TypeAlias = Heading | Paragraph | Grid | Picture

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d8dce3; --soft: #5b6472; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #14171a; --line: #3a4048;
  --soft: #a2abb8; } .drawing { background: #fff; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 14px; margin: 1rem 0; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: left;
  vertical-align: top; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; } .drawing svg { max-width: 100%; height: auto; }
code { background: color-mix(in srgb, var(--line) 40%, transparent); padding: 0 .25em; }
@media print { body { max-width: none; font-size: 11px; } }
"""


def to_markdown(blocks: Sequence[Block], folder: str) -> str:
    r"""The page as Markdown.

    Args:
        blocks: What is on it.
        folder: Where its pictures lie, seen from the page.

    >>> print(to_markdown([Heading("A", 1), Grid("c", ["x", "y"], [["a|b", "1"]])], "p"))
    # A
    <BLANKLINE>
    c:
    <BLANKLINE>
    | x | y |
    |---|---:|
    | a\|b | 1 |
    <BLANKLINE>
    """
    return "\n\n".join(_markdown(block, folder) for block in blocks) + "\n"


def _markdown(block: Block, folder: str) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {block.text}"
        case Paragraph():
            return block.text
        case Picture():
            return f"![{block.title}]({folder}/{block.name}.svg)"
        case Grid():
            rule = "|".join(
                "---" if number in block.words else "---:" for number in range(len(block.headings))
            )
            lines = [_line(block.headings), f"|{rule}|", *(_line(row) for row in block.rows)]
            return "\n".join([f"{block.caption}:", "", *lines])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def to_html(blocks: Sequence[Block], title: str) -> str:
    """The page as one self-contained file.

    Args:
        blocks: What is on it.
        title: The window's.
    """
    body = "\n".join(_html(block) for block in blocks)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
        case Paragraph():
            return f"<p>{_with_code(block.text)}</p>"
        case Picture():
            title = escape(block.title, quote=True)
            return f'<div class="drawing" role="img" aria-label="{title}">{_inline(block)}</div>'
        case Grid():
            head = "".join(_cell("th", text, n, block) for n, text in enumerate(block.headings))
            rows = "".join(
                f"<tr>{''.join(_cell('td', text, n, block) for n, text in enumerate(row))}</tr>"
                for row in block.rows
            )
            caption = escape(block.caption)
            return (
                f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table>'
                f"<caption>{caption}</caption><thead><tr>{head}</tr></thead>"
                f"<tbody>{rows}</tbody></table></div>"
            )


def _cell(tag: str, text: str, number: int, block: Grid) -> str:
    kind = "" if number in block.words else ' class="n"'
    scope = ' scope="col"' if tag == "th" else ""
    return f"<{tag}{scope}{kind}>{_with_code(text)}</{tag}>"


def _with_code(text: str) -> str:
    """Escaped words, with code where backquotes stand."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def _inline(picture: Picture) -> str:
    """The drawing without its file's head; names in it are made the page's own."""
    drawing = picture.svg[picture.svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    name = re.sub(r"\W", "", picture.name)
    drawing = re.sub(r'\bid="', f'id="{name}-', drawing)
    drawing = re.sub(r"url\(#", f"url(#{name}-", drawing)
    return re.sub(r'href="#', f'href="#{name}-', drawing)
