"""Commands on model files that come after a training: show and export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.console import Json, console, show_record
from taciturn.files import require_writable, to_json, write_private
from taciturn.output_paths import PathUse


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
    from taciturn.model.share import ModelShare
    from taciturn_risk.scorecard.card import card

    shown = card(ModelShare.load(file))
    show_record(shown.to_dict(), json, lambda: shown.blocks(top))


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
    from taciturn.model.share import ModelShare
    from taciturn.model.whole import own_part, whole_model
    from taciturn.party.applied_model import require_used
    from taciturn_risk.onnx import own_to_onnx, whole_to_onnx

    require_writable(onnx)
    shares = [ModelShare.load(file) for file in files]
    for share, file in zip(shares, files, strict=True) if len(shares) > 1 else ():
        require_used(share, str(file))
    if len(shares) == 1:
        content, outputs = own_to_onnx(own_part(shares[0])), ["score"]
    else:
        content = whole_to_onnx(whole_model(*shares))
        classes = shares[0].family.has_classes
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
