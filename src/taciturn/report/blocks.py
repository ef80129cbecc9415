"""Report blocks: headings, tables, facts and figures, as plain data.

Texts are unescaped: each renderer (``terminal``, ``markdown``, ``html``) escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

NO_BREAK = "\u00a0"
Tone: TypeAlias = Literal["", "strong", "muted", "good", "warning", "bad", "code"]


@dataclass(frozen=True, slots=True)
class Span:
    """Text with a tone."""

    text: str
    tone: Tone = ""


Words: TypeAlias = str | Span | tuple[str | Span, ...]


def spans(words: Words) -> tuple[Span, ...]:
    """Words as spans."""
    parts = words if isinstance(words, tuple) else (words,)
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def coded(text: str) -> Words:
    """A text of our own, in which backquotes enclose code.

    >>> coded("run `taciturn`")
    (Span(text='run ', tone=''), Span(text='taciturn', tone='code'))
    """
    tones: tuple[Tone, Tone] = ("", "code")
    parts = enumerate(text.split("`"))
    return tuple(Span(part, tones[number % 2]) for number, part in parts if part)


def printable(text: str) -> str:
    r"""A text on one line, with a mark for what does not print (bidirectional signs too).

    >>> printable("a\nb\u202ec")
    'a b�c'
    """
    spaced = (" " if sign.isspace() and sign != NO_BREAK else sign for sign in text)
    return "".join(s if s.isprintable() or s == NO_BREAK else "\ufffd" for s in spaced)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a section; a section's own title is not one."""

    words: Words


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; a muted one explains, a warning asks for attention."""

    words: Words
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it was typed."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their descriptions."""

    pairs: Mapping[str, Words]


@dataclass(frozen=True, slots=True)
class Blanks:
    """Names with blank space, to be filled in by hand."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading; numbers are right-aligned and never broken."""

    heading: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first cells name the rows; ``label`` is used where there is no caption."""

    columns: tuple[Column, ...]
    groups: tuple[tuple[tuple[Words, ...], ...], ...]
    caption: str = ""
    label: str = ""

    @property
    def rows(self) -> tuple[tuple[Words, ...], ...]:
        """All rows."""
        return tuple(row for group in self.groups for row in group)

    @property
    def short_names(self) -> bool:
        """Whether the names of the rows fit on one line each."""
        return all(sum(len(span.text) for span in spans(row[0])) <= 24 for row in self.rows)


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing as SVG, and in words what it shows; ``name`` is that of its file."""

    name: str
    title: str
    alt: str
    svg: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures side by side, or a wide one, and the same for a medium without pictures.

    ``instead`` is folded away where the figures are shown; ``summary`` names the fold.
    """

    figures: tuple[Figure, ...]
    caption: str = ""
    instead: tuple[Block, ...] = ()
    summary: str = "The same as a table"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """One figure in large type, with ``lines`` below and named figures ``beside`` it."""

    title: str
    big: str
    lines: tuple[str, ...]
    beside: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards side by side."""

    cards: tuple[Card, ...]

    @property
    def table(self) -> Table:
        """The same for a medium without large type."""
        rows = (
            (
                card.title,
                card.big,
                "; ".join(card.lines),
                ", ".join(map(" ".join, card.beside.items())),
            )
            for card in self.cards
        )
        headings = ("", "figure", "what it is", "beside it")
        return table(headings, rows, words=(0, 2, 3), label="The figures in short")


@dataclass(frozen=True, slots=True)
class Details:
    """A section that is collapsed until the reader opens it."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Badge:
    """A status: a word for style sheets, a shape that means the same as its colour, a label."""

    word: str
    sign: str
    label: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: its title, the name by which it is linked, and its short name there."""

    title: str
    ident: str
    blocks: tuple[Block, ...]
    short: str = ""
    badge: Badge | None = None


Block: TypeAlias = (
    Heading
    | Paragraph
    | Bullets
    | Command
    | Facts
    | Blanks
    | Table
    | Figures
    | Cards
    | Details
    | Section
)


@dataclass(frozen=True, slots=True)
class Page:
    """A whole document; a ``wide`` one has room for tables of many columns."""

    window: str
    title: str
    subject: Words
    blocks: tuple[Block, ...]
    footer: str = ""
    wide: bool = False

    @property
    def figures(self) -> list[Figure]:
        """Every figure, in order."""
        parts = [part for block in self.blocks for part in getattr(block, "blocks", (block,))]
        return [figure for part in parts if isinstance(part, Figures) for figure in part.figures]


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Words]],
    *,
    caption: str = "",
    label: str = "",
    words: Sequence[int] = (0,),
    grouped: bool = False,
) -> Table:
    """Table of headings and rows; ``words`` lists the text columns, all others hold numbers.

    ``grouped`` draws a line between rows whose first cells differ.
    """
    columns = tuple(Column(text, number not in words) for number, text in enumerate(headings))
    groups: list[list[tuple[Words, ...]]] = [[]]
    for row in rows:
        if grouped and groups[-1] and groups[-1][-1][0] != row[0]:
            groups.append([])
        groups[-1].append(tuple(row))
    return Table(columns, tuple(map(tuple, groups)), caption, label)
