"""``compare``: several mechanisms on the same rows, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.console import Json, progress_bar
from taciturn.cli.options import with_settings
from taciturn.cli.out import Origin, Out, finish, planned, simulated
from taciturn.cli.simulate import stamped, without_mechanism, write_page
from taciturn.files import require_writable


@with_settings
def compare(
    *,
    mechanisms: Annotated[
        str,
        typer.Option(
            help="Which to compare, separated by commas; name:epsilon gives one its own epsilon."
        ),
    ] = "sealed,none,label-rr,add",
    html: Annotated[
        Path | None, typer.Option(help="Write the comparison as one HTML file.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the comparison as Markdown.")] = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Set mechanisms side by side on the same rows: the model, what Alice can tell, the cost.

    [bold]Examples[/bold]

    taciturn compare --dataset breast-cancer

    taciturn compare --data loans.csv --id customer --label default --mechanisms sealed,none,add:10

    taciturn compare --dataset breast-cancer --html compare.html
    """
    from taciturn import api
    from taciturn.report.compare import compare_blocks, compare_page

    require_writable(html, markdown)
    plan = planned(out)
    wanted = {key: value for key, value in settings.items() if key != "record"}
    names = tuple(name.strip() for name in mechanisms.split(",") if name.strip())
    with progress_bar() as meter:
        result = api.compare(
            mechanisms=names,
            announce=meter.announce,
            observe=meter.observe,
            progress=meter.progress,
            **wanted,
        )
    result = stamped(result)
    if html is not None or markdown is not None:
        write_page(compare_page(result), html, markdown)
    finish(
        plan,
        result,
        json,
        compare_blocks,
        lambda: _compared(wanted, names),
        lambda: compare_page(result),
    )


def _compared(settings: dict[str, Any], names: tuple[str, ...]) -> Origin:
    own = settings.get("mechanism")
    all_names = names if own is None or own in names else (own, *names)
    common = {name: value for name, value in settings.items() if name != "mechanism"}
    # Any mechanism will do to check them by: it is taken out again.
    given = {"seed": 0, **common, "mechanism": "none", "epsilon": None}
    return without_mechanism(simulated(given), all_names)
