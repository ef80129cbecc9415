"""The audit as one page of HTML: no script, no request, everything inside.

**Guarantee.** Every text of the record is escaped. The page's own policy forbids scripts and every
request, so that a column name or a note is words and nothing else.
"""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from taciturn.report.charts import attacks_svg, epochs_svg
from taciturn.report.document import AuditReport
from taciturn.report.record import Record
from taciturn.report.words import epsilon, interval, share


def render(record: Record) -> str:
    """An audit's record as one self-contained page.

    Args:
        record: Of ``taciturn audit``, before or after it became JSON.

    Returns:
        The text of the file; the same record gives the same text.

    Raises:
        DataError: The record is not of an audit.
    """
    report = AuditReport.of(record)
    # The drawings escape their own words; everything else the template escapes.
    return _template().render(
        report=report,
        canary_picture=_drawing(attacks_svg(report.canary, "canary")) if report.canary else "",
        run_picture=_drawing(attacks_svg(report.run, "run")),
        epochs_picture=_drawing(epochs_svg(report.epochs, "epochs")) if report.epochs else "",
    )


def _drawing(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704 - made by charts, which escapes


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
    environment.filters.update(share=share, interval=interval, epsilon=epsilon)
    return environment.get_template("audit.html.jinja")
