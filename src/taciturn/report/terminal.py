"""Blocks for a terminal, at most 100 columns wide: figures as tables, nothing folded away."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taciturn.report import blocks as b

WIDTH = 100
_LONGEST_WORD = 24
_STYLES: dict[b.Tone, str] = {
    "": "",
    "strong": "bold",
    "muted": "dim",
    "good": "green",
    "warning": "yellow",
    "bad": "bold red",
    "code": "",
}


def render(blocks: Iterable[b.Block]) -> RenderableType:
    """Blocks as rich prints them."""
    return Group(*map(_rendered, blocks))


def _rendered(block: b.Block) -> RenderableType:
    match block:
        case b.Heading():
            return _text(block.words, "bold")
        case b.Paragraph():
            text = _text(block.words, _STYLES[block.tone])
            return _indented(text) if block.tone in ("muted", "warning") else text
        case b.Bullets():
            return Group(*(_indented(_text(item)) for item in block.items))
        case b.Command():
            return _indented(_text(f"$ {block.text}"))
        case b.Facts():
            return _facts(block)
        case b.Blanks():
            return _facts(b.Facts(dict.fromkeys(block.names, "_" * 40)))
        case b.Table():
            return _table(block)
        case b.Figures():
            return render(block.instead)
        case b.Cards():
            return _table(block.table)
        case b.Details():
            return Group(_text(block.summary, "bold"), render(block.blocks))
        case b.Section():
            badge = "" if block.badge is None else f"{block.badge.sign} {block.badge.label}: "
            return Group("", _text(f"{badge}{block.title}", "bold"), render(block.blocks))


def _text(words: b.Words, style: str = "") -> Text:
    # Never a bare string: rich would take what stands in brackets for markup.
    text = Text(style=style)
    for span in b.spans(words):
        text.append(b.printable(span.text).replace(b.NO_BREAK, " "), style=_STYLES[span.tone])
    return text


def _indented(content: RenderableType) -> Padding:
    return Padding(content, (0, 0, 0, 2), expand=False)


def _facts(block: b.Facts) -> Padding:
    grid = Table.grid(padding=(0, 2))
    for _ in range(2):
        grid.add_column(overflow="fold")
    for name, value in block.pairs.items():
        grid.add_row(_text(name, "dim"), _text(value))
    return _indented(grid)


def _table(block: b.Table) -> Table:
    title = _text(block.caption, "italic") if block.caption else None
    grid = Table(title=title, title_justify="left")
    for column, width in zip(block.columns, _widths(block), strict=True):
        grid.add_column(
            _text(column.heading),
            justify="right" if column.numeric else "left",
            max_width=width,
            overflow="fold",
        )
    for group in block.groups:
        for row in group:
            grid.add_row(*map(_text, row))
        grid.add_section()
    return grid


def _widths(block: b.Table) -> list[int]:
    """Widths of the columns, which fit ``WIDTH`` where that is possible.

    Rich shrinks a column of texts to nothing where the headings of the others are long. Here
    headings wrap first: a number stays on its line, and a text keeps its longest word.
    """
    widths, least = [], []
    for place, column in enumerate(block.columns):
        cells = [_text(row[place]).plain for group in block.groups for row in group]
        heading = _text(column.heading).plain
        pieces = [*heading.split(), *(cells if column.numeric else " ".join(cells).split())]
        widths.append(max(map(len, [heading, *cells])))
        least.append(min(max(map(len, pieces), default=0), widths[-1], _LONGEST_WORD))
    # Each column has two blanks and a line, and the table one line more.
    excess = sum(widths) + 3 * len(widths) + 1 - WIDTH
    for _ in range(max(excess, 0)):
        wide = [place for place, width in enumerate(widths) if width > least[place]]
        if not wide:
            break
        widths[max(wide, key=lambda place: widths[place])] -= 1
    return widths
