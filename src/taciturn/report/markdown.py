"""Blocks in GitHub's Markdown, for a pull request or a file with its pictures.

**Guarantee.** Every text is escaped, so that it shows as it is: no markup of its own, no cell that
breaks a table, no fence that closes early, no link and no mention of a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from taciturn.report import blocks as b

_MARKUP = re.compile(r"://|www\.|[\\`*_\[\]#|~<>&@$]")
_NOTHING = "<!-- -->"
# Entities hold inside HTML too, which Markdown allows. An empty comment keeps GitHub from making a
# link, a mention of a person or a reference to an issue.
_SPELLED = {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    "@": f"@{_NOTHING}",
    "#": f"#{_NOTHING}",
    "://": f":{_NOTHING}//",
    "www.": f"www{_NOTHING}.",
}


def render(page: b.Page, pictures: str = "") -> str:
    """Page as Markdown; without a folder of ``pictures``, each figure's substitute is shown."""
    head = [f"# {escape(page.title)}", _words(page.subject)]
    foot = [escape(page.footer)] if page.footer else []
    return "\n\n".join([*head, *_blocks(page.blocks, pictures), *foot]) + "\n"


def escape(text: str) -> str:
    r"""Escape a text, also for use inside a table.

    >>> escape("a|b <c> *d*")
    'a\\|b &lt;c&gt; \\*d\\*'
    """
    plain = b.printable(text).replace(b.NO_BREAK, " ")
    return _MARKUP.sub(lambda match: _SPELLED.get(match[0], f"\\{match[0]}"), plain)


def _blocks(blocks: Iterable[b.Block], pictures: str) -> list[str]:
    return [part for block in blocks for part in _rendered(block, pictures)]


def _rendered(block: b.Block, pictures: str) -> list[str]:
    match block:
        case b.Heading():
            return [f"### {_words(block.words)}"]
        case b.Paragraph():
            return [_words(block.words)]
        case b.Bullets():
            return ["\n".join(f"- {_words(item)}" for item in block.items)]
        case b.Command():
            return [_fenced(block.text)]
        case b.Facts():
            return [_table(b.table(("", ""), block.pairs.items(), words=(0, 1)))]
        case b.Blanks():
            blank = "\\_" * 40
            return ["\n\n".join(f"{escape(name)}: {blank}" for name in block.names)]
        case b.Table():
            return [*([f"{escape(block.caption)}:"] if block.caption else []), _table(block)]
        case b.Figures():
            if not pictures:
                return _blocks(block.instead, pictures)
            return [
                f"![{escape(figure.title)}]({pictures}/{figure.name}.svg)"
                for figure in block.figures
            ]
        case b.Cards():
            return [_table(block.table)]
        case b.Details():
            summary = f"<details>\n<summary>{escape(block.summary)}</summary>"
            return [summary, *_blocks(block.blocks, pictures), "</details>"]
        case b.Section():
            badge = block.badge
            status = [f"**{badge.sign} {escape(badge.label)}**"] if badge else []
            return [f"## {escape(block.title)}", *status, *_blocks(block.blocks, pictures)]


def _table(block: b.Table) -> str:
    rules = ["--:" if column.numeric else ":--" for column in block.columns]
    rows = [[_words(cell) for cell in row] for row in block.rows]
    lines = [[escape(column.heading) for column in block.columns], rules, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _words(words: b.Words) -> str:
    marks = {"strong": "**", "bad": "**"}
    return "".join(
        _inline_code(span.text)
        if span.tone == "code"
        else f"{marks.get(span.tone, '')}{escape(span.text)}{marks.get(span.tone, '')}"
        for span in b.spans(words)
    )


def _inline_code(text: str) -> str:
    """Inline code; an HTML element if it has a backquote or a bar."""
    if "`" in text or "|" in text:
        return f"<code>{escape(text)}</code>"
    return f"`{b.printable(text)}`"


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}console\n$ {b.printable(text)}\n{fence}"
