"""Docstrings as Markdown, for the site: doctests and literal blocks become code.

A griffe extension (``mkdocs.yml`` names it). Markdown would take the prompt of a doctest for a
quotation, and the two colons before a literal block for text. Where parameters are settings, their
descriptions are put in when the class is made, and only then.
"""

from __future__ import annotations

import inspect
import pydoc
import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"(?m)^( *)>>> .*\n?(?:(?! *$).+\n?)*")


def as_markdown(text: str) -> str:
    """A docstring with its doctests fenced, and without the colons of literal blocks."""

    def fenced(match: re.Match[str]) -> str:
        indent = match[1]
        body = match[0].rstrip("\n")
        return f"{indent}```pycon\n{body}\n{indent}```\n"

    literal = re.sub(r"(?m)^::\n", "", text)
    literal = re.sub(r"(?m)::$", ":", literal)
    return re.sub(r"\n\Z", "", _DOCTEST.sub(fenced, literal))


class Docstrings(griffe.Extension):
    """Rewrites each docstring once, when its object is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ANN401 - griffe's
        """Rewrites the docstring of an object that griffe has just loaded."""
        if obj.docstring is not None:
            if "{settings}" in obj.docstring.value:
                found = pydoc.locate(obj.path)
                obj.docstring.value = inspect.getdoc(found) or ""
            obj.docstring.value = as_markdown(obj.docstring.value)
