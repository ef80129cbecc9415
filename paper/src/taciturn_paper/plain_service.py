"""A scikit-learn model of the joined table behind the server of ``taciturn serve``.

What ``taciturn_paper.serving`` measures beside it: the same requests, by id, from one table in one
process. ``python -m taciturn_paper.plain_service FOLDER PORT``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import uvicorn
from sklearn.linear_model import LogisticRegression
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data.column_options import PrepareSettings
from taciturn.data.prepare import fit


def joined(folder: Path) -> tuple[list[str], FloatArray, LabelArray]:
    """Ids, prepared rows and labels of both tables."""
    hers = pl.read_csv(folder / "telco" / "alice.csv")
    his = pl.read_csv(folder / "bank" / "bob.csv")
    both = hers.join(his, on="person")
    frame = both.drop("person", "over-50k")
    values = fit(frame, PrepareSettings()).apply(frame)
    return both["person"].to_list(), values, both["over-50k"].to_numpy().astype(np.int8)


def application(folder: Path) -> Starlette:
    """The service."""
    ids, values, labels = joined(folder)
    places = {name: place for place, name in enumerate(ids)}
    model = LogisticRegression(max_iter=200).fit(values, labels)

    async def one(request: Request) -> JSONResponse:
        name = (await request.json())["id"]
        row = values[[places[name]]]
        score = float(model.decision_function(row)[0])
        return JSONResponse({"id": name, "score": score, "class": int(score > 0)})

    async def several(request: Request) -> JSONResponse:
        names = (await request.json())["ids"]
        scores = model.decision_function(values[[places[name] for name in names]]).tolist()
        rows = [{"id": name, "score": score} for name, score in zip(names, scores, strict=True)]
        return JSONResponse({"rows": rows})

    routes = [Route("/v1/score", one, methods=["POST"])]
    return Starlette(routes=[*routes, Route("/v1/scores", several, methods=["POST"])])


if __name__ == "__main__":
    app = application(Path(sys.argv[1]))
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[2]),
        access_log=False,
        log_level="warning",
        http="httptools",
    )
