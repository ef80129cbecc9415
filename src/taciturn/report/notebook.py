"""Results in a notebook: as HTML, as a pandas frame, as a picture.

Jinja, matplotlib (both of the extra ``audit``) and pandas are loaded only when they are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from taciturn.extras import explained, is_installed
from taciturn.results.serialise import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def to_html(result: Result) -> str | None:
    """A result as a part of a page; None where Jinja is not installed."""
    if not is_installed("jinja2"):
        return None
    from taciturn.report.html import fragment

    return fragment(result.blocks())


def to_frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a pandas frame; without pandas a ConfigError names the extra that brings it."""
    with explained():
        import pandas as pd
    return pd.DataFrame(list(rows))


def draw(figure: Callable[[], Figure]) -> Figure:
    """A picture in the style of pages; without matplotlib a ConfigError names the extra."""
    with explained():
        from taciturn.report.plots import style
    _let_cells_show_figures()
    with style():
        return figure()


def _let_cells_show_figures() -> None:
    """A kernel knows how to show a figure once matplotlib's way to it is loaded."""
    if "ipykernel" not in sys.modules:
        return
    import matplotlib as mpl
    from matplotlib import pyplot

    pyplot.switch_backend(mpl.get_backend())
