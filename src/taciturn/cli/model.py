"""Commands on model files: show, list, use and export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import Json, console, show_record
from taciturn.cli.console import show as print_result
from taciturn.cli.help import Command
from taciturn.errors import ConfigError
from taciturn.files import require_writable, to_json, write_private
from taciturn.jobs.scorecard.command import report
from taciturn.output_paths import PathUse

if TYPE_CHECKING:
    from taciturn.party.config import PartyConfig

model = typer.Typer(
    name="model",
    help="Show, list, report on, select and export models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@model.command(cls=Command)
def show(
    file: Annotated[
        Path,
        PathUse.READ,
        typer.Argument(help="One side's model file, as taciturn party writes it."),
    ],
    top: Annotated[int, typer.Option(min=1, help="Number of coefficients to show.")] = 30,
    json: Json = False,
) -> None:
    """Show a model file: coefficients, metrics, protection, provenance.

    Examples:
    taciturn model show bob.model.json

    taciturn model show alice.model.json --json
    """
    from taciturn.jobs.scorecard.card import card
    from taciturn.model.share import ModelShare

    shown = card(ModelShare.load(file))
    show_record(shown.to_dict(), json, lambda: shown.blocks(top))


@model.command(name="list", cls=Command)
def list_models(
    file: Annotated[
        Path, PathUse.READ, typer.Argument(help="One side's model file, as its settings name it.")
    ],
    json: Json = False,
) -> None:
    """List this side's model and the models of earlier sessions.

    Examples:
    taciturn model list bob.model.json

    taciturn model list bob.model.json --json
    """
    from taciturn.model.share import listed_models

    print_result(listed_models(file), json)


model.command(cls=Command)(report)


@model.command(cls=Command)
def use(
    config: Annotated[
        Path, PathUse.READ, typer.Argument(help="This side's TOML file, as for taciturn party.")
    ],
    number: Annotated[int, typer.Argument(min=1, help="Number of the model in the study.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Bob: reveal the choice to Alice without asking.")
    ] = False,
    json: Json = False,
) -> None:
    """Select one model of a study as this side's model. Run it on both sides.

    Which model Bob selects depends on labels, and Alice learns it. That has no finite epsilon; his
    ledger counts it.

    Examples:
    taciturn model use bob.toml 7

    taciturn model use bob.toml 7 --yes

    taciturn model use alice.toml 7
    """
    from taciturn.errors import rendering_errors_as
    from taciturn.jobs.study.use import studied_model, use_model
    from taciturn.party.config import PartyConfig

    settings = PartyConfig.read(config)
    with rendering_errors_as(settings.syntax):
        share = studied_model(settings, number)
        models = int(share.study["models"])
        if settings.role == "bob" and not yes:
            _confirm(settings, number, models)
        used = use_model(settings, number, lambda text: None)
    print_result(used, json)


def _confirm(settings: PartyConfig, number: int, models: int) -> None:
    """Ask Bob to confirm that his choice is disclosed; raise ConfigError unless he does."""
    import math
    import sys
    from shlex import quote

    statement = (
        f"Using model {number} tells {settings.peer} which of {models} was chosen: at most "
        f"{math.log2(models):.1f} bits about all labels together, at no finite price."
    )
    if sys.stdin.isatty() and typer.confirm(f"{statement} Go on?", err=True):
        return
    raise ConfigError(
        statement,
        where="--yes",
        hint="nothing was done; if that may be disclosed: taciturn model use "
        f"{quote(settings.where)} {number} --yes",
    )


@model.command(cls=Command)
def export(
    files: Annotated[
        list[Path],
        PathUse.READ,
        typer.Argument(help="One side's file for its part; all for the whole model."),
    ],
    onnx: Annotated[Path, PathUse.WRITTEN, typer.Option(help="The ONNX file to write.")],
    json: Json = False,
) -> None:
    """Export a model as ONNX, including the preparation of raw columns.

    One model file exports that side's part of the score. The files of all sides export the whole
    model, with the probability; anyone who has all of them has what the training kept separate.

    Examples:
    taciturn model export bob.model.json --onnx bob-part.onnx

    taciturn model export alice.model.json bob.model.json --onnx model.onnx
    """
    # Imported here: it loads an optional package.
    from taciturn.model.onnx import own_to_onnx, whole_to_onnx
    from taciturn.model.share import ModelShare
    from taciturn.model.whole import own_part, whole_model
    from taciturn.party.applied_model import require_used

    require_writable(onnx)
    shares = [ModelShare.load(file) for file in files]
    for share, file in zip(shares, files, strict=True) if len(shares) > 1 else ():
        require_used(share, str(file))
    if len(shares) == 1:
        content, outputs = own_to_onnx(own_part(shares[0])), ["score"]
    else:
        content = whole_to_onnx(whole_model(*shares))
        classes = shares[0].family.link == "logit"
        outputs = ["score", "probability", "label"] if classes else ["score", "mean"]
    write_private(onnx, content)
    sides = sorted(share.title for share in shares)
    record = {
        "onnx": str(onnx),
        "parts": sides,
        "session": shares[0].session,
        "outputs": outputs,
        "bytes": len(content),
    }
    if json:
        typer.echo(to_json(record))
        return
    screen = console()
    screen.print(
        f"wrote {onnx}: {' and '.join(sides)}; outputs: {', '.join(outputs)}", markup=False
    )
    if len(shares) > 1 and shares[0].sealed:
        screen.print(
            "Alice's weights were shared so that neither side has them; this file has them in "
            "clear, and they depend on labels. Keep it as you keep the labels.",
            markup=False,
        )
